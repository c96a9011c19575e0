import { GrpcConnection, type GrpcConnectionOptions } from "@skald/rpc";

const tailsEnd = " tails";

/** The connections of this process to others, one for each address that it calls with some options. */
export class Connections {
  readonly #open = new Map<string, GrpcConnection>();

  /**
   * The connection to an address; made at its first call. Calls that go on for long have one of their own, as a connection
   * carries only so many at a time.
   */
  to(
    address: string,
    options: Omit<GrpcConnectionOptions, "address">,
    { forTails = false } = {},
  ): GrpcConnection {
    const key = forTails ? address + tailsEnd : address;
    const known = this.#open.get(key);
    if (known !== undefined) return known;
    const connection = new GrpcConnection({ ...options, address });
    this.#open.set(key, connection);
    return connection;
  }

  /** Closes those to addresses that are called no more. */
  close(address: string): void {
    for (const key of [address, address + tailsEnd]) {
      this.#open.get(key)?.close();
      this.#open.delete(key);
    }
  }

  closeAll(): void {
    for (const connection of this.#open.values()) connection.close();
    this.#open.clear();
  }
}
