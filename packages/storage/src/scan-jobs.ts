import { type LeafPlan, type LogPartial, type LogPlan, transferablesOf } from "@skald/logql";
import type { JobContext, JobHandler, JobResult } from "@skald/runtime";
import { findDuplicates } from "./duplicates.js";
import { scanLog } from "./scan-log.js";
import { measureScan } from "./scan-measure.js";
import { ScanMemory } from "./scan-memory.js";
import { scanMetric } from "./scan-metric.js";
import type { DuplicateTask } from "./scan-pool.js";
import type { ScanTask } from "./scan-task.js";
import { SourceCache } from "./source-cache.js";
import { collectStreams, type StreamTask } from "./stream-scan.js";

/** Open files per thread. */
const maxOpenSegments = 256;
/** Parsed indexes per thread. */
const maxIndexBytes = 64 * 1024 * 1024;

/** The jobs of `ScanPool`, for a worker thread. */
export function scanJobs(): Record<string, JobHandler> {
  const sources = new SourceCache({ maxOpenSegments, maxIndexBytes });
  const memory = new ScanMemory();
  return {
    scan_metric: (task: ScanTask<LeafPlan>, { check }: JobContext): JobResult => {
      const outcome = sources.use((open) => scanMetric(task, open, { check, memory }));
      return { value: outcome, transfer: transferablesOf(outcome.partial) };
    },
    scan_log: (task: ScanTask<LogPlan>, { check }: JobContext): JobResult => {
      const outcome = sources.use((open) => scanLog(task, open, { check, memory }));
      return { value: outcome, transfer: buffersOf(outcome.partial) };
    },
    measure: (task: ScanTask, { check }: JobContext): JobResult => ({
      value: sources.use((open) => measureScan(task, open, { check })),
    }),
    streams: (task: StreamTask, { check }: JobContext): JobResult => {
      const found = new Set<string>();
      for (const ref of task.sources) {
        sources.use((open) => collectStreams(ref, open(ref), task, found, check));
      }
      return { value: [...found] };
    },
    duplicates: ({ older, newer, span }: DuplicateTask, { check }: JobContext): JobResult => ({
      value: older.map((ref) =>
        sources.use((open) => findDuplicates(open(ref), open(newer), { check, span })),
      ),
    }),
  };
}

/** The columns of a partial, to be moved instead of copied. */
function buffersOf(partial: LogPartial): ArrayBuffer[] {
  const { timestamps, sequence, row, labelSet, lines } = partial;
  return [timestamps, sequence, row, labelSet, lines.bytes, lines.offsets].map(
    (column) => column.buffer as ArrayBuffer,
  );
}
