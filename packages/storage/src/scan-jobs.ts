import { transferablesOf } from "@skald/logql";
import type { SourceRef } from "@skald/model";
import type { JobContext, JobHandler, JobResult } from "@skald/runtime";
import { findDuplicates } from "./duplicates.js";
import { type ScanTask, scanLog, scanMetric } from "./scan.js";
import { SourceCache } from "./source-cache.js";
import { collectStreams, type StreamTask } from "./stream-scan.js";

/** Open files per thread. */
const maxOpenSegments = 256;

/** The jobs of `ScanPool`, for a worker thread. */
export function scanJobs(): Record<string, JobHandler> {
  const sources = new SourceCache({ maxOpenSegments });
  return {
    scan_metric: (task: ScanTask, { check }: JobContext): JobResult => {
      const outcome = scanMetric(sources.open(task.source), task, check);
      return { value: outcome, transfer: transferablesOf(outcome.partial) };
    },
    scan_log: (task: ScanTask, { check }: JobContext): JobResult => ({
      value: scanLog(sources.open(task.source), task, check),
    }),
    streams: (task: StreamTask, { check }: JobContext): JobResult => {
      const found = new Set<string>();
      for (const ref of task.sources) {
        check();
        collectStreams(sources.open(ref), task, found);
      }
      return { value: [...found] };
    },
    duplicates: ({ older, newer }: { older: SourceRef; newer: SourceRef }): JobResult => ({
      value: findDuplicates(sources.open(older), sources.open(newer)),
    }),
  };
}
