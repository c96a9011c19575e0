import type { SteadyClock } from "@skald/model";
import { type Logger, type Sleep, sleep } from "@skald/runtime";
import { tracedApart } from "@skald/runtime/tracing";
import type { HeadBlockRef, SealedSegment, SealInput, SharedStreams } from "@skald/storage";
import type { Head } from "../head/head.js";
import type { IngesterMetrics } from "../settings/metrics.js";
import type { IngesterOptions } from "../settings/options.js";
import type { FlushReason, Heads } from "../tenant/heads.js";
import type { LocalSegments } from "./local-segments.js";
import { temporaryOf } from "./placed-files.js";
import { PushPace } from "./push-pace.js";

/** A head to be written as a segment; survives a structured clone, so that a worker can do it. */
export interface SealJob extends Omit<SealInput, "heads"> {
  readonly heads: readonly (SharedStreams & { readonly blocks: readonly HeadBlockRef[] })[];
}

/** Writes a segment; the file is complete when it resolves, and the caller syncs it. */
export type Seal = (job: SealJob) => Promise<SealedSegment>;

export interface SealerContext {
  readonly options: IngesterOptions;
  readonly seal: Seal;
  readonly heads: Heads;
  readonly segments: LocalSegments;
  /** Is called with the size of each segment that replaced its head. */
  readonly onSealed: (sizeBytes: number) => void;
  readonly metrics: IngesterMetrics;
  readonly log: Logger;
  readonly clock: SteadyClock;
  readonly sleep?: Sleep;
}

/** A tenant whose frozen heads are below this part of the room may push until all of them are this many times the room. */
const fewFrozen = 1 / 8;
const roomForOthers = 1.5;
/** From this part of the room on a tenant pushes only as fast as heads are sealed. */
const pacedPart = 3 / 4;

/**
 * Turns frozen heads into segments, a few at a time, oldest first. A seal that fails is retried for ever with growing
 * pauses, and other heads go first meanwhile: the head stays in memory and its rows in the log. While too much is
 * frozen, pushes wait in `room`.
 */
export class Sealer {
  readonly #context: SealerContext;
  readonly #backoff: IngesterOptions["config"]["flush_op_backoff"];
  /** Oldest first. */
  readonly #waiting = new Set<Frozen>();
  readonly #tasks = new Map<Head, Frozen>();
  readonly #abort = new AbortController();
  /** Waiting callers, and whether they need wait no more. */
  readonly #roomWaiters = new Map<() => void, () => boolean>();
  readonly #watchers = new Set<(head: Head, error: unknown) => void>();
  /** Ends the pauses of heads that failed. */
  #hurry = new AbortController();
  readonly #pace = new PushPace();
  #running = 0;
  #frozenBytes = 0;

  constructor(context: SealerContext) {
    this.#context = context;
    this.#backoff = { ...context.options.config.flush_op_backoff };
  }

  /** Number of heads that are frozen and not sealed yet. */
  get length(): number {
    return this.#tasks.size;
  }

  /** Memory of frozen heads. */
  get frozenBytes(): number {
    return this.#frozenBytes;
  }

  /** Whether frozen heads use less than a part of their memory. */
  hasRoom(part = 1): boolean {
    return this.#frozenBytes < part * this.#context.options.bounds.maxFrozenBytes;
  }

  /** Whether a tenant need not wait with a push: the frozen heads of others do not hold up one that has few. */
  mayPush(tenant: string): boolean {
    if (this.hasRoom()) return true;
    return this.hasRoom(roomForOthers) && this.#hasFew(tenant);
  }

