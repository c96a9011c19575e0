import { createHash } from "node:crypto";
import type {
  AnswerOf,
  DuplicateTask,
  MatchedRows,
  MatchTask,
  RowMask,
  ScanFunctions,
  ScanKind,
  ScanOptions,
  ScanPlan,
  ScanTask,
  SegmentScanner,
  SharedTask,
  TaskOf,
} from "@skald/contracts";
import { findingsKey } from "@skald/logql";
import type { SegmentRef } from "@skald/model";
import type { WorkerPool } from "@skald/runtime";
import { type LocalRef, SlotsMissing } from "@skald/storage";
import { LRUCache } from "lru-cache";
import {
  isMissing,
  maxIndexBytes,
  type ScanJob,
  type ScanReply,
  type ThreadAnswer,
} from "./jobs.js";
import type { CountDayTask, DayCount } from "./scans/counting-catalog.js";
import { type ImagedRef, placeOf } from "./source/cache.js";
import { KeptFindings } from "./source/kept-findings.js";
import { maskBytes, shareMask, uniteMasks } from "./source/row-mask.js";
import { refsOf, sourcesOf, withRefs } from "./source/source.js";

/** Scans of queries that read no more than this do not wait for scans of larger queries. */
export const urgentBytes = 8 * 1024 * 1024;

/** Memory for duplicate and deleted rows of segments. Segments never change, and so these rows never do. */
const maxRememberedBytes = 64 * 1024 * 1024;

