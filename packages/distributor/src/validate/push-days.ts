import type { RawPush } from "@skald/kernels";
import type { DiscardReason } from "./reasons.js";

const daySeconds = 86_400;

/** The UTC days of the rows that are left of a push: each day costs an ingester a head, so they are bounded. */
export class PushDays {
  readonly #maxDays: number;
  readonly #days = new Set<number>();
  /** First second of the day of the last row. */
  #start = Number.NaN;

  constructor(maxDays: number) {
    this.#maxDays = maxDays;
  }

  /** Counts the day of a row that no other rule refuses; the reason when it is one too many. */
  refuse({ seconds }: RawPush, row: number): DiscardReason | undefined {
    const second = seconds[row]!;
    if (second >= this.#start && second < this.#start + daySeconds) return undefined;
    const day = Math.floor(second / daySeconds);
    if (!this.#days.has(day)) {
      if (this.#days.size >= this.#maxDays) return "too_many_days";
      this.#days.add(day);
    }
    this.#start = day * daySeconds;
    return undefined;
  }
}
