import {
  type DigestTask,
  type DuplicateTask,
  encodeOutcome,
  encodeStreams,
  encodeTexts,
  encodeVolumes,
  type LabelTask,
  type MatchTask,
  type RowHashTask,
  type RowMask,
  type ScanKind,
  type ScanOutcome,
  type ScanPlan,
  type ScanTask,
  type SharedTask,
  type StreamTask,
  type VolumeTask,
} from "@skald/contracts";
import type { LeafPlan, LogPlan } from "@skald/logql";
import type { JobContext, JobHandler, JobResult } from "@skald/runtime";
import { type LocalRef, type SlotRange, SlotsMissing } from "@skald/storage";
import { type CountDayTask, countDay, OpenIndexes } from "./count/count-day.js";
import { findDuplicates } from "./dedup/find-duplicates.js";
import { BlockDigestCache, digestSources } from "./dedup/minute-digests.js";
import { placeHashes } from "./dedup/place-hashes.js";
import { findShared } from "./dedup/shared-rows.js";
import { scanLog } from "./plans/scan-log.js";
import { scanMatches } from "./plans/scan-matches.js";
import { measureScan, scanMetric } from "./plans/scan-metric.js";
import { isMissing, type MissingSlots, missingSlots } from "./remote/missing.js";
import {
  countCached,
  missingDigests,
  missingIndexes,
  missingOfMatches,
  missingOfMeasure,
  missingOfScan,
  missingOfVolumes,
  missingRowHashes,
  missingTimes,
  refuseMissing,
} from "./remote/slot-needs.js";
import { type OpenedImage, SourceCache } from "./source/cache.js";
import { ScanMemory } from "./source/page-memory.js";
import type { OpenSource } from "./source/source.js";
import { refsOf } from "./source/task-refs.js";
import type { ScanContext } from "./source/view.js";
import { scanLabels, scanStreams } from "./streams/scan-streams.js";
import { scanVolumes } from "./volume/scan-volumes.js";

/** Open files per thread. */
const maxOpenSegments = 256;
/** Segments that a thread remembers: 30 KB of objects each, beside their indexes. */
const maxSegments = 3000;
/** Decoded indexes that a thread holds on to; those of many streams are the same memory in all threads. */
export const maxIndexBytes = 384 * 1024 * 1024;

/** What a job answers: its value, or what it misses, and the indexes that it had to decode, for the other threads. */
export interface ScanReply<T> {
  readonly value: T | MissingSlots;
  readonly decoded: readonly OpenedImage[];
}

/** A job for each kind of scan, and those that only a pool knows. */
export type ScanJob = ScanKind | "countDay" | "decode" | "forget";

