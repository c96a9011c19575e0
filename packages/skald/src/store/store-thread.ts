import { WorkerPool } from "@skald/runtime";
import type {
  CachedObject,
  CallOptions,
  Fetched,
  HeldObjects,
  ListOptions,
  ObjectInfo,
  ObjectName,
  ObjectRange,
  ObjectStore,
  PutOptions,
  PutOutcome,
  SegmentCacheCalls,
  SlotRange,
} from "@skald/storage";
import { threadScripts } from "../thread-scripts.js";
import type { BucketPlace, StoreJob, StoreJobs, StoreReport } from "./store-job.js";

export interface StoreThreadOptions {
  readonly place: BucketPlace;
  readonly onReport: (report: StoreReport) => void;
  readonly onThreadLost: (error: unknown) => void;
}

/** Calls of the store under way at a time, most of which wait for an answer. */
const maxCalls = 1024;
const maxQueued = 100_000;

/**
 * A bucket and its cache on a thread of their own: what a request costs (headers, hashes, encryption, bodies) is not taken
 * from pushes. Only names and places cross threads; bodies go from file to socket and back.
 */
export class StoreThread implements ObjectStore, SegmentCacheCalls {
  readonly #options: StoreThreadOptions;
  readonly #pool: WorkerPool;

  constructor(options: StoreThreadOptions) {
    this.#options = options;
    this.#pool = new WorkerPool({
      url: threadScripts.store,
      size: 0,
      urgentJobs: maxCalls,
      lazy: true,
      maxQueued,
      onThreadLost: options.onThreadLost,
    });
  }

  /** Finds what earlier processes left in the cache. */
  async open(): Promise<void> {
    await this.#run("open", {});
  }

  async close(): Promise<void> {
    await this.#run("close", {}).catch(() => {});
    await this.#pool.close();
  }

  put(key: string, body: Uint8Array, { signal, ifAbsent = false }: PutOptions) {
    return this.#run<PutOutcome, "put">("put", { key, body, ifAbsent }, signal);
  }

  putFile(key: string, path: string, { signal, ifAbsent = false }: PutOptions) {
    return this.#run<PutOutcome, "put_file">("put_file", { key, path, ifAbsent }, signal);
  }

  get(key: string, { signal }: CallOptions) {
    return this.#run<Uint8Array, "get">("get", { key }, signal);
  }

  stat(key: string, { signal }: CallOptions) {
    return this.#run<ObjectInfo, "stat">("stat", { key }, signal);
  }

  getRange(key: string, range: ObjectRange, { signal }: CallOptions) {
    return this.#run<Uint8Array, "get_range">("get_range", { key, range }, signal);
  }

  async *list(prefix: string, { signal, ...options }: ListOptions): AsyncIterable<ObjectInfo> {
    yield* await this.#run<ObjectInfo[], "list">("list", { prefix, ...options }, signal);
  }

  async *folders(prefix: string, { signal }: CallOptions): AsyncIterable<string> {
    yield* await this.#run<string[], "folders">("folders", { prefix }, signal);
  }

  async delete(key: string, { signal }: CallOptions): Promise<void> {
    await this.#run("delete", { key }, signal);
  }

  async hold(objects: readonly ObjectName[]): Promise<HeldObjects> {
    const held = await this.#run<{ hold: string; objects: CachedObject[] }, "hold">("hold", {
      objects,
    });
    const release = () => {
      // A thread that died holds nothing any more.
      this.#run("release", { hold: held.hold }).catch(() => {});
    };
    return { objects: held.objects, release };
  }

  fetch(ranges: readonly SlotRange[], signal: AbortSignal) {
    return this.#run<Fetched, "fetch">("fetch", { ranges }, signal);
  }

  async drop(key: string): Promise<void> {
    await this.#run("drop", { key });
  }

  #run<T, Name extends keyof StoreJobs>(
    name: Name,
    asked: StoreJobs[Name],
    signal?: AbortSignal,
  ): Promise<T> {
    const { place, onReport } = this.#options;
    const report = (news: StoreReport) => {
      onReport(news);
      return { value: undefined };
    };
    const options = { lane: "urgent", host: { report } } as const;
    const job = { place, asked } satisfies StoreJob<Name>;
    return this.#pool.run<T>(name, job, signal === undefined ? options : { ...options, signal });
  }
}
