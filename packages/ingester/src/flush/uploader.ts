import { type SegmentRef, type SteadyClock, unavailable } from "@skald/model";
import type { Logger } from "@skald/runtime";
import { tracedApart } from "@skald/runtime/tracing";
import type { IngesterOptions } from "../settings/options.js";
import type { LocalMerger } from "./local-merger.js";
import type { LocalSegment, LocalSegments } from "./local-segments.js";

/** Where segments end up: an object store, seen as the ingester needs it. */
export interface SegmentStore {
  /** Stores the file under the key of the segment, to last. May be called again for what is there already. */
  put(ref: SegmentRef, path: string, options: { readonly signal: AbortSignal }): Promise<void>;
  /** Whether the store has the segment with the size it has here. */
  has(ref: SegmentRef, options: { readonly signal: AbortSignal }): Promise<boolean>;
}

export interface UploaderOptions extends Pick<IngesterOptions, "config" | "bounds"> {
  readonly store: SegmentStore;
  readonly segments: LocalSegments;
  /** Makes one of small ones that wait together. */
  readonly merger: LocalMerger;
  readonly onStored: (segment: LocalSegment) => void;
  readonly onFailed: () => void;
  readonly log: Logger;
  readonly clock: SteadyClock;
}

/** Groups of segments that are merged at a time. */
const mergesAtOnce = 2;
/** Times that a flush looks for what was sealed while it merged. */
const maxRounds = 8;

/**
 * Uploads local segments: old ones, the oldest ones when they take too much disk, all when told to. A failed upload is tried
 * again for ever, later and later; the local copy stays until the store has it and all queries that know
 * only the local copy have ended. Small ones of a tenant and day that wait together are one object.
 */
export class Uploader {
  readonly #options: UploaderOptions;
  readonly #abort = new AbortController();
  readonly #running = new Map<LocalSegment, Promise<void>>();
  readonly #failures = new Map<LocalSegment, { count: number; retryMs: number }>();

  constructor(options: UploaderOptions) {
    this.#options = options;
  }

  /** Uploads in flight. */
  get running(): number {
    return this.#running.size;
  }

