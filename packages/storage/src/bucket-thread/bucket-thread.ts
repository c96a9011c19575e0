import { readFileSync } from "node:fs";
import { threadId } from "node:worker_threads";
import { type JobContext, type JobHandler, serveJobs, WorkerPool } from "@skald/runtime";
import type {
  CallOptions,
  ListOptions,
  ObjectInfo,
  ObjectRange,
  ObjectStore,
  PutOptions,
} from "../object-store/object-store.js";
import type { S3Options, S3Try } from "../object-store/s3/calls.js";
import { S3Store } from "../object-store/s3/s3-store.js";
import type { SlotRange } from "../segment-cache/cached-segment.js";
import {
  type Fetched,
  type HeldObjects,
  type ObjectName,
  SegmentCache,
  type SegmentCacheCalls,
  type SegmentCacheCleaner,
} from "../segment-cache/segment-cache.js";

export interface BucketThreadOptions {
  /** Module whose top level calls `serveBucket`. */
  readonly url: URL;
  readonly place: BucketPlace;
  /** Called with what happened on the thread since the last report. */
  readonly onReport: (report: BucketReport) => void;
  readonly onThreadLost: (error: unknown) => void;
}

/** Where the bucket and its cache are. Every job carries it, because a thread that was replaced knows nothing. */
export interface BucketPlace {
  readonly bucket: Omit<S3Options, "ca" | "onTry">;
  /** File with trusted authorities; empty: those of Node. */
  readonly caFile: string;
  readonly cache: {
    readonly directory: string;
    readonly storeName: string;
    readonly maxBytes: number;
  };
}

export interface BucketReport {
  readonly tries: readonly S3Try[];
  /** Files of the cache that were deleted. */
  readonly dropped: readonly string[];
  /** Why puts are not conditional, when that was found out. */
  readonly fallbacks: readonly string[];
  readonly cacheBytes: number;
}

/** Calls that run at a time; most of them wait for an answer of the bucket. */
const maxCalls = 1024;
const maxQueued = 100_000;

/**
 * A bucket and its cache on a thread of their own, so that requests (headers, hashes, encryption, bodies) take no time from
 * pushes. Only names and places cross threads; bodies go from file to socket and back.
 */
export class BucketThread implements ObjectStore, SegmentCacheCalls, SegmentCacheCleaner {
  readonly #options: BucketThreadOptions;
  readonly #pool: WorkerPool;

  constructor(options: BucketThreadOptions) {
    this.#options = options;
    const { url, onThreadLost } = options;
    this.#pool = new WorkerPool({
      ...{ url, onThreadLost, maxQueued },
      ...{ size: 0, urgentJobs: maxCalls, lazy: true },
    });
  }

  /** Finds the segments that earlier processes left in the cache. */
  open(): Promise<void> {
    return this.#run("open", {});
  }

  async close(): Promise<void> {
    await this.#run("close", {}).catch(() => {});
    await this.#pool.close();
  }

  put(key: string, body: Uint8Array, { signal, ifAbsent = false }: PutOptions) {
    return this.#run("put", { key, body, ifAbsent }, signal);
  }

  putFile(key: string, path: string, { signal, ifAbsent = false }: PutOptions) {
    return this.#run("put_file", { key, path, ifAbsent }, signal);
  }

  get(key: string, { signal }: CallOptions) {
    return this.#run("get", { key }, signal);
  }

  stat(key: string, { signal }: CallOptions) {
    return this.#run("stat", { key }, signal);
  }

  getRange(key: string, range: ObjectRange, { signal }: CallOptions) {
    return this.#run("get_range", { key, range }, signal);
  }

  async *list(prefix: string, { signal, ...options }: ListOptions): AsyncIterable<ObjectInfo> {
    yield* await this.#run("list", { prefix, ...options }, signal);
  }

  async *folders(prefix: string, { signal }: CallOptions): AsyncIterable<string> {
    yield* await this.#run("folders", { prefix }, signal);
  }

  delete(key: string, { signal }: CallOptions): Promise<void> {
    return this.#run("delete", { key }, signal);
  }

  async hold(objects: readonly ObjectName[]): Promise<HeldObjects> {
    const held = await this.#run("hold", { objects });
    const release = () => {
      // It fails if the thread died, which released everything.
      this.#run("release", { hold: held.hold }).catch(() => {});
    };
    return { objects: held.objects, release };
  }

  fetch(ranges: readonly SlotRange[], signal: AbortSignal): Promise<Fetched> {
    return this.#run("fetch", { ranges }, signal);
  }

  drop(key: string): Promise<void> {
    return this.#run("drop", { key });
  }

  dropGone(prefix: string, { signal }: CallOptions): Promise<void> {
    return this.#run("drop_gone", { prefix }, signal);
  }

  #run<Name extends keyof Calls>(
    name: Name,
    asked: Asked<Name>,
    signal?: AbortSignal,
  ): Promise<Awaited<ReturnType<Calls[Name]>>> {
    const { place, onReport } = this.#options;
    const report = (news: BucketReport) => ({ value: onReport(news) });
    const options = { lane: "urgent", host: { report } } as const;
    const job: BucketJob = { place, asked };
    return this.#pool.run(name, job, signal === undefined ? options : { ...options, signal });
  }
}

interface BucketJob {
  readonly place: BucketPlace;
  readonly asked: unknown;
}

