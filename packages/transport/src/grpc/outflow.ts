import type { Http2Stream } from "node:http2";
import type { Parts } from "./message/pieces.js";

/** Pieces of a message that may wait for the other side. */
const maxWaitingPieces = 4;

/** Writes pieces no faster than the other side takes them. */
export class Outflow {
  readonly #stream: Http2Stream;
  readonly #signal: AbortSignal;
  #waiting = 0;
  #wake: () => void = () => undefined;

  constructor(stream: Http2Stream, signal: AbortSignal) {
    this.#stream = stream;
    this.#signal = signal;
    signal.addEventListener("abort", () => this.#wake(), { once: true });
  }

  /** Resolves when the next piece may be written; rejects with the reason of the signal when it is aborted. */
  async write(piece: Parts): Promise<void> {
    this.#signal.throwIfAborted();
    this.#waiting++;
    const done = () => {
      this.#waiting--;
      this.#wake();
    };
    if (piece.length > 1) this.#stream.cork();
    for (const [i, bytes] of piece.entries()) {
      if (i < piece.length - 1) this.#stream.write(bytes);
      else this.#stream.write(bytes, done);
    }
    if (piece.length > 1) this.#stream.uncork();
    while (this.#waiting >= maxWaitingPieces && !this.#signal.aborted) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    this.#signal.throwIfAborted();
  }
}
