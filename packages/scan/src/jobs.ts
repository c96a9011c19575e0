import {
  type DuplicateTask,
  encodeOutcome,
  type ScanOutcome,
  type ScanPlan,
  type ScanTask,
  type StreamTask,
} from "@skald/contracts";
import type { LeafPlan, LogPlan } from "@skald/logql";
import type { JobContext, JobHandler, JobResult } from "@skald/runtime";
import type { LocalRef } from "@skald/storage";
import { findDuplicates } from "./dedup/find-duplicates.js";
import { ScanMemory } from "./page-memory.js";
import { scanLog } from "./scan-log.js";
import { measureScan, scanMetric } from "./scan-metric.js";
import { collectStreams } from "./scan-streams.js";
import { SourceCache } from "./source-cache.js";

/** Open files per thread. */
const maxOpenSegments = 256;
/** Parsed indexes per thread. */
const maxIndexBytes = 64 * 1024 * 1024;

/** The jobs of `ScanPool`, for a worker thread. */
export function scanJobs(): Record<string, JobHandler> {
  const sources = new SourceCache({ maxOpenSegments, maxIndexBytes });
  const memory = new ScanMemory();
  return {
    scan_metric: (task: ScanTask<LeafPlan, LocalRef>, { check }: JobContext): JobResult => {
      return encoded(sources.use((open) => scanMetric(task, open, { check, memory })));
    },
    scan_log: (task: ScanTask<LogPlan, LocalRef>, { check }: JobContext): JobResult => {
      return encoded(sources.use((open) => scanLog(task, open, { check, memory })));
    },
    measure: (task: ScanTask<ScanPlan, LocalRef>, { check }: JobContext): JobResult => ({
      value: sources.use((open) => measureScan(task, open, { check })),
    }),
    streams: (task: StreamTask<LocalRef>, { check }: JobContext): JobResult => {
      const found = new Set<string>();
      for (const ref of task.sources) {
        sources.use((open) => collectStreams(ref, open(ref), task, found, check));
      }
      return { value: [...found] };
    },
    forget: ({ path }: { readonly path: string }): JobResult => {
      sources.forget(path);
      return { value: undefined };
    },
    duplicates: (
      { older, newer, range }: DuplicateTask<LocalRef>,
      { check }: JobContext,
    ): JobResult => ({
      value: older.map((ref) =>
        sources.use((open) => findDuplicates(open(ref), open(newer), { check, range })),
      ),
    }),
  };
}

function encoded(outcome: ScanOutcome): JobResult {
  const bytes = encodeOutcome(outcome);
  return { value: bytes, transfer: [bytes.buffer] };
}
