import type { EncodedOutcome } from "@skald/contracts";
import {
  type Budget,
  combineMetricPartials,
  type LeafPlan,
  type MetricPartial,
  mergeMetricPartials,
  type SeriesMatrix,
} from "@skald/logql";
import { areSliced } from "@skald/model";
import { runConcurrently } from "@skald/runtime";
import { rangeOf } from "@skald/scan";
import type { PlannedSource } from "../find/order-sources.js";
import { TaskCutter } from "./cut-tasks.js";
import type { QueryRun } from "./query-run.js";
import { countsHeaders } from "./scan-room.js";

/** The tasks of a leaf, in order of arrival. */
export function leafTasks(
  leaf: LeafPlan,
  sources: readonly PlannedSource[],
  { threads, growths }: Pick<QueryRun, "threads" | "growths">,
): TaskCutter {
  const onlyHeaders = areHeadersEnough(leaf);
  const onlyCounts = leaf.mode === "count";
  const growth = growths.of(leaf, sources);
  return new TaskCutter(sources, { split: true, threads, onlyHeaders, onlyCounts, growth });
}

/** True when few blocks lie at an edge of a window, or headers count their rows up to there. */
function areHeadersEnough(leaf: LeafPlan): boolean {
  const { windows } = leaf;
  if (!countsHeaders(leaf)) return false;
  const { startNs, stepNs, rangeNs } = windows;
  return stepNs === 0n || areSliced(startNs, stepNs, rangeNs);
}

/** Scans the tasks of a leaf, and merges what they give in their order with what was counted before. */
export async function runLeaf(
  leaf: LeafPlan,
  { tasks, counted }: { readonly tasks: TaskCutter; readonly counted: readonly EncodedOutcome[] },
  run: QueryRun,
  signal: AbortSignal,
): Promise<SeriesMatrix[]> {
  const merge = new MetricMerge(leaf, run.budget);
  counted.forEach((outcome, place) => {
    merge.add(place, run.take<LeafPlan>("store", outcome).partial);
  });
  await runConcurrently(numbered(tasks.take()), run.lanes, signal, async ([place, task], stop) => {
    const outcome = await run.scan(task, leaf, rangeOf(leaf), stop);
    if (outcome !== undefined) tasks.learn(task, outcome.stats);
    merge.add(counted.length + place, outcome?.partial);
  });
  signal.throwIfAborted();
  run.growths.note(leaf, tasks.sources, tasks.growth);
  return merge.result();
}

function* numbered<T>(items: Iterable<T>): Generator<[number, T]> {
  let place = 0;
  for (const item of items) yield [place++, item];
}

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
