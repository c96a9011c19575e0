import type {
  AnswerOf,
  FlushRequest,
  HeldChanges,
  HeldChangesRequest,
  HeldKind,
  Ingester as IngesterContract,
  PushOutcome,
  PushRequest,
  Scanner,
  ScanOptions,
  Selection,
  SelectRequest,
  Tailer,
  TailRequest,
  TailRows,
  TaskOf,
} from "@skald/contracts";
import {
  type Batch,
  type Clock,
  type SteadyClock,
  steadyClock,
  systemClock,
  unavailable,
} from "@skald/model";
import { type Logger, type Metrics, repeat, type Sleep } from "@skald/runtime";
import { DirectoryLock, type LocalRef, type WalDisk } from "@skald/storage";
import { Flusher } from "./flush/flusher.js";
import type { MergeLocal } from "./flush/local-merger.js";
import { LocalSegments } from "./flush/local-segments.js";
import type { Seal } from "./flush/sealer.js";
import type { SegmentStore } from "./flush/uploader.js";
import { Held } from "./held.js";
import { diskCheckPeriodMs, Intake } from "./intake.js";
import { Journal } from "./log/journal.js";
import { Recovery } from "./log/recovery.js";
import { createIngesterMetrics, type IngesterMetrics } from "./settings/metrics.js";
import {
  type IngesterLimits,
  type IngesterOptions,
  writtenDirectories,
} from "./settings/options.js";
import { type RunTails, Tails } from "./tails.js";
import { Heads } from "./tenant/heads.js";

/** Neither pushes nor queries are served while it is `starting`: it locks its directories and reads them. */
export type IngesterState = "new" | "starting" | "running" | "stopping" | "stopped";

export interface IngesterDependencies {
  readonly options: IngesterOptions;
  readonly limitsOf: (tenant: string) => IngesterLimits;
  readonly seal: Seal;
  /** Merges local segments on another thread. */
  readonly merge: MergeLocal;
  readonly store: SegmentStore;
  /** Scans local heads and segments. */
  readonly scanner: Scanner<LocalRef>;
  readonly runTails: RunTails;
  /** Does other work beside each push, which is answered when both are done. */
  readonly aroundPush?: (batch: Batch, push: () => Promise<PushOutcome>) => Promise<PushOutcome>;
  /** Is called with each local file that was deleted, so that open handles can be closed. */
  readonly onDropped?: (path: string) => void;
  readonly log: Logger;
  readonly metrics: Metrics;
  readonly clock?: Clock;
  readonly steadyClock?: SteadyClock;
  readonly sleep?: Sleep;
  readonly disk?: WalDisk;
}

/**
 * Holds new rows until they are in the object store. A push is checked, appended to heads in memory and to the
 * write-ahead log, and visible once the log has it. Workers seal heads into segments on the local disk, and segments are
 * uploaded; the rows of a head leave the log only when its segment is synced.
 */
export class Ingester implements IngesterContract, Tailer {
  readonly #deps: IngesterDependencies;
  readonly #clock: SteadyClock;
  readonly #metrics: IngesterMetrics;
  readonly #segments: LocalSegments;
  readonly #tails: Tails;
  readonly #heads: Heads;
  readonly #recovery = new Recovery();
  readonly #journal: Journal;
  readonly #flusher: Flusher;
  readonly #intake: Intake;
  readonly #held: Held;
  readonly #abort = new AbortController();
  readonly #locks: DirectoryLock[] = [];
  #state: IngesterState = "new";
  #started: Promise<void> = Promise.resolve();
  #loops: Promise<unknown> = Promise.resolve();

