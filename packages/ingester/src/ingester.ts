import type {
  DigestTask,
  DuplicateTask,
  EncodedOutcome,
  EncodedStreams,
  FlushRequest,
  HeldChanges,
  HeldChangesRequest,
  Ingester as IngesterContract,
  LabelTask,
  MatchedRows,
  MatchTask,
  MinuteDigests,
  PlacedHashes,
  PushOutcome,
  PushRequest,
  RowHashTask,
  RowMask,
  Scanner,
  ScanOptions,
  ScanTask,
  Selection,
  SelectRequest,
  SourceRef,
  StreamTask,
  Tailer,
  TailRequest,
  TailRows,
  VolumeTask,
} from "@skald/contracts";
import {
  type Batch,
  type Clock,
  type SteadyClock,
  steadyClock,
  systemClock,
  unavailable,
} from "@skald/model";
import { type Logger, type Metrics, repeat, type Sleep, sleep } from "@skald/runtime";
import { DirectoryLock, type LocalRef, type WalDisk } from "@skald/storage";
import { noteChanges } from "./changes/note-changes.js";
import { Flusher } from "./flush/flusher.js";
import type { MergeLocal } from "./flush/local-merger.js";
import { LocalSegments } from "./flush/local-segments.js";
import type { Seal } from "./flush/sealer.js";
import type { SegmentStore } from "./flush/uploader.js";
import { diskCheckPeriodMs, Intake } from "./intake.js";
import type { IngesterLimits } from "./limits.js";
import { Journal } from "./log/journal.js";
import { Recovery, type RecoveryContext } from "./log/recovery.js";
import { createIngesterMetrics, type IngesterMetrics } from "./metrics.js";
import type { IngesterOptions } from "./options.js";
import { type RunTails, Tails } from "./tail/tails.js";
import { Heads } from "./tenant/heads.js";
import { Held } from "./tenant/held.js";
import { HeldScanner } from "./tenant/held-scanner.js";
import { Views } from "./tenant/views.js";

export interface IngesterDependencies {
  readonly options: IngesterOptions;
  readonly limitsOf: (tenant: string) => IngesterLimits;
  readonly seal: Seal;
  /** Merges local segments, elsewhere than on this thread. */
  readonly merge: MergeLocal;
  readonly store: SegmentStore;
  /** Scans what the ingester holds. */
  readonly scanner: Scanner<LocalRef>;
  readonly runTails: RunTails;
  /** Does something beside each push, which is answered when both are done. */
  readonly aroundPush?: (batch: Batch, push: () => Promise<PushOutcome>) => Promise<PushOutcome>;
  /** Told of each local file that was deleted, so that whoever has it open closes it. */
  readonly onDropped?: (path: string) => void;
  readonly log: Logger;
  readonly metrics: Metrics;
  readonly clock?: Clock;
  readonly steadyClock?: SteadyClock;
  readonly sleep?: Sleep;
  readonly disk?: WalDisk;
}

/** `starting` while directories are locked and looked through: neither pushes nor queries are taken. */
export type IngesterState = "new" | "starting" | "running" | "stopping" | "stopped";

/**
 * Holds new rows until they are in the object store. A push is checked, appended to heads in memory and to the
 * write-ahead log, and visible once the log has it. Heads are sealed into segments on the local disk by workers, and
 * segments are uploaded; a head's rows leave the log only when its segment is synced.
 */
export class Ingester implements IngesterContract, Tailer {
  readonly #deps: IngesterDependencies;
  readonly #options: IngesterOptions;
  readonly #clock: SteadyClock;
  readonly #log: Logger;
  readonly #metrics: IngesterMetrics;
  readonly #segments: LocalSegments;
  readonly #heads: Heads;
  readonly #journal: Journal;
  readonly #flusher: Flusher;
  readonly #intake: Intake;
  readonly #views: Views;
  readonly #held: Held;
  readonly #scanner: HeldScanner;
  readonly #tails: Tails;
  readonly #recovery = new Recovery();
  readonly #abort = new AbortController();
  readonly #locks: DirectoryLock[] = [];
  #state: IngesterState = "new";
  #started: Promise<void> = Promise.resolve();
  #loops: Promise<unknown> = Promise.resolve();

