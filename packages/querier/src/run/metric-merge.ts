import {
  type Budget,
  combineMetricPartials,
  type LeafPlan,
  type MetricPartial,
  mergeMetricPartials,
  type SeriesMatrix,
} from "@skald/logql";

/** Memory of a series besides its entries: its labels, most of all. */
const seriesBytes = 384;
/** Partials are combined whenever they hold as many entries as what was combined before, and at least this many. */
const minEntries = 1 << 18;

/**
 * Gathers the partials of a leaf, which come in any order, and combines them in their order, so that a query over many
 * sources holds little more than its result.
 */
export class MetricMerge {
  readonly #leaf: LeafPlan;
  readonly #budget: Budget;
  readonly #minEntries: number;
  /** Partials by place, as far as they came and were not combined. */
  readonly #waiting = new Map<number, MetricPartial | undefined>();
  /** In order, without gaps. */
  #ready: MetricPartial[] = [];
  #readyEntries = 0;
  #next = 0;

  constructor(
    leaf: LeafPlan,
    budget: Budget,
    options: { readonly minEntries: number } = { minEntries },
  ) {
    this.#leaf = leaf;
    this.#budget = budget;
    this.#minEntries = options.minEntries;
  }

  /** Partials that are held. */
  get size(): number {
    return this.#ready.length + this.#waiting.size;
  }

  /**
   * Adds the partial of a place, if there is anything; each place from 0 on comes once. Throws when a limit of the plan is
   * broken.
   */
  add(place: number, partial: MetricPartial | undefined): void {
    if (partial !== undefined) this.#budget.hold(bytesOf(partial));
    this.#waiting.set(place, partial);
    while (this.#waiting.has(this.#next)) {
      const next = this.#waiting.get(this.#next);
      this.#waiting.delete(this.#next++);
      if (next === undefined) continue;
      this.#ready.push(next);
      this.#readyEntries += next.bucket.length;
    }
    const combined = this.#ready[0]?.bucket.length ?? 0;
    if (this.#readyEntries - combined < Math.max(this.#minEntries, combined)) return;
    const all = combineMetricPartials(this.#leaf, this.#ready, this.#budget);
    this.#budget.hold(bytesOf(all));
    for (const partial of this.#ready) this.#budget.release(bytesOf(partial));
    this.#ready = [all];
    this.#readyEntries = all.bucket.length;
  }

  result(): SeriesMatrix[] {
    const late = [...this.#waiting]
      .sort(([a], [b]) => a - b)
      .flatMap(([, partial]) => partial ?? []);
    return mergeMetricPartials(this.#leaf, [...this.#ready, ...late], this.#budget);
  }
}

function bytesOf({ labels, bucket, count, value, extra }: MetricPartial): number {
  const columns = bucket.byteLength + count.byteLength + value.byteLength + extra.byteLength;
  return columns + labels.length * seriesBytes;
}