  /** Nothing is opened before `start`. */
  constructor(deps: IngesterDependencies) {
    const { options, log, onDropped, clock: timeOfDay = systemClock } = deps;
    const { config, dataDir } = options;
    const clock = deps.steadyClock ?? steadyClock;
    this.#deps = deps;
    this.#clock = clock;
    this.#metrics = this.#createMetrics();
    const metrics = this.#metrics;
    const retainMs = config.chunk_retain_period;
    const segments = { dataDir, log, clock, retainMs, timeOfDay, onDropped };
    this.#segments = new LocalSegments(segments);
    this.#tails = new Tails({
      run: deps.runTails,
      maxDropped: config.max_dropped_streams,
      onDropped: (rows) => metrics.tailDropped.inc(rows),
      onError: (error) => log.error("a tail failed", { error }),
    });
    const startMs = timeOfDay.nowMs();
    const sealer = () => this.#flusher.sealer;
    this.#heads = new Heads({ options, startMs, clock, metrics, sealer });
    this.#journal = new Journal({
      ...this.#shared(),
      onSettled: () => this.#flusher.sealer.kick(),
      onPublished: (push) => {
        push.tenant.changes.noteGrowth(push.heads.values());
        this.#tails.note(push);
      },
    });
    this.#flusher = new Flusher({
      ...this.#shared(),
      isReplaying: () => !this.#recovery.isDone,
      onSealed: (sizeBytes) => {
        this.#intake.wrote(sizeBytes);
        this.#journal.planCut();
      },
    });
    this.#intake = new Intake({
      ...this.#shared(),
      journal: this.#journal,
      sealer: this.#flusher.sealer,
      assertRunning: () => this.#assertRunning(),
    });
    this.#held = new Held({
      ...this.#shared(),
      recovery: this.#recovery,
      assertReadable: () => this.#assertReadable(),
    });
  }

  /** The dependencies that most parts need. */
  #shared() {
    return {
      ...this.#deps,
      metrics: this.#metrics,
      heads: this.#heads,
      segments: this.#segments,
      clock: this.#clock,
    };
  }

  #createMetrics(): IngesterMetrics {
    return createIngesterMetrics(this.#deps.metrics, {
      tails: () => this.#tails.count,
      chunks: () => this.#heads.count,
      flushQueue: () => this.#flusher.sealer.length,
      headBytes: () => this.#heads.memory.usedBytes,
      localSegments: () => this.#segments.all().length,
      walBytes: () => this.#journal.wal.stats().bytes,
      walQueuedBytes: () => this.#journal.wal.stats().queuedBytes,
    });
  }

  get state(): IngesterState {
    return this.#state;
  }

  /** Why a running ingester refuses pushes: a directory is not writable. Undefined again as soon as it is. */
  get unready(): string | undefined {
    return this.#state === "running" ? this.#intake.unwritable : undefined;
  }

  /** What makes it slow although it works: the disk of its log. */
  get complaint(): string | undefined {
    return this.#journal.slowDisk;
  }

  /**
   * Locks its directories, finds local segments, opens the log, and accepts pushes from then on. The log is replayed in
   * the background, and queries wait for that. Rejects when another process has locked the directories, or a newer version
   * wrote one of their files.
   */
  start(signal?: AbortSignal): Promise<void> {
    signal?.addEventListener("abort", () => this.#abort.abort(), { once: true });
    this.#started = this.#start();
    return this.#started;
  }

  async #start(): Promise<void> {
    this.#state = "starting";
    this.#lockDirectories();
    // Both refuse files of a newer version. Opening the log changes nothing, so it comes first.
    await this.#journal.open();
    const { corrupt } = await this.#segments.open();
    this.#metrics.corruptSegments.inc(corrupt);
    await this.checkDisk();
    this.#state = "running";
    this.#recover();
    const { sleep, options, log } = this.#deps;
    const loop = (pauseMs: number, task: () => Promise<void> | void) =>
      repeat(task, {
        pauseMs,
        signal: this.#abort.signal,
        onError: (error) => log.error("background work of the ingester failed", { error }),
        ...(sleep === undefined ? {} : { sleep }),
      });
    this.#loops = Promise.all([
      loop(options.config.flush_check_period, () => this.sweep()),
      loop(diskCheckPeriodMs, () => this.checkDisk()),
    ]);
  }

  /** Starts to restore the heads that earlier processes left in the log. */
  #recover(): void {
    const context = {
      ...this.#shared(),
      endFile: this.#journal.wal.nextFile(),
      sealer: this.#flusher.sealer,
      signal: this.#abort.signal,
    };
    this.#recovery.begin(this.#deps.options.config.wal.enabled ? context : undefined);
    void this.replayed.then(() => this.#journal.allowCuts(), ignore);
  }

  /** Resolves when queries can read all rows of the log; rejects when it is unreadable or the ingester is stopped. */
  get replayed(): Promise<void> {
    return this.#recovery.done;
  }

  /** Resolves when the signal is aborted. Rejects when the log cannot be replayed, because queries would miss its rows. */
  async runUntil(signal: AbortSignal): Promise<void> {
    await this.replayed;
    if (signal.aborted) return;
    await new Promise<void>((resolve) => {
      signal.addEventListener("abort", () => resolve(), { once: true });
    });
  }

  /** Refuses further pushes, seals and uploads everything if wanted, and closes the log. */
  async stop(options: { flush?: boolean } = {}): Promise<void> {
    this.#abort.abort();
    this.#tails.close();
    await this.#started.catch(() => undefined);
    if (this.#state === "stopping" || this.#state === "stopped") return;
    const wasRunning = this.#state === "running";
    this.#state = "stopping";
    await this.#loops;
    await this.replayed.catch(ignore);
    if (wasRunning && (options.flush ?? this.#deps.options.config.wal.flush_on_shutdown)) {
      await this.#flusher.flushAtEnd();
    }
    await this.#flusher.close();
    await this.#journal.cutAll();
    await this.#journal.wal.close();
    for (const lock of this.#locks) lock.release();
    this.#state = "stopped";
  }

  async push(request: PushRequest): Promise<PushOutcome> {
    const { aroundPush } = this.#deps;
    const push = () => this.#intake.push(request);
    return aroundPush === undefined ? push() : aroundPush(request.batch, push);
  }

  /** The time of the oldest row here, ns since the epoch: 0 while it is unknown, undefined when there is no row. */
  oldestNs(): bigint | undefined {
    return this.#held.oldestNs();
  }

  /** Whether it may have rows that the store does not have; also valid after a stop. */
  get holdsRows(): boolean {
    return this.#held.holdsRows;
  }

  select(
    request: SelectRequest,
    options: { readonly signal?: AbortSignal } = {},
  ): Promise<Selection> {
    return this.#held.select(request, options);
  }

  changes(
    request: HeldChangesRequest,
    options: { readonly signal?: AbortSignal } = {},
  ): Promise<HeldChanges> {
    return this.#held.changes(request, options);
  }

  tail(
    request: TailRequest,
    { signal }: { readonly signal: AbortSignal },
  ): AsyncIterable<TailRows> {
    this.#assertReadable();
    return this.#tails.open(request, signal);
  }

  async release(view: string): Promise<void> {
    this.#held.views.release(view);
  }

  async run<K extends HeldKind>(
    kind: K,
    task: TaskOf<K>,
    options: ScanOptions,
  ): Promise<AnswerOf<K>> {
    return this.#held.run(kind, task, options);
  }

  /** Seals every head and uploads every local segment, of one tenant or of all. */
  async flush({ tenant }: FlushRequest = {}): Promise<void> {
    await this.replayed;
    await this.#flusher.flush(tenant);
  }

  /** Does the work that is due: seals old heads, uploads old segments, drops unused copies. */
  async sweep(): Promise<void> {
    const { uploader } = this.#flusher;
    const { views } = this.#held;
    this.#heads.freezeOld();
    views.sweep();
    uploader.sweep();
    // A replay needs the numbers of streams, local segments, and log files that no head knows yet.
    if (!this.#recovery.isDone) return;
    this.#journal.relieve();
    this.#heads.removeIdle();
    await this.#journal.cutAll();
    await uploader.dropOld(this.#journal.wal.firstFile, (id) => views.holds(id));
  }

  /** Checks whether the disk has room and is writable; the result decides about pushes until the next check. */
  async checkDisk(): Promise<void> {
    await this.#intake.checkDisk();
  }

  #assertRunning(): void {
    if (this.#state === "running") return;
    throw unavailable(`the ingester is ${this.#state} and takes no pushes; try again`);
  }

  #assertReadable(): void {
    if (this.#state === "running" || this.#state === "stopping") return;
    throw unavailable(`the ingester is ${this.#state}; try again`);
  }

  /** Two processes that write to one log, or seal its rows, would lose each other's rows. */
  #lockDirectories(): void {
    for (const dir of writtenDirectories(this.#deps.options)) {
      const lock = DirectoryLock.take(dir);
      this.#locks.push(lock);
      if (lock.isExclusive) continue;
      this.#deps.log.warn("a directory is not locked: that needs Node 22.13 or later", { dir });
    }
  }
}

function ignore(): void {}
