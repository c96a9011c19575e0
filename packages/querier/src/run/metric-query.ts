import type { LeafPlan, SeriesMatrix } from "@skald/logql";
import { rangeOf } from "@skald/scan";
import type { PlannedSource } from "../find/order-sources.js";
import { runConcurrently } from "./concurrent.js";
import { cutTasks, type QueryTask } from "./cut-tasks.js";
import { MetricMerge } from "./metric-merge.js";
import type { QueryRun } from "./query-run.js";

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
): Promise<SeriesMatrix[]> {
  const merge = new MetricMerge(leaf, run.budget);
  await runConcurrently(tasks.entries(), run.lanes, signal, async ([place, task], stop) => {
    merge.add(place, await run.scan(task, leaf, rangeOf(leaf), stop));
  });
  signal.throwIfAborted();
  return merge.result();
}
