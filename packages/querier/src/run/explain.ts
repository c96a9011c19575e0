import type { ExplainedScan, Measured, ScanPlan } from "@skald/contracts";
import { runConcurrently } from "@skald/runtime";
import type { PlannedSource } from "../find/order-sources.js";
import { rawBytes, TaskCutter } from "./cut-tasks.js";
import type { QueryRun } from "./query-run.js";

/** A plan and everything that may have rows of it. */
export interface PlannedScan {
  readonly plan: ScanPlan;
  readonly sources: readonly PlannedSource[];
}

/** Measures the scans of a plan from headers, without reading a line; adds up what all tasks give. */
export async function measureScan(
  { plan, sources }: PlannedScan,
  run: QueryRun,
  signal: AbortSignal,
  onTask: (measured: Measured, bytes: number) => void,
): Promise<void> {
  const tasks = new TaskCutter(sources, { split: true, threads: run.threads });
  await runConcurrently(tasks.take(), run.lanes, signal, async (task, stop) => {
    onTask(await run.measure(task, plan, stop), task.bytes);
  });
}

/** Sealed lines are hardly ever more than this many times larger than `rawBytes` says. */
const mostRaw = 8;

/**
 * What a scan would have to read. Headers that were not looked at when `within` ended count with the most that their sources
 * may hold.
 */
export async function explainScan(
  scan: PlannedScan,
  run: QueryRun,
  { within, signal }: { readonly within: AbortSignal; readonly signal: AbortSignal },
): Promise<ExplainedScan> {
  const { sources } = scan;
  let [bytes, blocks, blocksToRead] = [0, 0, 0];
  let unseen = sources.reduce((sum, { ref }) => sum + rawBytes(ref), 0);
  let isComplete = false;
  try {
    await measureScan(scan, run, within, (measured, seen) => {
      bytes += measured.bytes;
      blocks += measured.blocks;
      blocksToRead += measured.blocksToRead;
      unseen -= seen;
    });
    isComplete = true;
  } catch (error) {
    if (signal.aborted || !within.aborted) throw error;
    bytes += Math.round(Math.max(0, unseen) * mostRaw);
  }
  const isExact = isComplete && sources.every(({ deleted }) => deleted === undefined);
  return { bytes, blocks, blocksToRead, sources: sources.length, isExact };
}