  /** The time that a push waits for its turn, ms. Turns come as fast as heads are sealed. A tenant with few frozen heads does not wait. */
  paceMs(tenant: string, lineBytes: number): number {
    if (this.hasRoom(pacedPart) || this.#hasFew(tenant)) return 0;
    return this.#pace.next(lineBytes, this.#context.clock.elapsedMs());
  }

  #hasFew(tenant: string): boolean {
    let own = 0;
    for (const { head, bytes } of this.#tasks.values()) if (head.tenant === tenant) own += bytes;
    return own < fewFrozen * this.#context.options.bounds.maxFrozenBytes;
  }

  /** Adds a head that gets no more rows; the promise resolves when it is a segment. */
  freeze(head: Head, reason: FlushReason): Promise<void> {
    const frozen = frozenOf(head, reason);
    this.#frozenBytes += frozen.bytes;
    this.#waiting.add(frozen);
    this.#tasks.set(head, frozen);
    this.kick();
    return frozen.sealed;
  }

  /** The promise that `freeze` returned for a head; undefined once the head is a segment. */
  taskOf(head: Head): Promise<void> | undefined {
    return this.#tasks.get(head)?.sealed;
  }

  /** Calls the watcher for each seal that fails, until the returned function is called. */
  onFailure(watcher: (head: Head, error: unknown) => void): () => void {
    this.#watchers.add(watcher);
    return () => this.#watchers.delete(watcher);
  }

  /** Retries at once what has failed. */
  hurry(): void {
    this.#hurry.abort();
    this.#hurry = new AbortController();
  }

  /** True once `close` was called: from then on nobody waits for room. */
  get isClosed(): boolean {
    return this.#abort.signal.aborted;
  }

  /**
   * Resolves when there is room, by one of the two questions above. The caller must ask again, because others may have been
   * faster. Rejects with the signal's reason.
   */
  room(signal?: AbortSignal, hasRoom = () => this.hasRoom()): Promise<void> {
    if (signal?.aborted) return Promise.reject(signal.reason);
    if (hasRoom() || this.isClosed) return Promise.resolve();
    return new Promise((resolve, reject) => {
      const letIn = () => {
        signal?.removeEventListener("abort", giveUp);
        resolve();
      };
      const giveUp = () => {
        this.#roomWaiters.delete(letIn);
        reject(signal?.reason);
      };
      this.#roomWaiters.set(letIn, hasRoom);
      signal?.addEventListener("abort", giveUp, { once: true });
    });
  }

  /** Starts as many seals as may run. A head waits until the log has its last pushes. */
  kick(): void {
    for (const frozen of this.#waiting) {
      if (this.#running >= this.#context.options.bounds.sealConcurrency) return;
      if (frozen.head.pendingPushes > 0) continue;
      this.#waiting.delete(frozen);
      this.#running++;
      void this.#run(frozen);
    }
  }

  /** Ends retries and lets waiting pushes go on. The rows of unsealed heads stay in the log. */
  async close(): Promise<void> {
    this.#abort.abort();
    for (const frozen of this.#waiting) this.#giveUp(frozen);
    this.#waiting.clear();
    this.#letIn();
    await Promise.allSettled(Array.from(this.#tasks.values(), ({ sealed }) => sealed));
  }

  async #run(frozen: Frozen): Promise<void> {
    const { head, reason } = frozen;
    try {
      // All rows may have been undone.
      if (head.rowCount === 0) this.#context.heads.replace(head);
      else await this.#seal(head, reason);
      this.#forget(frozen);
      frozen.resolve();
    } catch (error) {
      void this.#retryLater(frozen, error);
    } finally {
      this.#running--;
      this.kick();
    }
  }

  async #retryLater(frozen: Frozen, error: unknown): Promise<void> {
    if (this.isClosed) return this.#giveUp(frozen);
    const { log, metrics } = this.#context;
    const { head } = frozen;
    const { tenant, id } = head;
    const attempt = frozen.failures++;
    metrics.flushFailures.inc();
    log.error("sealing a head failed; trying again", { tenant, head: id, attempt, error });
    // A watcher may end a flush that hurries this very pause, so the signal comes first.
    const signal = AbortSignal.any([this.#abort.signal, this.#hurry.signal]);
    for (const watcher of [...this.#watchers]) watcher(head, error);
    const { min_period, max_period } = this.#backoff;
    const pauseMs = Math.min(max_period, min_period * 2 ** attempt);
    await (this.#context.sleep ?? sleep)(pauseMs, signal).catch(() => undefined);
    if (this.isClosed) return this.#giveUp(frozen);
    this.#waiting.add(frozen);
    this.kick();
  }

  #giveUp(frozen: Frozen): void {
    this.#forget(frozen);
    frozen.reject(new Error("the ingester was stopped"));
  }

  #forget({ head, bytes }: Frozen): void {
    this.#frozenBytes -= bytes;
    this.#tasks.delete(head);
    this.#letIn();
  }

  #seal(head: Head, reason: FlushReason): Promise<void> {
    const { tenant, id } = head;
    const attributes = { tenant, "skald.segment": id, "skald.reason": reason };
    return tracedApart("flush", { attributes }, () => this.#sealNow(head, reason));
  }

  async #sealNow(head: Head, reason: FlushReason): Promise<void> {
    const { seal, segments, heads, options, clock, metrics, onSealed } = this.#context;
    const { tenant, id } = head;
    const { lifecycler, head_target_size } = options.config;
    const beganMs = clock.elapsedMs();
    const path = await segments.pathOf(head);
    const sealed = await seal({
      tenant,
      id,
      path: temporaryOf(path),
      heads: [{ blocks: head.blocks.map((block) => block.view()), ...heads.streamsOf(head) }],
      digests: lifecycler.ring.replication_factor > 1,
      sync: false,
    });
    await segments.placed.place(path);
    const { rows, bytes, sizeBytes } = sealed;
    const { minTime, maxTime } = head.bounds();
    metrics.chunksFlushed.inc({ reason });
    metrics.chunkSize.observe(sizeBytes);
    metrics.chunkEntries.observe(rows);
    metrics.chunkUtilization.observe(Math.min(1, bytes / head_target_size));
    metrics.chunkRatio.observe(bytes / sizeBytes);
    metrics.chunkAge.observe((clock.elapsedMs() - head.createdMs) / 1000);
    metrics.chunkBounds.observe((maxTime - minTime) / 3600e9);
    this.#pace.learn(bytes, beganMs, clock.elapsedMs());
    // From this turn on the segment replaces the head.
    segments.add(head, sealed, path);
    heads.replace(head);
    onSealed(sizeBytes);
  }

  #letIn(): void {
    for (const [letIn, hasRoom] of this.#roomWaiters) {
      if (!hasRoom() && !this.isClosed) continue;
      this.#roomWaiters.delete(letIn);
      letIn();
    }
  }
}

interface Frozen {
  readonly head: Head;
  readonly reason: FlushReason;
  readonly bytes: number;
  readonly sealed: Promise<void>;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
  failures: number;
}

function frozenOf(head: Head, reason: FlushReason): Frozen {
  let resolve = (): void => undefined;
  let reject = (_: unknown): void => undefined;
  const sealed = new Promise<void>((resolveSealed, rejectSealed) => {
    resolve = resolveSealed;
    reject = rejectSealed;
  });
  // The caller may not wait for it. It rejects only at the end of the process.
  sealed.catch(() => undefined);
  return { head, reason, bytes: head.memoryBytes, sealed, resolve, reject, failures: 0 };
}
