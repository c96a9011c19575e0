import type { ExplainedScan, Measured, ScanPlan } from "@skald/contracts";
import { runConcurrently } from "@skald/runtime";
import type { PlannedSource } from "../find/order-sources.js";
import { TaskCutter } from "./cut-tasks.js";
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

/** What a scan would have to read: any number of bytes when `within` ends before all headers were looked at. */
export async function explainScan(
  scan: PlannedScan,
  run: QueryRun,
  { within, signal }: { readonly within: AbortSignal; readonly signal: AbortSignal },
): Promise<ExplainedScan> {
  const { sources } = scan;
  let [bytes, blocks, blocksToRead] = [0, 0, 0];
  try {
    await measureScan(scan, run, within, (measured) => {
      bytes += measured.bytes;
      blocks += measured.blocks;
      blocksToRead += measured.blocksToRead;
    });
  } catch (error) {
    if (signal.aborted || !within.aborted) throw error;
    bytes = Number.POSITIVE_INFINITY;
  }
  const isExact = Number.isFinite(bytes) && sources.every(({ deleted }) => deleted === undefined);
  return { bytes, blocks, blocksToRead, sources: sources.length, isExact };
}
