/** Longest stretch that beginning requests takes between two turns of the event loop. */
const stretchMs = 4;
/** Requests that one connection may send ahead. */
const maxWaiting = 1000;

/**
 * Begins requests in turns. A connection that sends many at once has one of them begun whenever its turn comes, and the event loop
 * goes on after 4 ms: neither a thousand requests in one packet nor a hundred such connections keep others waiting for long.
 */
export class RequestTurns {
  /** What waits, by connection; the first connection has the next turn. */
  readonly #waiting = new Map<object, (() => void)[]>();
  #spentMs = 0;
  #isPlanned = false;

  /** Begins a request now, or in the turn of its connection. False if too many wait there; then it does nothing. `begin` must not throw. */
  run(connection: object, begin: () => void): boolean {
    const before = this.#waiting.get(connection);
    if (before === undefined && this.#spentMs < stretchMs) {
      this.#begin(begin);
    } else if (before === undefined) {
      this.#waiting.set(connection, [begin]);
    } else {
      if (before.length >= maxWaiting) return false;
      before.push(begin);
    }
    this.#plan();
    return true;
  }

  #begin(begin: () => void): void {
    const startMs = performance.now();
    begin();
    this.#spentMs += performance.now() - startMs;
  }

  /** The next turn of the event loop has its own 4 ms. */
  #plan(): void {
    if (this.#isPlanned) return;
    this.#isPlanned = true;
    setImmediate(() => {
      this.#isPlanned = false;
      this.#spentMs = 0;
      this.#runWaiting();
      if (this.#waiting.size > 0) this.#plan();
    });
  }

  #runWaiting(): void {
    for (const [connection, begins] of this.#waiting) {
      if (this.#spentMs >= stretchMs) return;
      // The connection goes behind the others, which this loop comes to after them.
      this.#waiting.delete(connection);
      const begin = begins.shift() as () => void;
      if (begins.length > 0) this.#waiting.set(connection, begins);
      this.#begin(begin);
    }
  }
}
