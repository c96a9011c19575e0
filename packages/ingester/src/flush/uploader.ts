import { type SegmentRef, type SteadyClock, unavailable } from "@skald/model";
import { withDeadline } from "@skald/runtime";
import { tracedApart } from "@skald/runtime/tracing";
import type { IngesterMetrics } from "../settings/metrics.js";
import type { IngesterOptions } from "../settings/options.js";
import { LocalMerger, type LocalMergerContext } from "./local-merger.js";
import type { LocalSegment } from "./local-segments.js";

/** The object store as the ingester uses it. */
export interface SegmentStore {
  /** Stores the file durably under the key of the segment. May be called again for a stored segment. */
  put(ref: SegmentRef, path: string, options: { readonly signal: AbortSignal }): Promise<void>;
  /** Whether the store has the segment with the size it has here. */
  has(ref: SegmentRef, options: { readonly signal: AbortSignal }): Promise<boolean>;
}

export interface UploaderContext extends LocalMergerContext {
  readonly store: SegmentStore;
  readonly metrics: IngesterMetrics;
  readonly clock: SteadyClock;
}

/** Groups of segments that are merged at a time. */
const mergesAtOnce = 2;
/** Rounds in which a flush merges segments that were sealed during the last round. */
const maxRounds = 8;

/**
 * Uploads local segments: old ones, the oldest ones when they use too much disk, and all in a flush. A failed upload is
 * retried for ever with growing pauses. The local copy stays until the store has it and all queries that know only the
 * local copy have ended. Small segments of a tenant and day that wait together become one object.
 */
export class Uploader {
  readonly #context: UploaderContext;
  readonly #backoff: IngesterOptions["config"]["flush_op_backoff"];
  readonly #merger: LocalMerger;
  readonly #abort = new AbortController();
  readonly #running = new Map<LocalSegment, Promise<void>>();
  readonly #failures = new Map<LocalSegment, { count: number; retryMs: number }>();
  #lastError: unknown;
  /** Number of running flushes. */
  #flushes = 0;
  /** Segments that are being merged and must not be uploaded. */
  readonly #inMerge = new Set<LocalSegment>();
  #merging: Promise<void> = Promise.resolve();
  /** Oldest last. */
  #due: LocalSegment[] = [];

  constructor(context: UploaderContext) {
    this.#context = context;
    this.#backoff = { ...context.options.config.flush_op_backoff };
    this.#merger = new LocalMerger(context);
  }

