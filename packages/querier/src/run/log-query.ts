import type { ScanOutcome } from "@skald/contracts";
import {
  joinLogResults,
  keepsEveryRow,
  type LogPartial,
  type LogPlan,
  type LogResult,
  timestampNs,
} from "@skald/logql";
import { runConcurrently } from "@skald/runtime";
import { rangeOf } from "@skald/scan";
import type { PlannedSource } from "../find/order-sources.js";
import { type QueryTask, TaskCutter, type TaskSource } from "./cut-tasks.js";
import { LogMerge } from "./log-merge.js";
import type { QueryRun } from "./query-run.js";

/** Lines that one scan holds at most, whatever the query may. */
const maxScannedBytes = 1024 * 1024 * 1024;

/** Raw bytes of a task: what is under way when the last row of the answer is found was read for nothing. */
const taskBytes = 8 * 1024 * 1024;

/**
 * A scan that finds more lines ends, and another goes on behind it. A thread holds them up to three times: as they came, in order, and
 * encoded. Where threads wait for a core, each further scan waits again.
 */
const scanBytes = 32 * 1024 * 1024;

/** Answers a log query: as far as its limit goes, and with an interval in rounds. */
export async function runLogQuery(
  plan: LogPlan,
  sources: readonly PlannedSource[],
  run: QueryRun,
  signal: AbortSignal,
): Promise<LogResult> {
  if (plan.intervalNs > 0n) return runRounds(plan, sources, run, signal);
  return (await runRound(plan, sources, run, signal)).result();
}

/**
 * Which row an interval takes depends on the one taken before, from whichever source. So each round holds some rows of all sources,
 * takes those of them that it can tell, and the next round begins where the next row may lie.
 */
async function runRounds(
  plan: LogPlan,
  sources: readonly PlannedSource[],
  run: QueryRun,
  signal: AbortSignal,
): Promise<LogResult> {
  const found: LogResult[] = [];
  for (let left: LogPlan | undefined = plan; left !== undefined; ) {
    const merge: LogMerge = await runRound(left, sources, run, signal);
    const result = merge.result();
    found.push(result);
    const { rowCount, timestamps } = result;
    left =
      merge.boundNs() === undefined
        ? undefined
        : planBehind(left, rowCount, timestamps[rowCount - 1]!);
  }
  return joinLogResults(found, plan.limit);
}

/** The plan of the rows behind some of a plan, the last of which is given, that its interval takes; undefined when there are none. */
function planBehind(plan: LogPlan, rows: number, lastNs: bigint): LogPlan | undefined {
  const { direction, intervalNs } = plan;
  const limit = plan.limit - rows;
  const stepNs = intervalNs > 0n ? intervalNs : 1n;
  const left =
    direction === "forward"
      ? { ...plan, limit, fromNs: lastNs + stepNs }
      : { ...plan, limit, toNs: lastNs - stepNs + 1n };
  return limit > 0 && left.fromNs < left.toNs ? left : undefined;
}

/** The plan of what a scan has left because it found too many bytes; undefined when that is nothing. Rounds go on by themselves. */
function planLeft(plan: LogPlan, { rowCount, places, truncated }: LogPartial): LogPlan | undefined {
  if (!truncated || plan.intervalNs > 0n) return undefined;
  return planBehind(plan, rowCount, timestampNs(places, rowCount - 1));
}

/**
 * Scans the tasks in waves, each twice as wide as the one before, until none that is left can have a row of the
 * answer: most often the newest source has them all.
 */
async function runRound(
  plan: LogPlan,
  sources: readonly PlannedSource[],
  run: QueryRun,
  signal: AbortSignal,
): Promise<LogMerge> {
  const { threads, limits, lanes } = run;
  const tasks = logTasks(plan, sources, run);
  const merge = new LogMerge(plan, run.budget);
  const best = bestTime(plan);
  const isBeyond = (firstNs: bigint) => {
    const bound = merge.boundNs();
    return (
      bound !== undefined && (plan.direction === "backward" ? firstNs < bound : firstNs > bound)
    );
  };
  const bound = () => {
    const boundNs = merge.boundNs();
    return boundNs === undefined ? {} : { boundNs };
  };
  const range = rangeOf(plan);
  const maxLineBytes = Math.min(limits.maxMemoryBytes, maxScannedBytes);
  const scan = async (task: QueryTask, stop: AbortSignal) => {
    if (isBeyond(best((task.sources[0] as TaskSource).source))) return;
    let left: LogPlan | undefined = { scanBytes, ...plan, maxLineBytes };
    while (left !== undefined && !isBeyond(edgeOf(left))) {
      const found: ScanOutcome<LogPlan> | undefined = await run.scan(
        task,
        left,
        range,
        stop,
        bound,
      );
      if (found === undefined) return;
      tasks.learn(task, found.stats);
      merge.add(found.partial);
      left = planLeft(left, found.partial);
    }
  };
  let width = keepsEveryRow(plan) ? 1 : threads;
  for (let next = tasks.peek(); next !== undefined && !isBeyond(best(next)); next = tasks.peek()) {
    const wave = tasks.take(width < lanes ? width : undefined);
    await runConcurrently(wave, lanes, signal, scan);
    width *= 2;
  }
  signal.throwIfAborted();
  run.growths.note(plan, tasks.sources, tasks.growth);
  return merge;
}

/** The tasks of a log query, those with the best times first. */
function logTasks(
  plan: LogPlan,
  sources: readonly PlannedSource[],
  { threads, growths }: QueryRun,
): TaskCutter {
  const best = bestTime(plan);
  const backward = plan.direction === "backward";
  const within = sources.filter(({ ref }) => ref.minNs < plan.toNs && ref.maxNs >= plan.fromNs);
  const sorted = within.sort((a, b) =>
    best(a) === best(b) ? 0 : best(a) < best(b) === backward ? 1 : -1,
  );
  // A source that is read only as far as to the limit is little work, and its parts would each find all the rows.
  const split = !keepsEveryRow(plan);
  const growth = growths.of(plan, sorted);
  return new TaskCutter(sorted, { split, threads, taskBytes, growth });
}

/** The best time in the range of a plan. */
function edgeOf({ direction, fromNs, toNs }: LogPlan): bigint {
  return direction === "backward" ? toNs - 1n : fromNs;
}

function bestTime({ direction }: LogPlan): (source: PlannedSource) => bigint {
  return direction === "backward" ? ({ ref }) => ref.maxNs : ({ ref }) => ref.minNs;
}
