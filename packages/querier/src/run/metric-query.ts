import type { EncodedOutcome } from "@skald/contracts";
import type { LeafPlan, SeriesMatrix } from "@skald/logql";
import { areSliced } from "@skald/model";
import { runConcurrently } from "@skald/runtime";
import { rangeOf } from "@skald/scan";
import type { PlannedSource } from "../find/order-sources.js";
import { TaskCutter } from "./cut-tasks.js";
import { countsHeaders } from "./guess-outcome.js";
import { MetricMerge } from "./metric-merge.js";
import type { QueryRun } from "./query-run.js";

/** The tasks of a leaf, in order of arrival. */
export function leafTasks(
  leaf: LeafPlan,
  sources: readonly PlannedSource[],
  threads: number,
): TaskCutter {
  return new TaskCutter(sources, { split: true, threads, onlyHeaders: areHeadersEnough(leaf) });
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
  return merge.result();
}

function* numbered<T>(items: Iterable<T>): Generator<[number, T]> {
  let place = 0;
  for (const item of items) yield [place++, item];
}
