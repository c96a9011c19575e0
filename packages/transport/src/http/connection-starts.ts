/** The pause after a start, as a multiple of the time that the start took. */
const pauseFactor = 4;
/** Connections that may wait. */
const maxWaiting = 256;

/**
 * Begins connections one after the other, in at most a fifth of the time. Node reads all that a client of HTTP/2 sent at once: a hundred
 * requests take 10 ms, a thousand that are reset 100 ms. The event loop accepts one connection in a turn, and who is not accepted soon
 * tries again only after a second; so most turns must be short.
 */
export class ConnectionStarts {
  readonly #waiting = new Map<object, () => void>();
  #isRunning = false;

  /** Begins a connection when it has its turn. False if too many wait; then it does nothing. `begin` must not throw. */
  run(connection: object, begin: () => void): boolean {
    if (this.#waiting.size >= maxWaiting) return false;
    this.#waiting.set(connection, begin);
    if (!this.#isRunning) this.#beginNext();
    return true;
  }

  /** Forgets a connection that is closed. */
  drop(connection: object): void {
    this.#waiting.delete(connection);
  }

  #beginNext(): void {
    const [next] = this.#waiting;
    this.#isRunning = next !== undefined;
    if (next === undefined) return;
    this.#waiting.delete(next[0]);
    const startMs = performance.now();
    next[1]();
    // The turn ends when what the client sent is read.
    setImmediate(() =>
      setTimeout(() => this.#beginNext(), pauseFactor * (performance.now() - startMs)),
    );
  }
}
