/** How many calls may be taken at a time; it changes when there are more schedulers to take calls from, or fewer. */
export class LaneWidth {
  /** It never becomes more than this. */
  readonly most: number;
  readonly #waiting = new Set<() => void>();
  #now: number;

  constructor(most: number) {
    this.most = most;
    this.#now = most;
  }

  get now(): number {
    return this.#now;
  }

  /** Shares calls out to so many schedulers, at least one to each. */
  shareAmong(schedulers: number): void {
    this.#now = Math.ceil(this.most / Math.max(1, schedulers));
    for (const wake of this.#waiting) wake();
    this.#waiting.clear();
  }

  /** Resolves when it may be another, and when the signal is aborted. */
  changed(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      if (signal.aborted) resolve();
      const wake = () => {
        signal.removeEventListener("abort", wake);
        this.#waiting.delete(wake);
        resolve();
      };
      signal.addEventListener("abort", wake, { once: true });
      this.#waiting.add(wake);
    });
  }
}