/** Scans on the worker threads of this process. */
export class ScanPool implements SegmentScanner<LocalRef> {
  readonly #pool: Pick<WorkerPool, "run" | "broadcast">;
  readonly #masks = new LRUCache<string, RowMask>({
    maxSize: maxRememberedBytes,
    sizeCalculation: maskBytes,
  });

  /** Rows of a segment that a filter names, or several filters together. */
  readonly #matched = new LRUCache<string, MatchedRows>({
    maxSize: maxRememberedBytes,
    sizeCalculation: ({ mask }) => maskBytes(mask),
  });

  /** Decoded indexes of segments with many streams, by place. One thread decodes each, and all threads read it. */
  readonly #images = new LRUCache<string, SharedArrayBuffer>({
    maxSize: maxIndexBytes,
    sizeCalculation: ({ byteLength }) => byteLength,
    dispose: (_, place, reason) => {
      if (reason === "evict") this.#pool.broadcast("forget", { path: place });
    },
  });

  /** What scans found in segments. */
  readonly #findings = new KeptFindings();

  /** Indexes that a thread decodes now for several threads, by place. */
  readonly #decoding = new Map<string, Promise<unknown>>();

  /** The kinds whose answers are remembered. */
  readonly #remembered: Partial<ScanFunctions<LocalRef, ScanKind>> = {
    duplicates: (task, options) => this.#duplicates(task, options),
    matches: (task, options) => this.#matches(task, options),
    sharedRows: (task, options) => this.#sharedRows(task, options),
  };

  constructor(pool: Pick<WorkerPool, "run" | "broadcast">) {
    this.#pool = pool;
  }

  run<K extends ScanKind>(
    kind: K,
    task: TaskOf<K, LocalRef>,
    options: ScanOptions,
  ): Promise<AnswerOf<K>> {
    const remembered = this.#remembered[kind];
    if (remembered !== undefined) return remembered(task, options);
    return this.#scan(kind, task, options) as Promise<AnswerOf<K>>;
  }

  async #duplicates(task: DuplicateTask<LocalRef>, options: ScanOptions): Promise<RowMask> {
    const [newer, ...older] = refsOf(task) as [LocalRef, ...LocalRef[]];
    if (newer.kind === "head") {
      return uniteMasks(await this.#scan("duplicates", task, options));
    }
    const keys = older.map((ref) => `${ref.id}|${newer.id}`);
    const all = keys.join();
    const united = this.#masks.get(all);
    if (united !== undefined) return united;
    const known = keys.map((key) => this.#masks.get(key));
    const missing = older.filter((_, i) => known[i] === undefined);
    if (missing.length > 0) {
      const asked = { sources: sourcesOf([newer, ...missing]) };
      const found = (await this.#scan("duplicates", asked, options)).values();
      for (const [i, key] of keys.entries()) {
        if (known[i] !== undefined) continue;
        known[i] = found.next().value!;
        this.#masks.set(key, known[i]);
      }
    }
    // Shared memory: the same rows go to a thread with every scan of the segment.
    const result = shareMask(uniteMasks(known.filter((part) => part !== undefined)));
    this.#masks.set(all, result);
    return result;
  }

  /** Remembers the rows of each segment together with the earlier segments that it was compared with. */
  async #sharedRows(task: SharedTask<LocalRef>, options: ScanOptions): Promise<readonly RowMask[]> {
    const { sources, wantedFrom, part = { index: 0, count: 1 } } = task;
    const suffix = `|${part.index}/${part.count}`;
    const keys = meetingKeys(refsOf(task))
      .slice(wantedFrom)
      .map((key) => key + suffix);
    const known = keys.map((key) => this.#masks.get(key));
    const missing = known.indexOf(undefined);
    if (missing >= 0) {
      await this.#decodeTogether(refsOf(task), part, options);
      const asked = { sources, wantedFrom: wantedFrom + missing, part };
      const found = await this.#scan("sharedRows", asked, options);
      found.forEach((mask, i) => {
        known[missing + i] = shareMask(mask);
        this.#masks.set(keys[missing + i]!, known[missing + i]!);
      });
    }
    return known as RowMask[];
  }

  /** Where several threads compare the same segments, each thread decodes some of the indexes for all of them. */
  async #decodeTogether(
    sources: readonly LocalRef[],
    { index, count }: NonNullable<SharedTask["part"]>,
    options: ScanOptions,
  ): Promise<void> {
    if (count === 1) return;
    const left = sources
      .flatMap((ref) => (ref.kind === "segment" ? [{ ref, place: placeOf(ref) }] : []))
      .filter(({ place }) => !this.#images.has(place));
    const own = left.filter(({ place }, i) => i % count === index && !this.#decoding.has(place));
    if (own.length > 0) {
      const refs = own.map(({ ref }) => ref);
      const decoding = this.#run("decode", { sources: sourcesOf(refs) }, options).finally(() => {
        for (const { place } of own) this.#decoding.delete(place);
      });
      for (const { place } of own) this.#decoding.set(place, decoding);
      await decoding;
    }
    // An index that another thread fails to decode is decoded again where it is read, and fails there.
    await Promise.allSettled(left.map(({ place }) => this.#decoding.get(place)));
  }

  async #matches(task: MatchTask<LocalRef>, options: ScanOptions): Promise<MatchedRows> {
    const { sources, filters } = task;
    const [source] = refsOf(task) as [LocalRef];
    const ids = filters.flatMap(({ id }) => (id === undefined ? [] : [id]));
    // Nobody asks again for filters without an id, and heads grow.
    if (source.kind === "head" || ids.length < filters.length) {
      const { masks, rowCount } = await this.#scan("matches", task, options);
      return { mask: shareMask(uniteMasks(masks)), rowCount };
    }
    const keys = ids.map((id) => `${source.id}|${id}`);
    const all = `${source.id}|${ids.join()}`;
    const united = this.#matched.get(all);
    if (united !== undefined) return united;
    const known = keys.map((key) => this.#matched.get(key));
    const missing = filters.filter((_, i) => known[i] === undefined);
    const { masks, rowCount } = await this.#scan("matches", { sources, filters: missing }, options);
    const found = masks.values();
    const parts = known.map((part, i) => {
      if (part !== undefined) return part.mask;
      const mask = found.next().value!;
      this.#matched.set(keys[i]!, { mask, rowCount });
      return mask;
    });
    const result = { mask: shareMask(uniteMasks(parts)), rowCount };
    this.#matched.set(all, result);
    return result;
  }

  /** Counts a leaf by the index of a day. */
  countDay(task: CountDayTask, options: ScanOptions): Promise<DayCount> {
    return this.#run("countDay", task, options);
  }

  /** Makes every thread close the file of a deleted segment, which takes a descriptor and its place on disk until then. */
  forget(path: string): void {
    this.#images.delete(path);
    this.#findings.forget(path);
    this.#pool.broadcast("forget", { path });
  }

  /** Runs a scan on a thread. Its sources come with the indexes that threads have decoded, and what they have found, before. */
  #scan<K extends ScanKind>(
    kind: K,
    task: TaskOf<K, LocalRef>,
    options: ScanOptions,
  ): Promise<ThreadAnswer<K>> {
    const plan = kind === "scan" ? (task as ScanTask<ScanPlan, LocalRef>).plan : undefined;
    const isFound = plan !== undefined && refsOf(task).some(isSegment);
    const key = isFound ? findingsKey(plan) : undefined;
    const refs = refsOf<LocalRef>(task).map((ref): ImagedRef => {
      if (!isSegment(ref)) return ref;
      const place = placeOf(ref);
      const image = this.#images.get(place);
      const findings = key === undefined ? undefined : this.#findings.of(place, key);
      return {
        ...ref,
        ...(image === undefined ? {} : { image }),
        ...(findings === undefined ? {} : { findings }),
      };
    });
    return this.#run(kind, withRefs<K, ImagedRef>(task, refs), options, key);
  }

  /** Throws SlotsMissing when the cache lacks a part of a source that the job needs. */
  async #run<T>(
    name: ScanJob,
    payload: unknown,
    { signal, share, background = false }: ScanOptions,
    key?: string,
  ): Promise<T> {
    const asked = share.cost <= urgentBytes ? "urgent" : "query";
    const {
      value,
      decoded,
      found = [],
    } = await this.#pool.run<ScanReply<T>>(name, payload, {
      lane: background ? "background" : asked,
      share,
      signal,
    });
    for (const { place, image } of decoded) this.#images.set(place, image);
    if (key !== undefined)
      for (const { place, findings } of found) this.#findings.add(place, key, findings);
    if (isMissing(value)) throw new SlotsMissing(value.missingSlots);
    return value;
  }
}

