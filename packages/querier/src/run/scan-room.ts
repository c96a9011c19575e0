import type { Budget } from "@skald/logql";

/** What a scan holds for each byte of what it finds: as it gathers it, in order, and encoded. */
const copies = 3;
/** What the scans of a query that are under way may hold together, but for a single one. */
const maxBytes = 128 * 1024 * 1024;

/**
 * Room for the scans of a query that are under way: they hold memory on other threads, as much as those before have shown,
 * which counts among what all queries hold. Where they find much, fewer run at a time.
 */
export class ScanRoom {
  readonly #budget: Pick<Budget, "holdElsewhere" | "releaseElsewhere">;
  readonly #maxBytes: number;
  /** Of the largest outcome so far. */
  #largest = 0;
  #running = 0;
  #held = 0;
  #waiting: (() => void)[] = [];

  constructor(
    budget: Pick<Budget, "holdElsewhere" | "releaseElsewhere">,
    options: { readonly maxBytes: number } = { maxBytes },
  ) {
    this.#budget = budget;
    this.#maxBytes = options.maxBytes;
  }

  /** Resolves to what must be called when the scan has ended. Throws the signal's reason, and as the budget does. */
  async enter(signal: AbortSignal): Promise<() => void> {
    while (this.#running > 0 && this.#held + copies * this.#largest > this.#maxBytes) {
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
      signal.throwIfAborted();
    }
    const bytes = copies * this.#largest;
    this.#budget.holdElsewhere(bytes);
    this.#running++;
    this.#held += bytes;
    return () => {
      this.#running--;
      this.#held -= bytes;
      this.#budget.releaseElsewhere(bytes);
      const waiting = this.#waiting;
      this.#waiting = [];
      for (const wake of waiting) wake();
    };
  }

  /** Tells how large an outcome was. */
  learn(bytes: number): void {
    this.#largest = Math.max(this.#largest, bytes);
  }
}
