/** Pieces of an answer on their way from a query thread to a client: one at a time, as fast as the client takes them. */
export class PieceChannel implements AsyncIterable<Uint8Array> {
  #piece: Uint8Array | undefined;
  #isEnded = false;
  #failure: unknown;
  #wakeReader: () => void = () => undefined;
  #wakeWriter: () => void = () => undefined;

  /** Resolves when the piece was taken, and what came before it was sent. */
  async put(piece: Uint8Array): Promise<void> {
    this.#piece = piece;
    this.#wakeReader();
    while (this.#piece === piece && !this.#isEnded) {
      await new Promise<void>((resolve) => {
        this.#wakeWriter = resolve;
      });
    }
  }

  /** No more pieces come: because that was all, or because of a failure, with which reading then throws. */
  end(failure?: unknown): void {
    this.#isEnded = true;
    this.#failure = failure;
    this.#wakeReader();
    this.#wakeWriter();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array> {
    try {
      for (;;) {
        const piece = this.#piece;
        if (piece !== undefined) {
          yield piece;
          this.#piece = undefined;
          this.#wakeWriter();
        } else if (this.#isEnded) {
          if (this.#failure !== undefined) throw this.#failure;
          return;
        } else {
          await new Promise<void>((resolve) => {
            this.#wakeReader = resolve;
          });
        }
      }
    } finally {
      // Whoever reads has gone: nobody waits for it.
      this.#isEnded = true;
      this.#wakeWriter();
    }
  }
}
