import type { LogPlan, LogResult } from "@skald/logql";
import { runConcurrently } from "@skald/runtime";
import { keepsEveryRow, rangeOf } from "@skald/scan";
import type { PlannedSource } from "../find/order-sources.js";
import { type QueryTask, TaskCutter, type TaskSource } from "./cut-tasks.js";
import { LogMerge } from "./log-merge.js";
import type { QueryRun } from "./query-run.js";

/** Lines that one scan holds at most, whatever the query may. */
const maxScannedBytes = 1024 * 1024 * 1024;

/** Raw bytes of a task: what is under way when the last row of the answer is found was read for nothing. */
const taskBytes = 8 * 1024 * 1024;

/** The tasks of a log query, those with the best times first. */
export function logTasks(
  plan: LogPlan,
  sources: readonly PlannedSource[],
  threads: number,
): TaskCutter {
  const best = bestTime(plan);
  const backward = plan.direction === "backward";
  const sorted = [...sources].sort((a, b) =>
    best(a) === best(b) ? 0 : best(a) < best(b) === backward ? 1 : -1,
  );
  // A source that is read only as far as to the limit is little work, and its parts would each find all the rows.
  return new TaskCutter(sorted, { split: !keepsEveryRow(plan), threads, taskBytes });
}

/**
 * Scans the tasks in waves, each twice as wide as the one before, until none that is left can have a row of the
 * answer: most often the newest source has them all.
 */
export async function runLogQuery(
  plan: LogPlan,
  tasks: TaskCutter,
  run: QueryRun,
  signal: AbortSignal,
): Promise<LogResult> {
  const { threads, limits, lanes } = run;
  const merge = new LogMerge(plan, run.budget);
  const best = bestTime(plan);
  const isBeyond = (source: PlannedSource) => {
    const bound = merge.boundNs();
    const first = best(source);
    return bound !== undefined && (plan.direction === "backward" ? first < bound : first > bound);
  };
  const scan = async (task: QueryTask, stop: AbortSignal) => {
    if (isBeyond((task.sources[0] as TaskSource).source)) return;
    const bound = () => {
      const boundNs = merge.boundNs();
      return boundNs === undefined ? {} : { boundNs };
    };
    const bounded = { ...plan, maxLineBytes: Math.min(limits.maxMemoryBytes, maxScannedBytes) };
    const outcome = await run.scan(task, bounded, rangeOf(plan), stop, bound);
    if (outcome === undefined) return;
    tasks.learn(task, outcome.stats);
    merge.add(outcome.partial);
  };
  let width = keepsEveryRow(plan) ? 1 : threads;
  for (let next = tasks.peek(); next !== undefined && !isBeyond(next); next = tasks.peek()) {
    const wave = tasks.take(width < lanes ? width : undefined);
    await runConcurrently(wave, lanes, signal, scan);
    width *= 2;
  }
  signal.throwIfAborted();
  return merge.result();
}

function bestTime({ direction }: LogPlan): (source: PlannedSource) => bigint {
  return direction === "backward" ? ({ ref }) => ref.maxNs : ({ ref }) => ref.minNs;
}
