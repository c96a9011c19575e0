/** A push never waits longer than this for its turn: the estimate may be wrong, and pushes wait for room besides. */
const maxWaitMs = 200;
/** Weight of the newest head in the estimate. */
const newestShare = 0.3;
/** The estimate before the first head: a thread that was just started seals 40 MB of lines a second. */
const firstMsPerByte = 1 / 40_000;

/**
 * Lets pushes in as fast as heads are sealed. Else all of them would go on until frozen heads have no room left, and then wait
 * until a whole head is sealed.
 */
export class PushPace {
  /** Time of sealing for each byte of lines, lately. */
  #msPerByte = firstMsPerByte;
  #lastMs = 0;
  /** When the next push may go. */
  #dueMs = 0;

  /** Learns from a head that was sealed now, and was begun at a time. Heads that are sealed side by side count as one after the other. */
  learn(lineBytes: number, beganMs: number, nowMs: number): void {
    const tookMs = nowMs - Math.max(beganMs, this.#lastMs);
    this.#lastMs = nowMs;
    if (lineBytes === 0) return;
    this.#msPerByte += newestShare * (tookMs / lineBytes - this.#msPerByte);
  }

  /** How long a push has to wait, ms; those behind it wait until it could be sealed, too. */
  next(lineBytes: number, nowMs: number): number {
    const dueMs = Math.max(this.#dueMs, nowMs);
    this.#dueMs = Math.min(dueMs + lineBytes * this.#msPerByte, nowMs + maxWaitMs);
    return dueMs - nowMs;
  }
}