  /** Finds the uploads that are due, and starts as many as may run; each next one starts when one ends. */
  sweep(): void {
    if (this.#abort.signal.aborted) return;
    this.#due = this.#findDue();
    const groups = this.#flushes === 0 ? this.#groupsOf(this.#due) : [];
    // What is merged is due as its inputs were.
    if (groups.length > 0) void this.#mergeAll(groups).then(() => this.sweep());
    this.#startDue();
  }

  /**
   * Uploads all segments of a tenant, or of all; `early`, while heads are sealed, not those that may be merged with what is still to
   * come. Rejects with `unavailable` when the store does not take them now.
   */
  async flush(tenant?: string, { early = false } = {}): Promise<void> {
    const isWanted = (one: LocalSegment) =>
      isOf(one.ref, tenant) && !(early && this.#options.merger.mayGrow(one));
    this.#flushes++;
    try {
      await this.#merging;
      // While some are merged others are sealed. Beside another flush what is merged would be missing in what that one waits for.
      for (let round = 0; round < maxRounds && this.#flushes === 1; round++) {
        const groups = this.#groupsOf(this.#waiting().filter(isWanted));
        if (groups.length === 0 || this.#abort.signal.aborted) break;
        await this.#mergeAll(groups);
      }
      await this.#uploadAll(this.#waiting().filter(isWanted));
    } finally {
      this.#flushes--;
    }
  }

  async #uploadAll(queue: LocalSegment[]): Promise<void> {
    let failure: unknown;
    const total = queue.length;
    const next = async (): Promise<void> => {
      for (let segment = queue.shift(); segment !== undefined; segment = queue.shift()) {
        await (this.#running.get(segment) ?? this.#start(segment));
        failure ??= segment.uploadedMs === undefined ? this.#lastError : undefined;
        if (failure !== undefined) return;
      }
    };
    await Promise.all(Array.from({ length: this.#options.config.concurrent_flushes }, next));
    if (failure === undefined) return;
    throw unavailable(
      `the object store does not take segments; ${total} are kept on the local disk and tried again`,
      { cause: failure },
    );
  }

  /** Deletes local copies that nobody needs: uploaded long enough ago, not in use, and not known to any log file that is left. */
  async dropOld(firstWalFile: number, isInUse: (id: string) => boolean): Promise<void> {
    const { segments, config, clock } = this.#options;
    const before = clock.elapsedMs() - config.chunk_retain_period;
    for (const segment of segments.files()) {
      const { lastWalFile, replacedBy } = segment;
      const { uploadedMs } = replacedBy ?? segment;
      if (uploadedMs === undefined || uploadedMs > before || lastWalFile >= firstWalFile) continue;
      if (segments.isLast(segment) && !isInUse(segment.ref.id)) await segments.drop(segment);
    }
  }

  /** Ends running uploads; what is not uploaded stays on the local disk. */
  async close(): Promise<void> {
    this.#abort.abort();
    this.#due = [];
    this.#options.merger.close();
    await this.#merging;
    await Promise.all(this.#running.values());
  }

  #lastError: unknown;
  /** Flushes under way. */
  #flushes = 0;
  /** What is being merged must not be uploaded meanwhile. */
  readonly #inMerge = new Set<LocalSegment>();
  #merging: Promise<void> = Promise.resolve();
  /** Oldest last. */
  #due: LocalSegment[] = [];

  /** Those of some segments that are to be merged before they are uploaded, each in one group. */
  #groupsOf(some: readonly LocalSegment[]): (readonly LocalSegment[])[] {
    const seen = new Set<LocalSegment>();
    const groups: (readonly LocalSegment[])[] = [];
    for (const segment of some) {
      if (seen.has(segment)) continue;
      const group = this.#options.merger.groupOf(segment);
      for (const one of group) seen.add(one);
      const isBusy = group.some((one) => this.#running.has(one) || this.#inMerge.has(one));
      if (group.length > 0 && !isBusy) groups.push(group);
    }
    return groups;
  }

  #mergeAll(groups: readonly (readonly LocalSegment[])[]): Promise<void> {
    for (const one of groups.flat()) this.#inMerge.add(one);
    const queue = [...groups];
    const next = async (): Promise<void> => {
      for (let group = queue.shift(); group !== undefined; group = queue.shift()) {
        if (!this.#abort.signal.aborted) await this.#options.merger.merge(group);
        for (const one of group) this.#inMerge.delete(one);
      }
    };
    const merging = Promise.all(Array.from({ length: mergesAtOnce }, next));
    this.#merging = Promise.all([this.#merging, merging]).then(() => undefined);
    return this.#merging;
  }

  #findDue(): LocalSegment[] {
    const { config, bounds, clock } = this.#options;
    const nowMs = clock.elapsedMs();
    const waiting = this.#waiting();
    let bytes = waiting.reduce((sum, { ref }) => sum + ref.sizeBytes, 0);
    const due: LocalSegment[] = [];
    for (const segment of waiting) {
      const tooMuch = bytes > bounds.maxLocalBytes;
      bytes -= segment.ref.sizeBytes;
      if (!tooMuch && nowMs - segment.sealedMs < config.chunk_idle_period) continue;
      if (nowMs >= this.#retryMs(segment)) due.push(segment);
    }
    return due.reverse();
  }

  #startDue(): void {
    while (this.#running.size < this.#options.config.concurrent_flushes) {
      const segment = this.#due.pop();
      if (segment === undefined) return;
      // A flush may have been faster.
      if (segment.uploadedMs !== undefined || this.#running.has(segment)) continue;
      if (segment.replacedBy !== undefined || this.#inMerge.has(segment)) continue;
      void this.#start(segment);
    }
  }

  #waiting(): LocalSegment[] {
    const waiting = this.#options.segments.all().filter((one) => one.uploadedMs === undefined);
    return waiting.sort((a, b) => a.sealedMs - b.sealedMs);
  }

  /** Never rejects: a failure is counted and tried again by a later sweep. */
  #start(segment: LocalSegment): Promise<void> {
    const task = this.#upload(segment)
      .then(
        () => this.#failures.delete(segment),
        (error: unknown) => this.#fail(segment, error),
      )
      .then(() => {
        this.#running.delete(segment);
        this.#startDue();
      });
    this.#running.set(segment, task);
    return task;
  }

  #upload(segment: LocalSegment): Promise<void> {
    const { tenant, id, sizeBytes } = segment.ref;
    const attributes = { tenant, "skald.segment": id, "skald.bytes": sizeBytes };
    return tracedApart("upload", { attributes }, () => this.#uploadNow(segment));
  }

  async #uploadNow(segment: LocalSegment): Promise<void> {
    const { store, config, segments, onStored } = this.#options;
    const timeout = AbortSignal.timeout(config.flush_op_timeout);
    const signal = AbortSignal.any([this.#abort.signal, timeout]);
    if (!segment.mayBeStored) await segments.markUploading(segment);
    await segments.placed.sync(segment.path);
    // Also what is there from an attempt that failed: only a put that succeeds says that a power cut leaves it there.
    await store.put(segment.ref, segment.path, { signal });
    if (!(await store.has(segment.ref, { signal }))) {
      throw unavailable(`segment ${segment.ref.id} was stored but is not there`);
    }
    await segments.markUploaded(segment);
    onStored(segment);
  }

  #fail(segment: LocalSegment, error: unknown): void {
    const { config, clock, log, onFailed } = this.#options;
    const { min_period, max_period } = config.flush_op_backoff;
    // A store that is down is not asked for everything that waits, over and over.
    this.#due = [];
    if (this.#abort.signal.aborted) return;
    const count = (this.#failures.get(segment)?.count ?? 0) + 1;
    const pauseMs = Math.min(max_period, min_period * 2 ** (count - 1));
    this.#failures.set(segment, { count, retryMs: clock.elapsedMs() + pauseMs });
    this.#lastError = error;
    onFailed();
    const { tenant, id } = segment.ref;
    log.warn("uploading a segment failed; trying again", { tenant, segment: id, pauseMs, error });
  }

  #retryMs(segment: LocalSegment): number {
    return this.#failures.get(segment)?.retryMs ?? 0;
  }
}

function isOf(ref: SegmentRef, tenant: string | undefined): boolean {
  return tenant === undefined || ref.tenant === tenant;
}
