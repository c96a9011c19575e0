/** Longest stretch that the requests begun in one turn of the event loop may take, with what follows them at once. */
const stretchMs = 4;
/** Most that begin in one turn as they come; what follows them, such as a short answer, comes after all of them. */
const maxAtOnce = 8;
/** Most of those that wait that begin in one turn. */
const maxPerTurn = 64;
/** Requests that one connection may send ahead. */
const maxWaiting = 1000;

/**
 * Begins requests in turns. A connection that sends many at once has one of them begun whenever its turn comes, every other turn is one
 * of a connection that sent one, and the event loop goes on after 4 ms: neither a thousand requests in one packet nor hundreds of such
 * connections keep others waiting for long.
 */
export class RequestTurns {
  /** What waits, by connection, of those that sent one request and of those that sent several; the first connection has the next turn. */
  readonly #single = new Map<object, (() => void)[]>();
  readonly #several = new Map<object, (() => void)[]>();
  #isSingleNext = true;
  #count = 0;
  /** Requests that began in this turn as they came. */
  #begun = 0;
  #sinceMs = 0;
  #isPlanned = false;

  /** Begins a request now, or in the turn of its connection. False if too many wait there; then it does nothing. `begin` must not throw. */
  run(connection: object, begin: () => void): boolean {
    const before = this.#single.get(connection) ?? this.#several.get(connection);
    if (before !== undefined) {
      if (before.length >= maxWaiting) return false;
      before.push(begin);
      this.#count++;
      if (this.#single.delete(connection)) this.#several.set(connection, before);
    } else if (this.#count === 0 && this.#hasRoom()) {
      begin();
    } else {
      this.#single.set(connection, [begin]);
      this.#count++;
    }
    this.#plan();
    return true;
  }

  /** Forgets what waits of a connection that is closed, and all that it holds. */
  drop(connection: object): void {
    for (const waiting of [this.#single, this.#several]) {
      this.#count -= waiting.get(connection)?.length ?? 0;
      waiting.delete(connection);
    }
  }

  #hasRoom(): boolean {
    if (this.#begun === 0) this.#sinceMs = performance.now();
    this.#begun++;
    return this.#begun <= maxAtOnce && performance.now() - this.#sinceMs < stretchMs;
  }

  /** Plans the end of this turn and what waits, each in an immediate of its own, so that what follows one at once counts for the next. */
  #plan(): void {
    if (this.#isPlanned) return;
    this.#isPlanned = true;
    const steps = Math.max(1, Math.min(maxPerTurn, this.#count));
    let sinceMs: number | undefined;
    for (let left = steps - 1; left >= 0; left--) {
      setImmediate(() => {
        sinceMs ??= performance.now();
        if (performance.now() - sinceMs < stretchMs) this.#beginNext();
        if (left === 0) this.#endTurn();
      });
    }
  }

  #endTurn(): void {
    this.#isPlanned = false;
    this.#begun = 0;
    if (this.#count > 0) this.#plan();
  }

  #beginNext(): void {
    const isSingle = this.#several.size === 0 || (this.#isSingleNext && this.#single.size > 0);
    const waiting = isSingle ? this.#single : this.#several;
    this.#isSingleNext = !isSingle;
    for (const [connection, begins] of waiting) {
      // The connection goes behind the others.
      waiting.delete(connection);
      const begin = begins.shift() as () => void;
      if (begins.length > 0) waiting.set(connection, begins);
      this.#count--;
      begin();
      return;
    }
  }
}