  constructor(deps: IngesterDependencies) {
    const { options, log } = deps;
    this.#deps = deps;
    this.#options = options;
    this.#clock = deps.steadyClock ?? steadyClock;
    const timeOfDay = deps.clock ?? systemClock;
    this.#log = log;
    this.#segments = new LocalSegments({
      dataDir: options.dataDir,
      log,
      clock: this.#clock,
      timeOfDay,
      onDropped: (path) => deps.onDropped?.(path),
    });
    this.#tails = this.#createTails();
    this.#metrics = this.#createMetrics();
    this.#heads = new Heads({
      options,
      startMs: timeOfDay.nowMs(),
      clock: this.#clock,
      metrics: () => this.#metrics,
      sealer: () => this.#flusher.sealer,
    });
    const { metrics, ...rest } = deps;
    const parts = {
      ...rest,
      metrics: this.#metrics,
      heads: this.#heads,
      segments: this.#segments,
      clock: this.#clock,
    };
    this.#journal = new Journal({
      ...parts,
      onSettled: () => this.#flusher.sealer.kick(),
      onPublished: (push) => {
        noteChanges(push);
        this.#tails.note(push);
      },
    });
    this.#flusher = new Flusher({
      ...parts,
      isReplaying: () => !this.#recovery.isDone,
      onSealed: (sizeBytes) => {
        this.#intake.wrote(sizeBytes);
        this.#journal.planCut();
      },
    });
    this.#views = new Views(this.#clock);
    this.#scanner = new HeldScanner(deps.scanner, this.#views);
    this.#held = new Held({
      heads: this.#heads,
      segments: this.#segments,
      views: this.#views,
      digests: (task, scanOptions) => this.#scanner.digests(task, scanOptions),
      recovery: this.#recovery,
      limitsOf: deps.limitsOf,
      maxReplayWaitMs: options.bounds.maxReplayWaitMs,
      sleep: deps.sleep ?? sleep,
      assertReadable: () => this.#assertReadable(),
    });
    this.#intake = new Intake({
      ...parts,
      directories: this.#directories(),
      journal: this.#journal,
      sealer: this.#flusher.sealer,
      assertRunning: () => this.#assertRunning(),
    });
  }

  get state(): IngesterState {
    return this.#state;
  }

  /** Why it takes no pushes although it runs: a directory cannot be written. Goes away by itself when it can be. */
  get unready(): string | undefined {
    return this.#state === "running" ? this.#intake.unwritable : undefined;
  }

  /**
   * Locks its directories, finds local segments, opens the log, and takes pushes from then on. What is in the log is
   * replayed behind: queries wait for it. Rejects when another process has the directories.
   */
  start(signal?: AbortSignal): Promise<void> {
    signal?.addEventListener("abort", () => this.#abort.abort(), { once: true });
    this.#started = this.#start();
    return this.#started;
  }

  async #start(): Promise<void> {
    this.#state = "starting";
    this.#lockDirectories();
    const { corrupt } = await this.#segments.open();
    this.#metrics.corruptSegments.inc(corrupt);
    await this.#journal.open();
    await this.checkDisk();
    this.#state = "running";
    this.#recovery.begin(this.#options.config.wal.enabled ? this.#recoveryContext() : undefined);
    void this.replayed.then(() => this.#journal.allowCuts(), ignore);
    const { sleep } = this.#deps;
    const loop = (pauseMs: number, task: () => Promise<void> | void) =>
      repeat(task, {
        pauseMs,
        signal: this.#abort.signal,
        onError: (error) => this.#log.error("background work of the ingester failed", { error }),
        ...(sleep === undefined ? {} : { sleep }),
      });
    this.#loops = Promise.all([
      loop(this.#options.config.flush_check_period, () => this.sweep()),
      loop(diskCheckPeriodMs, () => this.checkDisk()),
    ]);
  }

  /**
   * Resolves when all that earlier processes left in the log can be queried; rejects when it cannot be read, or the ingester
   * is stopped meanwhile.
   */
  get replayed(): Promise<void> {
    return this.#recovery.done;
  }

  /** Runs until the signal is aborted. Rejects when the log cannot be replayed: what is in it would not be found. */
  async run(signal: AbortSignal): Promise<void> {
    await this.replayed;
    if (signal.aborted) return;
    await new Promise<void>((resolve) => {
      signal.addEventListener("abort", () => resolve(), { once: true });
    });
  }

  /** Takes no more pushes, seals and uploads everything if asked to, and closes the log. */
  async stop(options: { flush?: boolean } = {}): Promise<void> {
    this.#abort.abort();
    this.#tails.close();
    await this.#started.catch(() => undefined);
    if (this.#state === "stopping" || this.#state === "stopped") return;
    const wasRunning = this.#state === "running";
    this.#state = "stopping";
    await this.#loops;
    await this.replayed.catch(ignore);
    if (wasRunning && (options.flush ?? this.#options.config.wal.flush_on_shutdown)) {
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

  /** The time of the oldest row that is held, ns since the epoch: 0 while that is not known, undefined when there is none. */
  oldestNs(): bigint | undefined {
    return this.#held.oldestNs();
  }

  /** Whether rows may be here that the store does not have; also true of a stopped one. */
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
    this.#views.release(view);
  }

  async scan(task: ScanTask, options: ScanOptions): Promise<EncodedOutcome> {
    return this.#scanner.scan(task, options);
  }

  async measure(task: ScanTask, options: ScanOptions): Promise<number> {
    return this.#scanner.measure(task, options);
  }

  async volumes(task: VolumeTask, options: ScanOptions): Promise<EncodedOutcome> {
    return this.#scanner.volumes(task, options);
  }

  async streams(task: StreamTask, options: ScanOptions): Promise<EncodedStreams> {
    return this.#scanner.streams(task, options);
  }

  async labels(task: LabelTask, options: ScanOptions): Promise<EncodedStreams> {
    return this.#scanner.labels(task, options);
  }

  async duplicates(task: DuplicateTask, options: ScanOptions): Promise<RowMask> {
    return this.#scanner.duplicates(task, options);
  }

  async matches(task: MatchTask, options: ScanOptions): Promise<MatchedRows> {
    return this.#scanner.matches(task, options);
  }

  async digests(task: DigestTask<SourceRef>, options: ScanOptions): Promise<MinuteDigests> {
    return this.#scanner.digests(task, options);
  }

  async rowHashes(task: RowHashTask<SourceRef>, options: ScanOptions): Promise<PlacedHashes> {
    return this.#scanner.rowHashes(task, options);
  }

  /** Seals every head and uploads every local segment, of one tenant or of all. */
  async flush({ tenant }: FlushRequest = {}): Promise<void> {
    await this.replayed;
    await this.#flusher.flush(tenant);
  }

  /** Does what is due by time: seals old heads, uploads old segments, drops what nobody needs. */
  async sweep(): Promise<void> {
    this.#heads.freezeOld();
    this.#views.sweep();
    this.#flusher.uploader.sweep();
    // A replay goes by the numbers of streams, by local segments, and by files that no head knows yet.
    if (!this.#recovery.isDone) return;
    this.#journal.relieve();
    this.#heads.removeIdle();
    await this.#journal.cutAll();
    await this.#flusher.uploader.dropOld(this.#journal.wal.firstFile);
  }

  /** Looks whether the disk has room and takes writes: until the next look pushes are taken or refused accordingly. */
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

  /** Two processes that write to one log, or seal what it holds, would lose rows of each other. */
  #lockDirectories(): void {
    for (const dir of this.#directories()) {
      const lock = DirectoryLock.take(dir);
      this.#locks.push(lock);
      if (lock.isExclusive) continue;
      this.#log.warn("a directory is not locked: that needs Node 22.13 or later", { dir });
    }
  }

  #directories(): string[] {
    const { dataDir, config } = this.#options;
    return [...new Set(config.wal.enabled ? [dataDir, config.wal.dir] : [dataDir])];
  }

  #recoveryContext(): RecoveryContext {
    const { disk, limitsOf } = this.#deps;
    return {
      options: this.#options,
      endFile: this.#journal.wal.nextFile(),
      heads: this.#heads,
      sealer: this.#flusher.sealer,
      segments: this.#segments,
      limitsOf,
      metrics: this.#metrics,
      log: this.#log,
      clock: this.#clock,
      signal: this.#abort.signal,
      ...(disk === undefined ? {} : { disk }),
    };
  }

  #createTails(): Tails {
    return new Tails({
      run: this.#deps.runTails,
      maxDropped: this.#options.config.max_dropped_streams,
      onDropped: (rows) => this.#metrics.tailDropped.inc(rows),
      onError: (error) => this.#log.error("a tail failed", { error }),
    });
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
}

function ignore(): void {}
