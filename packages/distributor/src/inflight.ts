import { unavailable } from "@skald/model";

/** Counts the bytes of the pushes that are being served, and refuses more than a bound. */
export class InflightBytes {
  readonly #maxBytes: number;
  #bytes = 0;

  /** 0: no bound */
  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Adds bytes; throws unavailable (503) and adds nothing beyond the bound. */
  take(bytes: number): void {
    if (this.#maxBytes > 0 && this.#bytes + bytes > this.#maxBytes) {
      throw unavailable("The server cannot accept more requests at this time.");
    }
    this.#bytes += bytes;
  }

  give(bytes: number): void {
    this.#bytes -= bytes;
  }
}