function isSegment(ref: LocalRef): ref is SegmentRef {
  return ref.kind === "segment";
}

const maxHashes = 20_000;
const hashes = new LRUCache<string, readonly [number, number]>({ max: maxHashes });

/**
 * Keys of sources, in order of their first times. A key is the same when a source and the earlier sources that it meets in time are the
 * same: then it shares the same rows with them.
 */
export function meetingKeys(sources: readonly LocalRef[]): string[] {
  const byEnd = [...sources.keys()].sort((a, b) => {
    const [first, second] = [sources[a]!.maxNs, sources[b]!.maxNs];
    return first < second ? -1 : first > second ? 1 : 0;
  });
  // Sums of the hashes of the earlier sources that have not ended.
  let low = 0;
  let high = 0;
  let ended = 0;
  return sources.map(({ id, minNs }) => {
    for (; sources[byEnd[ended]!]!.maxNs < minNs; ended++) {
      const [ownLow, ownHigh] = hashOf(sources[byEnd[ended]!]!.id);
      low = (low - ownLow) >>> 0;
      high = (high - ownHigh) >>> 0;
    }
    const key = `${id}|${low},${high}`;
    const [ownLow, ownHigh] = hashOf(id);
    low = (low + ownLow) >>> 0;
    high = (high + ownHigh) >>> 0;
    return key;
  });
}

function hashOf(id: string): readonly [number, number] {
  let known = hashes.get(id);
  if (known === undefined) {
    const digest = createHash("sha1").update(id).digest();
    known = [digest.readUInt32LE(0), digest.readUInt32LE(4)];
    hashes.set(id, known);
  }
  return known;
}