/** The state of the thread: one bucket and its cache. */
interface OpenBucket {
  readonly store: S3Store;
  readonly cache: SegmentCache;
  /** Resolves when the cache knows the segments that earlier processes left; undefined before the first try and after a failure. */
  ready: Promise<void> | undefined;
  readonly holds: Map<string, () => void>;
}

type Calls = typeof calls;
type Asked<Name extends keyof Calls> = Parameters<Calls[Name]>[1];

let lastHold = 0;

/** The calls on the thread, by name. */
const calls = {
  put: (
    { store }: OpenBucket,
    { key, body, ifAbsent }: { key: string; body: Uint8Array; ifAbsent: boolean },
    { signal }: JobContext,
  ) => store.put(key, body, { ifAbsent, signal }),
  put_file: (
    { store }: OpenBucket,
    { key, path, ifAbsent }: { key: string; path: string; ifAbsent: boolean },
    { signal }: JobContext,
  ) => store.putFile(key, path, { ifAbsent, signal }),
  get: ({ store }: OpenBucket, { key }: { key: string }, context: JobContext) =>
    store.get(key, context),
  stat: ({ store }: OpenBucket, { key }: { key: string }, context: JobContext) =>
    store.stat(key, context),
  get_range: (
    { store }: OpenBucket,
    { key, range }: { key: string; range: ObjectRange },
    context: JobContext,
  ) => store.getRange(key, range, context),
  list: (
    { store }: OpenBucket,
    { prefix, ...options }: { prefix: string; after?: string },
    { signal }: JobContext,
  ) => collected(store.list(prefix, { ...options, signal })),
  folders: ({ store }: OpenBucket, { prefix }: { prefix: string }, context: JobContext) =>
    collected(store.folders(prefix, context)),
  delete: ({ store }: OpenBucket, { key }: { key: string }, context: JobContext) =>
    store.delete(key, context),
  open: (bucket: OpenBucket, _: object) => openCache(bucket),
  hold: async (bucket: OpenBucket, { objects }: { objects: readonly ObjectName[] }) => {
    await openCache(bucket);
    const held = await bucket.cache.hold(objects);
    // The id of the thread tells its holds from those of a thread that died before.
    const hold = `${threadId} ${++lastHold}`;
    bucket.holds.set(hold, held.release);
    return { hold, objects: held.objects };
  },
  release: ({ holds }: OpenBucket, { hold }: { hold: string }) => {
    holds.get(hold)?.();
    holds.delete(hold);
  },
  fetch: (
    { cache }: OpenBucket,
    { ranges }: { ranges: readonly SlotRange[] },
    { signal }: JobContext,
  ) => cache.fetch(ranges, signal),
  drop: async (bucket: OpenBucket, { key }: { key: string }) => {
    await openCache(bucket);
    await bucket.cache.drop(key);
  },
  drop_gone: async (bucket: OpenBucket, { prefix }: { prefix: string }, { signal }: JobContext) => {
    await openCache(bucket);
    await bucket.cache.dropGone(prefix, { signal });
  },
  close: async ({ cache, store }: OpenBucket, _: object) => {
    await cache.close();
    await store.close();
  },
};

/** Serves the calls of a `BucketThread` on this worker thread. */
export function serveBucket(): void {
  const news = { tries: [] as S3Try[], dropped: [] as string[], fallbacks: [] as string[] };
  let opened: OpenBucket | undefined;
  const serve =
    (call: (bucket: OpenBucket, asked: never, context: JobContext) => unknown): JobHandler =>
    async ({ place, asked }: BucketJob, context) => {
      opened ??= openBucket(place, news);
      try {
        return { value: await call(opened, asked as never, context) };
      } finally {
        report(news, opened.cache.bytes, context);
      }
    };
  serveJobs(Object.fromEntries(Object.entries(calls).map(([name, call]) => [name, serve(call)])));
}

/** What happened since the last report. */
type News = {
  [Kind in "tries" | "dropped" | "fallbacks"]: BucketReport[Kind][number][];
};

function openBucket({ bucket, caFile, cache }: BucketPlace, news: News): OpenBucket {
  const ca = caFile === "" ? {} : { ca: readFileSync(caFile, "utf8") };
  const store = new S3Store(
    { ...bucket, ...ca, onTry: (one) => news.tries.push(one) },
    { onFallback: (why) => news.fallbacks.push(why) },
  );
  const onDropped = (path: string) => news.dropped.push(path);
  return {
    ...{ store, cache: new SegmentCache({ ...cache, store, onDropped }) },
    ...{ ready: undefined, holds: new Map() },
  };
}

/** Opens the cache once; tries again after a failure of the disk. */
function openCache(bucket: OpenBucket): Promise<void> {
  bucket.ready ??= bucket.cache.open().catch((error: unknown) => {
    bucket.ready = undefined;
    throw error;
  });
  return bucket.ready;
}

/** Nobody waits for a report: one that is lost is not counted. */
function report(news: News, cacheBytes: number, context: JobContext): void {
  const { tries, dropped, fallbacks } = news;
  if (tries.length + dropped.length + fallbacks.length === 0) return;
  Object.assign(news, { tries: [], dropped: [], fallbacks: [] });
  context.call("report", { tries, dropped, fallbacks, cacheBytes }).catch(() => {});
}

async function collected<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const item of items) all.push(item);
  return all;
}
