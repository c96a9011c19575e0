import {
  type AnswerOf,
  encodeOutcome,
  encodeStreams,
  encodeTexts,
  encodeVolumes,
  type RowMask,
  type ScanKind,
  type ScanTask,
  type TaskOf,
  type TaskSource,
} from "@skald/contracts";
import type { Findings, LeafPlan, LogPlan } from "@skald/logql";
import { freeBytes, type ReadStats } from "@skald/model";
import type { JobContext, JobHandler, JobResult } from "@skald/runtime";
import { isCached, type LocalRef, type SlotRange, SlotsMissing, slotBytes } from "@skald/storage";
import { BlockDigestCache, digestSources, placeHashes } from "./dedup/minute-digests.js";
import { findShared } from "./dedup/shared-rows.js";
import { type CountDayTask, countDay, OpenIndexes } from "./scans/counting-catalog.js";
import { scanLog } from "./scans/log.js";
import { type FoundMatches, scanMatches } from "./scans/matches.js";
import { measureScan, scanMetric } from "./scans/metric.js";
import { scanLabels, scanStreams } from "./scans/streams.js";
import { scanVolumes } from "./scans/volumes.js";
import * as needs from "./slot-needs.js";
import { type ScanContext, ScanMemory } from "./source/block-reader.js";
import { type OpenedImage, SourceCache } from "./source/cache.js";
import { KeptBlocks } from "./source/kept-blocks.js";
import { type OpenSource, refsOf, type Source } from "./source/source.js";

/** Open files per thread. */
const maxOpenSegments = 256;
/** Segments that a thread remembers: 30 KB of objects each, beside their indexes. */
const maxSegments = 3000;
/** Decoded indexes that a thread keeps. All threads share the memory of indexes with many streams. */
export const maxIndexBytes = 384 * 1024 * 1024;

/** The answer of a job: its value or the slots that it misses, and for the other threads the indexes that it decoded and what it found. */
export interface ScanReply<T> {
  readonly value: T | MissingSlots;
  readonly decoded: readonly OpenedImage[];
  readonly found?: readonly PlacedFindings[];
}

/** Findings in the segment of a place. */
interface PlacedFindings {
  readonly place: string;
  readonly findings: Findings;
}

/** The answer of a job that misses slots: errors lose their class on the way between threads. */
interface MissingSlots {
  readonly missingSlots: readonly SlotRange[];
}

export function isMissing(value: unknown): value is MissingSlots {
  return typeof value === "object" && value !== null && "missingSlots" in value;
}

/** The jobs of `ScanPool`: one for each kind of scan, and those of the pool alone. */
export type ScanJob = ScanKind | "countDay" | "decode" | "forget";

/** The jobs of `ScanPool`, for a worker thread. */
export function scanJobs(): Record<ScanJob, JobHandler> {
  const kept = new KeptBlocks();
  const onClose = (source: Source) => kept.forget(source);
  const sources = new SourceCache({ maxOpenSegments, maxSegments, maxIndexBytes, onClose });
  const thread = { memory: new ScanMemory(), digests: new BlockDigestCache(), kept };
  const indexes = new OpenIndexes();
  const jobOf =
    <Task>({ run, missing }: ThreadScan<Task, unknown>): JobHandler =>
    (task: Task, { check }: JobContext): JobResult => {
      const found: PlacedFindings[] = [];
      const onFindings = (place: string, findings: Findings) => {
        found.push({ place, findings });
      };
      const context = { ...thread, check, onFindings };
      const value = runOrMissing(sources, {
        run: (open) => run(task, open, context),
        missing: (open) => missing(task, open, context),
      });
      const reply: ScanReply<unknown> = { value, decoded: sources.takeDecoded(), found };
      const isBytes = value instanceof Uint8Array;
      return isBytes ? { value: reply, transfer: [value.buffer as ArrayBuffer] } : { value: reply };
    };
  const scans = Object.entries<ThreadScan<never, unknown>>(threadScans);
  const jobs = scans.map(([kind, scan]) => [kind, jobOf(scan)]);
  return {
    ...(Object.fromEntries(jobs) as Record<ScanKind, JobHandler>),
    decode: jobOf(decode),
    countDay: (task: CountDayTask, { check }: JobContext) => ({
      value: { value: countDay(task, indexes.of(task), { check }), decoded: [] },
    }),
    forget: ({ path }: { readonly path: string }) => {
      sources.forget(path);
      return { value: undefined };
    },
  };
}

interface ThreadContext extends ScanContext {
  readonly digests: BlockDigestCache;
}

