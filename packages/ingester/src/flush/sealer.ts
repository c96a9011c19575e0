import { type Logger, type Sleep, sleep } from "@skald/runtime";
import { tracedApart } from "@skald/runtime/tracing";
import type { HeadBlockRef, SealedSegment, SealInput, SharedStreams } from "@skald/storage";
import type { Head } from "../head/head.js";
import type { IngesterConfig } from "../settings/config.js";

/** A head to be written as a segment; survives a structured clone, so that a worker can do it. */
export interface SealJob extends Omit<SealInput, "heads"> {
  readonly heads: readonly (SharedStreams & { readonly blocks: readonly HeadBlockRef[] })[];
}

/** Writes a segment; the file is complete when it resolves, and whoever called syncs it. */
export type Seal = (job: SealJob) => Promise<SealedSegment>;

/** Why a head was frozen, as the `reason` of the flush metrics. */
export type FlushReason = "full" | "idle" | "max_age" | "forced" | "memory" | "wal";

export interface SealerOptions {
  readonly seal: Seal;
  /** Seals at a time. */
  readonly concurrency: number;
  readonly maxFrozenBytes: number;
  readonly backoff: Pick<IngesterConfig["flush_op_backoff"], "min_period" | "max_period">;
  readonly pathOf: (head: Head) => Promise<string>;
  readonly streamsOf: (head: Head) => SharedStreams;
  /** Called at once when the segment is there: from now on it stands for the head. */
  readonly onSealed: (
    head: Head,
    segment: SealedSegment,
    path: string,
    reason: FlushReason,
  ) => void;
  /** Called for a head whose rows were all taken back: there is nothing to seal. */
  readonly onEmpty: (head: Head) => void;
  readonly onFailed: () => void;
  readonly log: Logger;
  readonly sleep?: Sleep;
}

/**
 * Turns frozen heads into segments, a few at a time, oldest first. A seal that fails is tried again for ever, later and
 * later, and lets others go first meanwhile: the head stays in memory and its rows in the log. While too much is frozen,
 * pushes wait in `room`.
 */
export class Sealer {
  readonly #options: SealerOptions;
  readonly #minPauseMs: number;
  readonly #maxPauseMs: number;
  /** Oldest first. */
  readonly #waiting = new Set<Frozen>();
  readonly #tasks = new Map<Head, Frozen>();
  readonly #abort = new AbortController();
  /** With the part of the memory for frozen heads below which each goes on. */
  readonly #roomWaiters = new Map<() => void, number>();
  readonly #watchers = new Set<(head: Head, error: unknown) => void>();
  /** Ends the pauses of heads that failed. */
  #hurry = new AbortController();
  #running = 0;
  #frozenBytes = 0;

  constructor(options: SealerOptions) {
    this.#options = options;
    this.#minPauseMs = options.backoff.min_period;
    this.#maxPauseMs = options.backoff.max_period;
  }

  /** Heads that are frozen and no segments yet. */
  get length(): number {
    return this.#tasks.size;
  }

  /** Memory of frozen heads. */
  get frozenBytes(): number {
    return this.#frozenBytes;
  }

  get hasRoom(): boolean {
    return this.#frozenBytes < this.#options.maxFrozenBytes;
  }

  /** Whether less than a part of the memory for frozen heads is taken. */
  hasRoomFor(part: number): boolean {
    return this.#frozenBytes < part * this.#options.maxFrozenBytes;
  }

  /** Takes a head that gets no more rows; the promise resolves when it is a segment. */
  freeze(head: Head, reason: FlushReason): Promise<void> {
    const frozen = frozenOf(head, reason);
    this.#frozenBytes += frozen.bytes;
    this.#waiting.add(frozen);
    this.#tasks.set(head, frozen);
    this.kick();
    return frozen.sealed;
  }

  /** The promise that `freeze` gave for a head; undefined when it is a segment by now. */
  taskOf(head: Head): Promise<void> | undefined {
    return this.#tasks.get(head)?.sealed;
  }

  /** Tells of each seal that fails from now on, until what it returns is called. */
  onFailure(watcher: (head: Head, error: unknown) => void): () => void {
    this.#watchers.add(watcher);
    return () => this.#watchers.delete(watcher);
  }

  /** Tries again at once whatever has failed. */
  hurry(): void {
    this.#hurry.abort();
    this.#hurry = new AbortController();
  }

  /** True once `close` was called: nobody is held back any more. */
  get isClosed(): boolean {
    return this.#abort.signal.aborted;
  }

  /**
   * Resolves when less than a part of the memory for frozen heads is taken. Check again: others may have been faster. Rejects
   * with the signal's reason.
   */
  room(signal?: AbortSignal, part = 1): Promise<void> {
    if (signal?.aborted) return Promise.reject(signal.reason);
    if (this.hasRoomFor(part) || this.isClosed) return Promise.resolve();
    return new Promise((resolve, reject) => {
      const letIn = () => {
        signal?.removeEventListener("abort", giveUp);
        resolve();
      };
      const giveUp = () => {
        this.#roomWaiters.delete(letIn);
        reject(signal?.reason);
      };
      this.#roomWaiters.set(letIn, part);
      signal?.addEventListener("abort", giveUp, { once: true });
    });
  }

  /** Starts what can start: a head whose last pushes are not in the log yet has to wait for them. */
  kick(): void {
    for (const frozen of this.#waiting) {
      if (this.#running >= this.#options.concurrency) return;
      if (frozen.head.pendingPushes > 0) continue;
      this.#waiting.delete(frozen);
      this.#running++;
      void this.#run(frozen);
    }
  }

  /** Ends retries and lets waiting pushes go. Heads that are not sealed stay in the log. */
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
      if (head.rowCount === 0) this.#options.onEmpty(head);
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
    const { log, onFailed } = this.#options;
    const { head } = frozen;
    const { tenant, id } = head;
    const attempt = frozen.failures++;
    onFailed();
    log.error("sealing a head failed; trying again", { tenant, head: id, attempt, error });
    // Taken before the watchers hear of it: a flush that one of them ends may hurry this very pause.
    const signal = AbortSignal.any([this.#abort.signal, this.#hurry.signal]);
    for (const watcher of [...this.#watchers]) watcher(head, error);
    const pauseMs = Math.min(this.#maxPauseMs, this.#minPauseMs * 2 ** attempt);
    await (this.#options.sleep ?? sleep)(pauseMs, signal).catch(() => undefined);
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
    const { seal, pathOf, streamsOf, onSealed } = this.#options;
    const path = await pathOf(head);
    const blocks = head.blocks.map((block) => block.view());
    const heads = [{ blocks, ...streamsOf(head) }];
    const segment = await seal({ tenant: head.tenant, id: head.id, path, heads });
    onSealed(head, segment, path, reason);
  }

  #letIn(): void {
    for (const [letIn, part] of this.#roomWaiters) {
      if (!this.hasRoomFor(part) && !this.isClosed) continue;
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
  // Whoever asked may not wait; it is rejected at the end of the process only.
  sealed.catch(() => undefined);
  return { head, reason, bytes: head.memoryBytes, sealed, resolve, reject, failures: 0 };
}
