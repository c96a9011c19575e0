import type { Writable } from "node:stream";

/** Pieces of a message that may wait for the other side. */
const maxWaitingPieces = 4;

/** Writes pieces no faster than the other side takes them. */
export class Outflow {
  readonly #stream: Pick<Writable, "write">;
  readonly #signal: AbortSignal;
  #waiting = 0;
  #wake: () => void = () => undefined;

  constructor(stream: Pick<Writable, "write">, signal: AbortSignal) {
    this.#stream = stream;
    this.#signal = signal;
    signal.addEventListener("abort", () => this.#wake(), { once: true });
  }

  /** Resolves when the next piece may be written; rejects with the reason of the signal when it is aborted. */
  async write(piece: Buffer): Promise<void> {
    this.#signal.throwIfAborted();
    this.#waiting++;
    this.#stream.write(piece, () => {
      this.#waiting--;
      this.#wake();
    });
    while (this.#waiting >= maxWaitingPieces && !this.#signal.aborted) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    this.#signal.throwIfAborted();
  }
}
