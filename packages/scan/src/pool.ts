import type {
  DigestTask,
  DuplicateTask,
  EncodedOutcome,
  EncodedStreams,
  LabelTask,
  MatchedRows,
  MatchTask,
  MinuteDigests,
  PlacedHashes,
  RowHashTask,
  RowMask,
  ScanOptions,
  ScanPlan,
  ScanTask,
  SegmentScanner,
  SharedTask,
  StreamTask,
  VolumeTask,
} from "@skald/contracts";
import type { SegmentRef } from "@skald/model";
import type { WorkerPool } from "@skald/runtime";
import { type LocalRef, SlotsMissing } from "@skald/storage";
import { LRUCache } from "lru-cache";
import type { CountDayTask, DayCount } from "./count/count-day.js";
import { meetingKeys } from "./dedup/meeting-keys.js";
import { maskBytes, shareMask, uniteMasks } from "./dedup/row-mask.js";
import { maxIndexBytes, type ScanReply } from "./jobs.js";
import { isMissing } from "./remote/missing.js";
import type { FoundMatches } from "./scan-matches.js";
import { type ImagedRef, placeOf } from "./source/cache.js";

/** Scans of queries that read no more than this do not wait for those of larger ones. */
export const urgentBytes = 8 * 1024 * 1024;

/** Rows of segments that are remembered, duplicates and deleted ones: segments never change, so neither do they. */
const maxRememberedBytes = 64 * 1024 * 1024;