/** The jobs of `ScanPool`, for a worker thread. */
export function scanJobs(): Record<ScanJob, JobHandler> {
  const sources = new SourceCache({ maxOpenSegments, maxSegments, maxIndexBytes });
  const memory = new ScanMemory();
  const digests = new BlockDigestCache();
  const indexes = new OpenIndexes();
  const use = useOf(sources);
  const reply = <T>(value: T | MissingSlots): JobResult => {
    const answer: ScanReply<T> = { value, decoded: sources.takeDecoded() };
    return value instanceof Uint8Array
      ? { value: answer, transfer: [value.buffer as ArrayBuffer] }
      : { value: answer };
  };
  const scanWith =
    <Plan extends ScanPlan>(
      scan: (task: ScanTask<Plan, LocalRef>, open: OpenSource, context: ScanContext) => ScanOutcome,
    ) =>
    (task: ScanTask<Plan, LocalRef>, { check }: JobContext): JobResult => {
      const found = use(
        (open) => countCached(task, open, () => scan(task, open, { check, memory })),
        (open) => missingOfScan(task, open, { check }),
      );
      return reply(isMissing(found) ? found : encodeOutcome(found));
    };
  const scanLogs = scanWith(scanLog);
  const scanMetrics = scanWith(scanMetric);
  return {
    scan: (task: ScanTask<ScanPlan, LocalRef>, context: JobContext): JobResult =>
      "log" in task.plan
        ? scanLogs(task as ScanTask<LogPlan, LocalRef>, context)
        : scanMetrics(task as ScanTask<LeafPlan, LocalRef>, context),
    measure: (task: ScanTask<ScanPlan, LocalRef>, { check }: JobContext): JobResult => {
      const found = use(
        (open) => measureScan(task, open, { check }),
        (open) => missingOfMeasure(task, open, { check }),
      );
      return reply(found);
    },
    volumes: (task: VolumeTask<LocalRef>, { check }: JobContext): JobResult => {
      const found = use(
        (open) => countCached(task, open, () => scanVolumes(task, open, { check, memory })),
        (open) => missingOfVolumes(task, open, { check }),
      );
      return reply(isMissing(found) ? found : encodeVolumes(found));
    },
    streams: (task: StreamTask<LocalRef>, { check }: JobContext): JobResult => {
      const found = use(
        (open) => scanStreams(task, open, check),
        (open) => missingIndexes(task, open),
      );
      return reply(isMissing(found) ? found : encodeStreams(found));
    },
    labels: (task: LabelTask<LocalRef>, { check }: JobContext): JobResult => {
      const found = use(
        (open) => scanLabels(task, open, check),
        (open) => missingIndexes(task, open),
      );
      return reply(isMissing(found) ? found : encodeTexts(found));
    },
    forget: ({ path }: { readonly path: string }): JobResult => {
      sources.forget(path);
      return { value: undefined };
    },
    duplicates: (task: DuplicateTask<LocalRef>, { check }: JobContext): JobResult => {
      const [newer, ...older] = refsOf(task) as [LocalRef, ...LocalRef[]];
      const { range } = task;
      const masks: RowMask[] = [];
      for (const ref of older) {
        const mask = use(
          (open) => findDuplicates(open(ref), open(newer), { check, range }),
          (open) => missingTimes(task, open),
        );
        if (isMissing(mask)) return reply(mask);
        masks.push(mask);
      }
      return reply(masks);
    },
    sharedRows: (task: SharedTask<LocalRef>, { check }: JobContext): JobResult => {
      const { sources: _, ...wanted } = task;
      const found = use(
        (open) => findShared(refsOf(task).map(open), { check, ...wanted }),
        (open) => missingTimes(task, open),
      );
      return reply(found);
    },
    // The answer is what comes with every answer: the indexes that were decoded for it.
    decode: (task: Pick<SharedTask<LocalRef>, "sources">): JobResult => {
      const found = use(
        (open) => {
          for (const ref of refsOf(task)) open(ref);
        },
        (open) => missingIndexes(task, open),
      );
      return reply(found);
    },
    digests: (task: DigestTask<LocalRef>, { check }: JobContext): JobResult => {
      const found = use(
        (open) => digestSources(task, open, { check }, digests),
        (open) => missingDigests(task, open),
      );
      return reply(found);
    },
    rowHashes: (task: RowHashTask<LocalRef>, { check }: JobContext): JobResult => {
      const found = use(
        (open) => placeHashes(task, open, { check }),
        (open) => missingRowHashes(task, open),
      );
      return reply(found);
    },
    countDay: (task: CountDayTask, { check }: JobContext): JobResult =>
      reply(countDay(task, indexes.of(task), { check })),
    matches: (task: MatchTask<LocalRef>, { check }: JobContext): JobResult => {
      const found = use(
        (open) => scanMatches(task, open, { check, memory }),
        (open) => missingOfMatches(task, open, { check }),
      );
      return reply(found);
    },
  };
}

/** Runs work over sources; answers what is missing of them in the cache, where it cannot be done without. */
function useOf(sources: SourceCache) {
  return <T>(
    work: (open: OpenSource) => T,
    missing: (open: OpenSource) => SlotRange[],
  ): T | MissingSlots => {
    try {
      return sources.use((open) => {
        try {
          return work(open);
        } catch (error) {
          // Of all sources, not only of the first that was met.
          if (error instanceof SlotsMissing) refuseMissing(missing(open));
          throw error;
        }
      });
    } catch (error) {
      if (error instanceof SlotsMissing) return missingSlots(error);
      throw error;
    }
  };
}
