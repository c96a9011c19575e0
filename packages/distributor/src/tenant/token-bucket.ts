/** A bucket of bytes that refills steadily; a push takes all it needs or nothing. */
export class TokenBucket {
  #tokens: number;
  #updatedMs: number;
  #ratePerSecond: number;
  #burst: number;

  /** Starts full. */
  constructor(ratePerSecond: number, burst: number, nowMs: number) {
    this.#ratePerSecond = ratePerSecond;
    this.#burst = burst;
    this.#tokens = burst;
    this.#updatedMs = nowMs;
  }

  get ratePerSecond(): number {
    return this.#ratePerSecond;
  }

  /** Changes the limits from now on. */
  configure(ratePerSecond: number, burst: number, nowMs: number): void {
    this.#refill(nowMs);
    this.#ratePerSecond = ratePerSecond;
    this.#burst = burst;
    this.#tokens = Math.min(this.#tokens, burst);
  }

  /** Whether it is as it would be if nobody had ever taken anything. */
  isFull(nowMs: number): boolean {
    this.#refill(nowMs);
    return this.#tokens >= this.#burst;
  }

  /** Takes `amount` when that much is there. */
  take(amount: number, nowMs: number): boolean {
    this.#refill(nowMs);
    if (amount > this.#tokens) return false;
    this.#tokens -= amount;
    return true;
  }

  /** Seconds until `amount` could be taken; Infinity when it never can. */
  secondsUntil(amount: number): number {
    if (amount <= this.#tokens) return 0;
    if (amount > this.#burst || this.#ratePerSecond <= 0) return Number.POSITIVE_INFINITY;
    return (amount - this.#tokens) / this.#ratePerSecond;
  }

  #refill(nowMs: number): void {
    const elapsedMs = Math.max(0, nowMs - this.#updatedMs);
    this.#tokens = Math.min(this.#burst, this.#tokens + (elapsedMs / 1000) * this.#ratePerSecond);
    this.#updatedMs = nowMs;
  }
}
