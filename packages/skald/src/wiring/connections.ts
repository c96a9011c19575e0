import { GrpcConnection, type GrpcConnectionOptions } from "@skald/transport/grpc";

/** The connections of this process to others, one for each address that it calls with some options. */
export class Connections {
  readonly #open = new Map<string, GrpcConnection>();

  /** The connection to an address; made at its first call. */
  to(address: string, options: Omit<GrpcConnectionOptions, "address">): GrpcConnection {
    const known = this.#open.get(address);
    if (known !== undefined) return known;
    const connection = new GrpcConnection({ ...options, address });
    this.#open.set(address, connection);
    return connection;
  }

  /** Closes those to addresses that are called no more. */
  close(address: string): void {
    this.#open.get(address)?.close();
    this.#open.delete(address);
  }

  closeAll(): void {
    for (const address of [...this.#open.keys()]) this.close(address);
  }
}
