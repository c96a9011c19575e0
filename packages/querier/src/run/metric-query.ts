import type { LeafPlan, SeriesMatrix } from "@skald/logql";
import type { TimeSpan } from "@skald/storage";
import type { PlannedSource } from "../find/order-sources.js";
import { runConcurrently } from "./concurrent.js";
import { cutTasks, type QueryTask } from "./cut-tasks.js";
import { MetricMerge } from "./metric-merge.js";
import type { QueryRun } from "./query-run.js";

/** The rows of a leaf lie in this span. */
export function spanOfLeaf(leaf: LeafPlan): TimeSpan {
  return { fromNs: leaf.fromNs + 1n, toNs: leaf.toNs };
}

/** The tasks of a leaf, in order of arrival. */
export function leafTasks(sources: readonly PlannedSource[], threads: number): QueryTask[] {
  return cutTasks(sources, { split: true, threads });
}

/** Scans the tasks of a leaf, and merges what they give in their order. */
export async function runLeaf(
  leaf: LeafPlan,
  tasks: readonly QueryTask[],
  run: QueryRun,
  signal: AbortSignal,
): Promise<SeriesMatrix> {
  const merge = new MetricMerge(leaf);
  await runConcurrently(tasks.entries(), run.lanes, signal, async ([place, task], stop) => {
    const sources = await run.resolve(task, spanOfLeaf(leaf), stop);
    const outcome = await run.scans.scanMetric({ plan: leaf, sources }, stop);
    run.add(task, outcome);
    merge.add(place, outcome.partial);
  });
  signal.throwIfAborted();
  return merge.result();
}