/** How a thread answers one kind of scan, and which slots the cache lacks for it. */
interface ThreadScan<Task, Answer> {
  readonly run: (task: Task, open: OpenSource, context: ThreadContext) => Answer;
  readonly missing: (task: Task, open: OpenSource, context: ThreadContext) => SlotRange[];
}

/** The pool unites the masks of these kinds. */
export type ThreadAnswer<K extends ScanKind> = K extends "duplicates"
  ? readonly RowMask[]
  : K extends "matches"
    ? FoundMatches
    : AnswerOf<K>;

export const threadScans: {
  readonly [K in ScanKind]: ThreadScan<TaskOf<K, LocalRef>, ThreadAnswer<K>>;
} = {
  scan: {
    run: (task, open, context) => {
      const scan = () =>
        "log" in task.plan
          ? scanLog(task as ScanTask<LogPlan, LocalRef>, open, context)
          : scanMetric(task as ScanTask<LeafPlan, LocalRef>, open, context);
      const outcome = countCached(task, open, scan);
      const bytes = encodeOutcome(outcome);
      if ("lines" in outcome.partial) freeBytes(outcome.partial.lines.bytes);
      return bytes;
    },
    missing: needs.missingOfScan,
  },
  measure: { run: measureScan, missing: needs.missingOfMeasure },
  volumes: {
    run: (task, open, context) =>
      encodeVolumes(countCached(task, open, () => scanVolumes(task, open, context))),
    missing: needs.missingOfVolumes,
  },
  streams: {
    run: (task, open, { check }) => encodeStreams(scanStreams(task, open, check)),
    missing: needs.missingIndexes,
  },
  labels: {
    run: (task, open, { check }) => encodeTexts(scanLabels(task, open, check)),
    missing: needs.missingIndexes,
  },
  duplicates: {
    run: (task, open, { check }) => {
      const [newer, ...older] = refsOf(task);
      const { range } = task;
      return older.map(
        (ref) => findShared([ref, newer!].map(open), { check, range, wantedFrom: 1 })[0]!,
      );
    },
    missing: needs.missingTimes,
  },
  sharedRows: {
    run: ({ sources, wantedFrom, part }, open, { check }) =>
      findShared(refsOf({ sources }).map(open), { check, wantedFrom, part }),
    missing: needs.missingTimes,
  },
  digests: {
    run: (task, open, context) => digestSources(task, open, context, context.digests),
    missing: needs.missingDigests,
  },
  rowHashes: { run: placeHashes, missing: needs.missingRowHashes },
  matches: { run: scanMatches, missing: needs.missingOfMatches },
};

/** Decodes indexes. The answer of every job brings those along. */
const decode: ThreadScan<{ readonly sources: readonly TaskSource<LocalRef>[] }, void> = {
  run: (task, open) => {
    for (const ref of refsOf(task)) open(ref);
  },
  missing: needs.missingIndexes,
};

/** Runs a scan over sources of the cache. Returns all that is missing when it meets a missing slot. */
function runOrMissing<T>(
  sources: SourceCache,
  scan: { run: (open: OpenSource) => T; missing: (open: OpenSource) => SlotRange[] },
): T | MissingSlots {
  try {
    return sources.use((open) => {
      try {
        return scan.run(open);
      } catch (error) {
        if (!(error instanceof SlotsMissing)) throw error;
        const missingSlots = scan.missing(open);
        return { missingSlots: missingSlots.length > 0 ? missingSlots : error.ranges };
      }
    });
  } catch (error) {
    if (error instanceof SlotsMissing) return { missingSlots: error.ranges };
    throw error;
  }
}

/** Runs a scan, and counts what it read from the cache and what was fetched for it before. */
function countCached<T extends { readonly stats: ReadStats }>(
  task: { readonly sources: readonly TaskSource<LocalRef>[] },
  open: OpenSource,
  scan: () => T,
): T {
  const cached = refsOf(task).filter((ref) => isCached(ref));
  const first = cached[0];
  if (first === undefined) return scan();
  const sources = [...new Set(cached.map(open))];
  const slotsRead = () => sources.reduce((sum, one) => sum + (one.cached?.slotsRead() ?? 0), 0);
  const before = slotsRead();
  const outcome = scan();
  const { stats } = outcome;
  const { requests, slots, bytes, ns } = first.fetched;
  const hits = Math.max(0, slotsRead() - before - slots);
  stats.fetchedRanges += requests;
  stats.fetchedPages += slots;
  stats.fetchedBytes += bytes;
  stats.downloadNs += ns;
  stats.cachedPages += hits;
  stats.cachedBytes += hits * slotBytes;
  return outcome;
}