  /** Finds the uploads that are due and starts as many as may run; the others follow when one ends. */
  sweep(): void {
    if (this.#abort.signal.aborted) return;
    this.#due = this.#findDue();
    const groups = this.#flushes === 0 ? this.#groupsOf(this.#due) : [];
    // A merged segment is due as its inputs were.
    if (groups.length > 0) void this.#mergeAll(groups).then(() => this.sweep());
    this.#startDue();
  }

  /**
   * Uploads all segments of a tenant, or of all. With `early`, while heads are being sealed, it leaves out segments that may
   * be merged with later ones. Rejects with `unavailable` when the store refuses them.
   */
  async flush(tenant?: string, { early = false } = {}): Promise<void> {
    const isWanted = (one: LocalSegment) =>
      (tenant === undefined || one.ref.tenant === tenant) && !(early && this.#merger.mayGrow(one));
    this.#flushes++;
    try {
      await this.#merging;
      // Heads are sealed during a merge. Two flushes at a time do not merge, because one would miss the results of the other.
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
    await Promise.all(
      Array.from({ length: this.#context.options.config.concurrent_flushes }, next),
    );
    if (failure === undefined) return;
    throw unavailable(
      `the object store does not take segments; ${total} are kept on the local disk and tried again`,
      { cause: failure },
    );
  }

  /**
   * Local copies that were uploaded long enough ago, and have no rows in a log file that is left, are not shown to new
   * queries, and are deleted once no older one uses them: queries that never pause must not keep them.
   */
  async dropOld(firstWalFile: number, isInUse: (id: string) => boolean): Promise<void> {
    const { segments, options, clock } = this.#context;
    const before = clock.elapsedMs() - options.config.chunk_retain_period;
    for (const segment of segments.files()) {
      const { lastWalFile, replacedBy } = segment;
      const { uploadedMs } = replacedBy ?? segment;
      if (uploadedMs === undefined || uploadedMs > before || lastWalFile >= firstWalFile) continue;
      segments.leave(segment);
      if (segments.isLast(segment) && !isInUse(segment.ref.id)) await segments.drop(segment);
    }
  }

  /** Ends running uploads; what is not uploaded stays on the local disk. */
  async close(): Promise<void> {
    this.#abort.abort();
    this.#due = [];
    this.#merger.close();
    await this.#merging;
    await Promise.all(this.#running.values());
  }

  /** Groups the segments that must be merged before their upload; each is in one group. */
  #groupsOf(some: readonly LocalSegment[]): (readonly LocalSegment[])[] {
    const seen = new Set<LocalSegment>();
    const groups: (readonly LocalSegment[])[] = [];
    for (const segment of some) {
      if (seen.has(segment)) continue;
      const group = this.#merger.groupOf(segment);
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
        if (!this.#abort.signal.aborted) await this.#merger.merge(group);
        for (const one of group) this.#inMerge.delete(one);
      }
    };
    const merging = Promise.all(Array.from({ length: mergesAtOnce }, next));
    this.#merging = Promise.all([this.#merging, merging]).then(() => undefined);
    return this.#merging;
  }

  #findDue(): LocalSegment[] {
    const { options, clock } = this.#context;
    const { config, bounds } = options;
    const nowMs = clock.elapsedMs();
    const waiting = this.#waiting();
    let bytes = waiting.reduce((sum, { ref }) => sum + ref.sizeBytes, 0);
    const due: LocalSegment[] = [];
    for (const segment of waiting) {
      const tooMuch = bytes > bounds.maxLocalBytes;
      bytes -= segment.ref.sizeBytes;
      if (!tooMuch && nowMs - segment.sealedMs < config.chunk_idle_period) continue;
      if (nowMs >= (this.#failures.get(segment)?.retryMs ?? 0)) due.push(segment);
    }
    return due.reverse();
  }

  #startDue(): void {
    while (this.#running.size < this.#context.options.config.concurrent_flushes) {
      const segment = this.#due.pop();
      if (segment === undefined) return;
      // A flush may have been faster.
      if (segment.uploadedMs !== undefined || this.#running.has(segment)) continue;
      if (segment.replacedBy !== undefined || this.#inMerge.has(segment)) continue;
      void this.#start(segment);
    }
  }

  #waiting(): LocalSegment[] {
    const waiting = this.#context.segments.all().filter((one) => one.uploadedMs === undefined);
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
    const { store, options, segments, metrics } = this.#context;
    const { tenant, id, sizeBytes } = segment.ref;
    const { flush_op_timeout: timeoutMs } = options.config;
    const message = `the store took longer than ${timeoutMs} ms (ingester.flush_op_timeout)`;
    const limit = { timeoutMs, message, signal: this.#abort.signal };
    if (!segment.mayBeStored) await segments.markUploading(segment);
    await segments.placed.sync(segment.path);
    await withDeadline(limit, async (signal) => {
      // Only a put that succeeds makes the object durable, also when a failed attempt has left one.
      await store.put(segment.ref, segment.path, { signal });
      if (!(await store.has(segment.ref, { signal }))) {
        throw unavailable(`segment ${id} was stored but is not there`);
      }
    });
    await segments.markUploaded(segment);
    metrics.chunksStored.inc({ tenant });
    metrics.storedBytes.inc({ tenant }, sizeBytes);
  }

  #fail(segment: LocalSegment, error: unknown): void {
    const { clock, log, metrics } = this.#context;
    const { min_period, max_period } = this.#backoff;
    // A store that is down does not get every waiting segment.
    this.#due = [];
    if (this.#abort.signal.aborted) return;
    const count = (this.#failures.get(segment)?.count ?? 0) + 1;
    const pauseMs = Math.min(max_period, min_period * 2 ** (count - 1));
    this.#failures.set(segment, { count, retryMs: clock.elapsedMs() + pauseMs });
    this.#lastError = error;
    metrics.flushFailures.inc();
    const { tenant, id } = segment.ref;
    log.warn("uploading a segment failed; trying again", { tenant, segment: id, pauseMs, error });
  }
}
