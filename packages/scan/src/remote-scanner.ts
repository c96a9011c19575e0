import type { AnswerOf, ScanKind, ScanOptions, SegmentScanner, TaskOf } from "@skald/contracts";
import { type SegmentRef, SkaldError } from "@skald/model";
import {
  type CachedObject,
  type CachedSegment,
  corruptSegment,
  corruptSegmentOf,
  type LocalRef,
  type SegmentCacheCalls,
  type SlotRange,
  SlotsMissing,
  slotBytes,
} from "@skald/storage";
import { refsOf, withRefs } from "./source/source.js";

/** Bytes to fetch first, from the end of an object: most often its whole index. */
const tailBytes = 64 * 1024;
/** A scan that may end early first asks for this many bytes, and then for twice as many each time. */
const firstAheadBytes = 4 * 1024 * 1024;
const maxAheadBytes = 256 * 1024 * 1024;
/** Round n fetches the missing slots and 2^n slots behind them. From this round on it fetches all that follow. */
const maxPartialRounds = 10;
/** Rounds of one call. Its sources, 64 at most, are whole long before. */
const maxRounds = 1000;

interface RemoteScannerDeps {
  /** Scans files of this machine. */
  readonly scanner: SegmentScanner<LocalRef>;
  readonly cache: SegmentCacheCalls;
  readonly now?: () => number;
}

/**
 * Scans segments of the object store. It runs a job, fetches the slots that the job finds missing from headers into the cache,
 * and runs it again until nothing is missing. So threads only read files and never wait for the store.
 */
export class RemoteScanner implements SegmentScanner<LocalRef> {
  readonly #deps: RemoteScannerDeps;
  readonly #now: () => number;

  constructor(deps: RemoteScannerDeps) {
    this.#deps = deps;
    this.#now = deps.now ?? (() => performance.now());
  }

  run<K extends ScanKind>(
    kind: K,
    task: TaskOf<K, LocalRef>,
    options: ScanOptions,
  ): Promise<AnswerOf<K>> {
    const refs = refsOf<LocalRef>(task);
    if (!refs.some(isRemote)) return this.#deps.scanner.run(kind, task, options);
    return this.#untilWhole(refs, options, (local) =>
      this.#deps.scanner.run(kind, withRefs<K, LocalRef>(task, local), options),
    );
  }

  /** Runs a job until it misses nothing. */
  async #untilWhole<T>(
    refs: readonly LocalRef[],
    { signal }: ScanOptions,
    work: (refs: readonly LocalRef[]) => Promise<T>,
  ): Promise<T> {
    const job = new RemoteJob(this.#deps.cache, this.#now);
    try {
      await job.begin(refs, signal);
      for (let round = 0; ; round++) {
        try {
          return await work(job.refs(round));
        } catch (error) {
          if (!(error instanceof SlotsMissing)) await job.replace(error, signal);
          else if (round === maxRounds) throw error;
          else await job.fetch(error.ranges, round, signal);
        }
      }
    } finally {
      job.end();
    }
  }
}

/** The sources of one job, held in the cache while it runs. */
class RemoteJob {
  readonly #cache: SegmentCacheCalls;
  readonly #now: () => number;
  #refs: readonly LocalRef[] = [];
  /** By key. */
  readonly #objects = new Map<string, CachedObject>();
  readonly #releases: (() => void)[] = [];
  readonly #replaced = new Set<string>();
  readonly #fetched = { requests: 0, slots: 0, bytes: 0, ns: 0 };

  constructor(cache: SegmentCacheCalls, now: () => number) {
    this.#cache = cache;
    this.#now = now;
  }

  async begin(refs: readonly LocalRef[], signal: AbortSignal): Promise<void> {
    this.#refs = refs;
    const remote = refs.filter(isRemote);
    await this.#hold(remote);
    await this.#fetch(remote.map(tailOf), signal);
  }

  end(): void {
    for (const release of this.#releases) release();
  }

  /** The sources as threads open them. */
  refs(round: number): LocalRef[] {
    const aheadBytes = Math.min(maxAheadBytes, firstAheadBytes * 2 ** round);
    return this.#refs.map((ref): LocalRef => {
      if (!isRemote(ref)) return ref;
      const object = this.#objects.get(ref.location.key) as CachedObject;
      const location = { kind: "file", path: object.path } as const;
      const cached: CachedSegment = {
        ...ref,
        location,
        cached: object,
        aheadBytes,
        fetched: this.#fetched,
      };
      return cached;
    });
  }

  /** Fetches what a job missed, and in later rounds some slots behind it. */
  fetch(missing: readonly SlotRange[], round: number, signal: AbortSignal): Promise<void> {
    const behind = round < maxPartialRounds ? 2 ** round - 1 : Number.POSITIVE_INFINITY;
    return this.#fetch(
      missing.map(({ key, from, to }) => ({ key, from, to: to + behind })),
      signal,
    );
  }

  /** Fetches a segment again, once, when its file is damaged. Throws any other error, and the second one. */
  async replace(error: unknown, signal: AbortSignal): Promise<void> {
    const path = corruptSegmentOf(error);
    const found = [...this.#objects.values()].find((object) => object.path === path);
    if (found === undefined || !(error instanceof SkaldError)) throw error;
    const { key } = found;
    await this.#cache.drop(key);
    // The copy in the store is damaged too.
    if (this.#replaced.has(key)) throw corruptSegment(key, error);
    this.#replaced.add(key);
    const ref = this.#refs.filter(isRemote).find(({ location }) => location.key === key);
    await this.#hold([ref as RemoteSegment]);
    await this.#fetch([tailOf(ref as RemoteSegment)], signal);
  }

  /** Several sources may be parts of one segment. */
  async #hold(refs: readonly RemoteSegment[]): Promise<void> {
    const sizes = new Map(refs.map(({ sizeBytes, location: { key } }) => [key, sizeBytes]));
    const wanted = [...sizes].map(([key, sizeBytes]) => ({ key, sizeBytes }));
    const { objects, release } = await this.#cache.hold(wanted);
    this.#releases.push(release);
    for (const object of objects) this.#objects.set(object.key, object);
  }

  async #fetch(ranges: readonly SlotRange[], signal: AbortSignal): Promise<void> {
    const started = this.#now();
    const { requests, slots, bytes } = await this.#cache.fetch(ranges, signal);
    this.#fetched.requests += requests;
    this.#fetched.slots += slots;
    this.#fetched.bytes += bytes;
    this.#fetched.ns += Math.round((this.#now() - started) * 1e6);
  }
}

type RemoteSegment = SegmentRef & { readonly location: { readonly kind: "object" } };

function isRemote(ref: LocalRef): ref is RemoteSegment {
  return ref.kind === "segment" && ref.location.kind === "object";
}

function tailOf({ sizeBytes, location: { key } }: RemoteSegment): SlotRange {
  const from = Math.floor(Math.max(0, sizeBytes - tailBytes) / slotBytes);
  return { key, from, to: Math.ceil(sizeBytes / slotBytes) };
}
