import {
  type DuplicateTask,
  encodeOutcome,
  encodeStreams,
  encodeTexts,
  type LabelTask,
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
import { type OpenedImage, SourceCache } from "./source/cache.js";
import { scanLabels, scanStreams } from "./streams/scan-streams.js";

/** Open files per thread. */
const maxOpenSegments = 256;
/** Decoded indexes that a thread holds on to; those of many streams are the same memory in all threads. */
export const maxIndexBytes = 384 * 1024 * 1024;

/** What a job answers: its value, and the indexes that it had to decode, for the other threads. */
export interface ScanReply<T> {
  readonly value: T;
  readonly decoded: readonly OpenedImage[];
}

/** The jobs of `ScanPool`, for a worker thread. */
export function scanJobs(): Record<string, JobHandler> {
  const sources = new SourceCache({ maxOpenSegments, maxIndexBytes });
  const memory = new ScanMemory();
  const reply = <T>(value: T): ScanReply<T> => ({ value, decoded: sources.takeDecoded() });
  const bytes = (value: Uint8Array<ArrayBuffer>): JobResult => ({
    value: reply(value),
    transfer: [value.buffer],
  });
  return {
    scan_metric: (task: ScanTask<LeafPlan, LocalRef>, { check }: JobContext): JobResult => {
      const outcome = sources.use((open) => scanMetric(task, open, { check, memory }));
      return bytes(encodeOutcome(outcome));
    },
    scan_log: (task: ScanTask<LogPlan, LocalRef>, { check }: JobContext): JobResult => {
      const outcome = sources.use((open) => scanLog(task, open, { check, memory }));
      return bytes(encodeOutcome(outcome));
    },
    measure: (task: ScanTask<ScanPlan, LocalRef>, { check }: JobContext): JobResult => ({
      value: reply(sources.use((open) => measureScan(task, open, { check }))),
    }),
    streams: (task: StreamTask<LocalRef>, { check }: JobContext): JobResult =>
      bytes(encodeStreams(sources.use((open) => scanStreams(task, open, check)))),
    labels: (task: LabelTask<LocalRef>, { check }: JobContext): JobResult =>
      bytes(encodeTexts(sources.use((open) => scanLabels(task, open, check)))),
    forget: ({ path }: { readonly path: string }): JobResult => {
      sources.forget(path);
      return { value: undefined };
    },
    duplicates: (
      { older, newer, range }: DuplicateTask<LocalRef>,
      { check }: JobContext,
    ): JobResult => {
      const masks = older.map((ref) =>
        sources.use((open) => findDuplicates(open(ref), open(newer), { check, range })),
      );
      return { value: reply(masks) };
    },
  };
}