/** Scans on the worker threads of this process. */
export class ScanPool implements SegmentScanner<LocalRef> {
  readonly #pool: Pick<WorkerPool, "run" | "broadcast">;
  readonly #masks = new LRUCache<string, RowMask>({
    maxSize: maxRememberedBytes,
    sizeCalculation: maskBytes,
  });

  /** Rows of a segment that are named by a filter, or by some together. */
  readonly #matches = new LRUCache<string, MatchedRows>({
    maxSize: maxRememberedBytes,
    sizeCalculation: ({ mask }) => maskBytes(mask),
  });

  /** Decoded indexes of segments with many streams, by place: each is decoded by one thread and read by all. */
  readonly #images = new LRUCache<string, SharedArrayBuffer>({
    maxSize: maxIndexBytes,
    sizeCalculation: ({ byteLength }) => byteLength,
    dispose: (_, place, reason) => {
      if (reason === "evict") this.#pool.broadcast("forget", { path: place });
    },
  });

  /** By place, indexes that a thread decodes now for several. */
  readonly #decoding = new Map<string, Promise<unknown>>();

  constructor(pool: Pick<WorkerPool, "run" | "broadcast">) {
    this.#pool = pool;
  }

  scan(task: ScanTask<ScanPlan, LocalRef>, options: ScanOptions): Promise<EncodedOutcome> {
    const name = "log" in task.plan ? "scan_log" : "scan_metric";
    return this.#run(name, this.#imagedTask(task), options);
  }

  measure(task: ScanTask<ScanPlan, LocalRef>, options: ScanOptions): Promise<number> {
    return this.#run("measure", this.#imagedTask(task), options);
  }

  volumes(task: VolumeTask<LocalRef>, options: ScanOptions): Promise<EncodedOutcome> {
    return this.#run("volumes", this.#imagedTask(task), options);
  }

  streams(task: StreamTask<LocalRef>, options: ScanOptions): Promise<EncodedStreams> {
    return this.#run("streams", { ...task, sources: this.#imaged(task.sources) }, options);
  }

  labels(task: LabelTask<LocalRef>, options: ScanOptions): Promise<EncodedStreams> {
    return this.#run("labels", { ...task, sources: this.#imaged(task.sources) }, options);
  }

  async duplicates(task: DuplicateTask<LocalRef>, options: ScanOptions): Promise<RowMask> {
    const { newer, older } = task;
    if (newer.kind === "head") {
      return uniteMasks(await this.#findDuplicates(task, options));
    }
    const keys = older.map((ref) => `${ref.id}|${newer.id}`);
    const all = keys.join();
    const united = this.#masks.get(all);
    if (united !== undefined) return united;
    const known = keys.map((key) => this.#masks.get(key));
    const missing = older.filter((_, i) => known[i] === undefined);
    if (missing.length > 0) {
      const asked: DuplicateTask<LocalRef> = { newer, older: missing };
      const found = await this.#findDuplicates(asked, options);
      for (const [i, key] of keys.entries()) {
        if (known[i] !== undefined) continue;
        known[i] = found.shift() as RowMask;
        this.#masks.set(key, known[i]);
      }
    }
    // Shared memory: the same rows go to a thread with every scan of the segment.
    const result = shareMask(uniteMasks(known.filter((part) => part !== undefined)));
    this.#masks.set(all, result);
    return result;
  }

  /** Each segment's rows are remembered with the earlier ones that it was compared with. */
  async sharedRows(task: SharedTask<LocalRef>, options: ScanOptions): Promise<readonly RowMask[]> {
    const { sources, wantedFrom, part = { index: 0, count: 1 } } = task;
    const suffix = `|${part.index}/${part.count}`;
    const keys = meetingKeys(sources)
      .slice(wantedFrom)
      .map((key) => key + suffix);
    const known = keys.map((key) => this.#masks.get(key));
    const missing = known.indexOf(undefined);
    if (missing >= 0) {
      await this.#decodeTogether(sources, part, options);
      const asked = { sources: this.#imaged(sources), wantedFrom: wantedFrom + missing, part };
      const found = await this.#run<readonly RowMask[]>("shared_rows", asked, options);
      found.forEach((mask, i) => {
        known[missing + i] = shareMask(mask);
        this.#masks.set(keys[missing + i]!, known[missing + i]!);
      });
    }
    return known as RowMask[];
  }

  /** Where several threads compare the same segments, each decodes some of the indexes, and has those of the others from them. */
  async #decodeTogether(
    sources: readonly LocalRef[],
    { index, count }: NonNullable<SharedTask["part"]>,
    options: ScanOptions,
  ): Promise<void> {
    if (count === 1) return;
    const left = sources.filter((ref) => ref.kind === "segment" && !this.#images.has(placeOf(ref)));
    const own = left.filter(
      (ref, i) => i % count === index && !this.#decoding.has(placeOf(ref as SegmentRef)),
    );
    if (own.length > 0) {
      const decoding = this.#run("decode", { sources: own }, options).finally(() => {
        for (const ref of own) this.#decoding.delete(placeOf(ref as SegmentRef));
      });
      for (const ref of own) this.#decoding.set(placeOf(ref as SegmentRef), decoding);
      await decoding;
    }
    // What another thread fails to decode is decoded again, and fails where its reason is told.
    await Promise.allSettled(
      new Set(left.map((ref) => this.#decoding.get(placeOf(ref as SegmentRef)))),
    );
  }

  async matches(task: MatchTask<LocalRef>, options: ScanOptions): Promise<MatchedRows> {
    const { source, filters } = task;
    const ids = filters.flatMap(({ id }) => (id === undefined ? [] : [id]));
    // What nobody asks for again is not remembered, and heads grow.
    if (source.kind === "head" || ids.length < filters.length) {
      const { masks, rowCount } = await this.#findMatches(task, options);
      return { mask: shareMask(uniteMasks(masks)), rowCount };
    }
    const keys = ids.map((id) => `${source.id}|${id}`);
    const all = `${source.id}|${ids.join()}`;
    const united = this.#matches.get(all);
    if (united !== undefined) return united;
    const known = keys.map((key) => this.#matches.get(key));
    const missing = filters.filter((_, i) => known[i] === undefined);
    const { masks, rowCount } = await this.#findMatches({ source, filters: missing }, options);
    const found = [...masks];
    const parts = known.map((part, i) => {
      if (part !== undefined) return part.mask;
      const mask = found.shift() as RowMask;
      this.#matches.set(keys[i] as string, { mask, rowCount });
      return mask;
    });
    const result = { mask: shareMask(uniteMasks(parts)), rowCount };
    this.#matches.set(all, result);
    return result;
  }

  digests(task: DigestTask<LocalRef>, options: ScanOptions): Promise<MinuteDigests> {
    return this.#run("digests", { ...task, sources: this.#imaged(task.sources) }, options);
  }

  rowHashes(task: RowHashTask<LocalRef>, options: ScanOptions): Promise<PlacedHashes> {
    return this.#run("row_hashes", { ...task, sources: this.#imaged(task.sources) }, options);
  }

  /** Counts what the index of a day says of a leaf. */
  countDay(task: CountDayTask, options: ScanOptions): Promise<DayCount> {
    return this.#run("count_day", task, options);
  }

  /** Has every thread close the file of a segment that was deleted: until then it takes a descriptor and its place on disk. */
  forget(path: string): void {
    this.#images.delete(path);
    this.#pool.broadcast("forget", { path });
  }

  #findDuplicates(task: DuplicateTask<LocalRef>, options: ScanOptions): Promise<RowMask[]> {
    const [newer, ...older] = this.#imaged([task.newer, ...task.older]);
    return this.#run("duplicates", { ...task, newer, older }, options);
  }

  #findMatches(task: MatchTask<LocalRef>, options: ScanOptions): Promise<FoundMatches> {
    const [source] = this.#imaged([task.source]);
    return this.#run("matches", { ...task, source }, options);
  }

  #imagedTask(task: Pick<ScanTask<ScanPlan, LocalRef>, "sources">) {
    const refs = this.#imaged(task.sources.map(({ ref }) => ref));
    return { ...task, sources: task.sources.map((source, i) => ({ ...source, ref: refs[i] })) };
  }

  /** The references with the indexes that threads have decoded before. */
  #imaged(refs: readonly LocalRef[]): ImagedRef[] {
    return refs.map((ref) => {
      const image = ref.kind === "segment" ? this.#images.get(placeOf(ref)) : undefined;
      return image === undefined ? ref : { ...ref, image };
    });
  }

  /** Throws SlotsMissing when a source is partly in the cache, and what the job needs of it is not there. */
  async #run<T>(
    name: string,
    payload: unknown,
    { signal, share, background = false }: ScanOptions,
  ): Promise<T> {
    const asked = share.cost <= urgentBytes ? "urgent" : "query";
    const { value, decoded } = await this.#pool.run<ScanReply<T>>(name, payload, {
      lane: background ? "background" : asked,
      share,
      signal,
    });
    for (const { place, image } of decoded) this.#images.set(place, image);
    if (isMissing(value)) throw new SlotsMissing(value.missingSlots);
    return value;
  }
}
