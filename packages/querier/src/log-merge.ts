import { type LogPartial, type LogPlan, type LogResult, mergeLogPartials } from "@skald/logql";

/** Gathers the partial answers of a log query and knows how good a row must be to still matter. */
export class LogMerge {
  readonly #plan: LogPlan;
  readonly #partials: { readonly partial: LogPartial; readonly sequence: number }[] = [];
  /** Best times so far, best first, at most `limit`. */
  #best: BigInt64Array = new BigInt64Array(0);

  constructor(plan: LogPlan) {
    this.#plan = plan;
  }

  add(partial: LogPartial, sequence: number): void {
    this.#partials.push({ partial, sequence });
    const backward = this.#plan.direction === "backward";
    this.#best = mergeBest(this.#best, partial.timestamps, this.#plan.limit, backward);
  }

  /** Rows worse than this cannot be part of the answer; undefined while any may be. */
  boundNs(): bigint | undefined {
    // Thinning by interval drops rows after the merge, so a full set of rows is no bound there.
    if (this.#plan.intervalNs > 0n) return undefined;
    return this.#best.length < this.#plan.limit ? undefined : this.#best[this.#plan.limit - 1];
  }

  result(): LogResult {
    this.#partials.sort((a, b) => a.sequence - b.sequence);
    return mergeLogPartials(
      this.#plan,
      this.#partials.map(({ partial }) => partial),
    );
  }
}

/** The best `limit` of two lists that are sorted best first. */
function mergeBest(
  a: BigInt64Array,
  b: BigInt64Array,
  limit: number,
  backward: boolean,
): BigInt64Array {
  const out = new BigInt64Array(Math.min(limit, a.length + b.length));
  let i = 0;
  let j = 0;
  for (let k = 0; k < out.length; k++) {
    const fromA = j >= b.length || (i < a.length && (backward ? a[i]! >= b[j]! : a[i]! <= b[j]!));
    out[k] = fromA ? a[i++]! : b[j++]!;
  }
  return out;
}
