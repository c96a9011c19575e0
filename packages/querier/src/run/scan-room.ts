import type { ScanPlan } from "@skald/contracts";
import type { Budget, LeafPlan } from "@skald/logql";

/** What a scan holds for each byte of what it finds: as it gathers it, in order, and encoded. */
export const copies = 3;
/** What the scans of a query that are under way may hold together. One scan alone may hold more. */
const maxBytes = 128 * 1024 * 1024;

/** How the scans of a query share room. */
export interface ScanRoomOptions {
  /** Scans that run at a time while nobody knows what they find. */
  readonly threads: number;
  readonly maxBytes?: number;
}

/** A scan that is under way. */
interface Guest {
  /** What counts for it. */
  bytes: number;
}

/**
 * Room for the scans of a query that are under way: they hold memory on other threads, as much as those before have shown,
 * which counts among what all queries hold. Where they find much, fewer run at a time. Until one has come back a guess counts
 * for each, and none waits behind another on its thread.
 */
export class ScanRoom {
  readonly #budget: Pick<Budget, "holdElsewhere" | "releaseElsewhere">;
  readonly #threads: number;
  readonly #maxBytes: number;
  /** Bytes of the largest outcome so far; undefined before the first. */
  #largest: number | undefined;
  readonly #guests = new Set<Guest>();
  #held = 0;
  #waiting: (() => void)[] = [];

  constructor(
    budget: Pick<Budget, "holdElsewhere" | "releaseElsewhere">,
    options: ScanRoomOptions,
  ) {
    this.#budget = budget;
    this.#threads = options.threads;
    this.#maxBytes = options.maxBytes ?? maxBytes;
  }

  /**
   * Resolves to what must be called when the scan has ended. `guess` is how large its outcome may be in bytes, by all that is
   * known beforehand; with 0 the first scans neither count nor wait. Throws the signal's reason, and as the budget does.
   */
  async enter(signal: AbortSignal, guess: number): Promise<() => void> {
    while (this.#isFull(guess)) {
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
      signal.throwIfAborted();
    }
    const guest = { bytes: this.#bytesOf(guess) };
    this.#budget.holdElsewhere(guest.bytes);
    this.#held += guest.bytes;
    this.#guests.add(guest);
    return () => {
      this.#guests.delete(guest);
      this.#giveBack(guest.bytes);
      this.#wake();
    };
  }

  /** Tells how large an outcome was. */
  learn(bytes: number): void {
    const isFirst = this.#largest === undefined;
    this.#largest = Math.max(this.#largest ?? 0, bytes);
    if (!isFirst) return;
    // Guesses that were too high keep nobody out any longer.
    for (const guest of this.#guests) {
      const less = Math.max(0, guest.bytes - copies * bytes);
      guest.bytes -= less;
      this.#giveBack(less);
    }
    this.#wake();
  }

  #isFull(guess: number): boolean {
    if (this.#guests.size === 0) return false;
    return this.#largest === undefined
      ? guess > 0 && this.#guests.size >= this.#threads
      : this.#held + copies * this.#largest > this.#maxBytes;
  }

  /** What counts for the next scan; a guess takes no more than there is, so that each thread has something to do. */
  #bytesOf(guess: number): number {
    return this.#largest === undefined
      ? Math.min(copies * guess, this.#maxBytes - this.#held)
      : copies * this.#largest;
  }

  #giveBack(bytes: number): void {
    this.#held -= bytes;
    this.#budget.releaseElsewhere(bytes);
  }

  #wake(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const wake of waiting) wake();
  }
}

/** The share of the bytes of lines that a scan finds if each row has labels of its own, roughly. */
const foundShare = 1 / 2;
/** Bytes of a row of an answer, roughly. */
const rowBytes = 1024;
/** Bytes of what is kept for one series and window, roughly. */
const cellBytes = 64;

/** How large the outcome of a scan may be, in bytes, by its plan and the bytes of lines that it may read. */
export function guessOutcome(plan: ScanPlan, taskBytes: number): number {
  if ("log" in plan) return Math.min(taskBytes, plan.limit * rowBytes, plan.scanBytes ?? taskBytes);
  return readsHeaders(plan) ? 0 : taskBytes * foundShare;
}

/** The most that a scan finds, in bytes, whatever it reads; infinite where series or samples may be many. */
export function maxOutcome(plan: ScanPlan): number {
  if ("log" in plan) return plan.limit * rowBytes;
  const { grouping, mode, windows } = plan;
  const isOneSeries = grouping?.without === false && grouping.labels.length === 0;
  return isOneSeries && mode !== "samples" ? windows.count * cellBytes : Number.POSITIVE_INFINITY;
}

/** True when a leaf counts rows or bytes of streams, as headers do. */
export function countsHeaders(leaf: LeafPlan): boolean {
  return readsHeaders(leaf) && (leaf.mode === "count" || leaf.mode === "bytes");
}

/** True when the rows of a leaf are counted by headers, most of them at least: what it finds is as little as they are. */
export function readsHeaders({ stages, unwrap }: LeafPlan): boolean {
  return stages.length === 0 && unwrap === undefined;
}
