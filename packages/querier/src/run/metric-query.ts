import type { LeafPlan, SeriesMatrix } from "@skald/logql";
import { runConcurrently } from "@skald/runtime";
import { rangeOf } from "@skald/scan";
import type { PlannedSource } from "../find/order-sources.js";
import { TaskCutter } from "./cut-tasks.js";
import { MetricMerge } from "./metric-merge.js";
import type { QueryRun } from "./query-run.js";

/** The tasks of a leaf, in order of arrival. */
export function leafTasks(sources: readonly PlannedSource[], threads: number): TaskCutter {
  return new TaskCutter(sources, { split: true, threads });
}

/** Scans the tasks of a leaf, and merges what they give in their order. */
export async function runLeaf(
  leaf: LeafPlan,
  tasks: TaskCutter,
  run: QueryRun,
  signal: AbortSignal,
): Promise<SeriesMatrix[]> {
  const merge = new MetricMerge(leaf, run.budget);
  await runConcurrently(numbered(tasks.take()), run.lanes, signal, async ([place, task], stop) => {
    const { partial, stats } = await run.scan(task, leaf, rangeOf(leaf), stop);
    tasks.learn(task, stats);
    merge.add(place, partial);
  });
  signal.throwIfAborted();
  return merge.result();
}

function* numbered<T>(items: Iterable<T>): Generator<[number, T]> {
  let place = 0;
  for (const item of items) yield [place++, item];
}
