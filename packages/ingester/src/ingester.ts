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
import { type Logger, type Metrics, repeat, type Sleep, sleep } from "@skald/runtime";
import { DirectoryLock, type LocalRef, type WalDisk } from "@skald/storage";
import type { MergeLocal } from "./flush/local-merger.js";
import { LocalSegments } from "./flush/local-segments.js";
import type { Seal } from "./flush/sealer.js";
import type { SegmentStore } from "./flush/uploader.js";
import { Flusher } from "./flusher.js";
import { Held, HeldScanner, Views } from "./held.js";
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

/** `starting` while directories are locked and looked through: neither pushes nor queries are taken. */
export type IngesterState = "new" | "starting" | "running" | "stopping" | "stopped";

/**
 * Holds new rows until they are in the object store. A push is checked, appended to heads in memory and to the
 * write-ahead log, and visible once the log has it. Heads are sealed into segments on the local disk by workers, and
 * segments are uploaded; a head's rows leave the log only when its segment is synced.
 */
export class Ingester implements IngesterContract, Tailer {
  readonly #deps: IngesterDependencies;
  readonly #log: Logger;
  readonly #parts: IngesterParts;
  readonly #journal: Journal;
  readonly #flusher: Flusher;
  readonly #intake: Intake;
  readonly #held: Held;
  readonly #scanner: HeldScanner;
  readonly #abort = new AbortController();
  readonly #locks: DirectoryLock[] = [];
  #state: IngesterState = "new";
  #started: Promise<void> = Promise.resolve();
  #loops: Promise<unknown> = Promise.resolve();

  constructor(deps: IngesterDependencies) {
    this.#deps = deps;
    this.#log = deps.log;
    this.#parts = new IngesterParts(deps, {
      assertRunning: () => this.#assertRunning(),
      assertReadable: () => this.#assertReadable(),
    });
    this.#journal = this.#parts.journal;
    this.#flusher = this.#parts.flusher;
    this.#intake = this.#parts.intake;
    this.#held = this.#parts.held;
    this.#scanner = this.#parts.scanner;
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
   * replayed behind: queries wait for it. Rejects when another process has the directories, or a later program wrote one of their
   * files.
   */
  start(signal?: AbortSignal): Promise<void> {
    signal?.addEventListener("abort", () => this.#abort.abort(), { once: true });
    this.#started = this.#start();
    return this.#started;
  }

  async #start(): Promise<void> {
    this.#state = "starting";
    this.#lockDirectories();
    // Both refuse files of a newer version. The log changes nothing when it is opened, so it comes first.
    await this.#journal.open();
    const { corrupt } = await this.#parts.segments.open();
    this.#parts.metrics.corruptSegments.inc(corrupt);
    await this.checkDisk();
    this.#state = "running";
    this.#parts.beginRecovery(this.#abort.signal);
    void this.replayed.then(() => this.#journal.allowCuts(), ignore);
    const { sleep, options } = this.#deps;
    const loop = (pauseMs: number, task: () => Promise<void> | void) =>
      repeat(task, {
        pauseMs,
        signal: this.#abort.signal,
        onError: (error) => this.#log.error("background work of the ingester failed", { error }),
        ...(sleep === undefined ? {} : { sleep }),
      });
    this.#loops = Promise.all([
      loop(options.config.flush_check_period, () => this.sweep()),
      loop(diskCheckPeriodMs, () => this.checkDisk()),
    ]);
  }

  /**
   * Resolves when all that earlier processes left in the log can be queried; rejects when it cannot be read, or the ingester
   * is stopped meanwhile.
   */
  get replayed(): Promise<void> {
    return this.#parts.recovery.done;
  }

  /** Resolves when the signal is aborted. Rejects when the log cannot be replayed: what is in it would not be found. */
  async runUntil(signal: AbortSignal): Promise<void> {
    await this.replayed;
    if (signal.aborted) return;
    await new Promise<void>((resolve) => {
      signal.addEventListener("abort", () => resolve(), { once: true });
    });
  }

  /** Takes no more pushes, seals and uploads everything if asked to, and closes the log. */
  async stop(options: { flush?: boolean } = {}): Promise<void> {
    this.#abort.abort();
    this.#parts.tails.close();
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
    return this.#parts.tails.open(request, signal);
  }

  async release(view: string): Promise<void> {
    this.#parts.views.release(view);
  }

  async run<K extends HeldKind>(
    kind: K,
    task: TaskOf<K>,
    options: ScanOptions,
  ): Promise<AnswerOf<K>> {
    return this.#scanner.run(kind, task, options);
  }

  /** Seals every head and uploads every local segment, of one tenant or of all. */
  async flush({ tenant }: FlushRequest = {}): Promise<void> {
    await this.replayed;
    await this.#flusher.flush(tenant);
  }

  /** Does what is due by time: seals old heads, uploads old segments, drops what nobody needs. */
  async sweep(): Promise<void> {
    this.#parts.heads.freezeOld();
    this.#parts.views.sweep();
    this.#flusher.uploader.sweep();
    // A replay goes by the numbers of streams, by local segments, and by files that no head knows yet.
    if (!this.#parts.recovery.isDone) return;
    this.#journal.relieve();
    this.#parts.heads.removeIdle();
    await this.#journal.cutAll();
    const isInUse = (id: string) => this.#parts.views.holds(id);
    await this.#flusher.uploader.dropOld(this.#journal.wal.firstFile, isInUse);
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
    for (const dir of writtenDirectories(this.#deps.options)) {
      const lock = DirectoryLock.take(dir);
      this.#locks.push(lock);
      if (lock.isExclusive) continue;
      this.#log.warn("a directory is not locked: that needs Node 22.13 or later", { dir });
    }
  }
}

function ignore(): void {}

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

/** What the state of the ingester allows. */
export interface StateChecks {
  /** Throws `unavailable` while no pushes are taken. */
  readonly assertRunning: () => void;
  /** Throws `unavailable` where the ingester has not begun, or has ended. */
  readonly assertReadable: () => void;
}

/** The parts of an ingester, each given those that it works with; nothing is opened or begun. */
export class IngesterParts {
  readonly segments: LocalSegments;
  readonly tails: Tails;
  readonly metrics: IngesterMetrics;
  readonly heads: Heads;
  readonly recovery = new Recovery();
  readonly journal: Journal;
  readonly flusher: Flusher;
  readonly intake: Intake;
  readonly views: Views;
  readonly scanner: HeldScanner;
  readonly held: Held;
  readonly #deps: IngesterDependencies;
  readonly #clock: SteadyClock;
  readonly #timeOfDay: Clock;

  constructor(deps: IngesterDependencies, checks: StateChecks) {
    this.#deps = deps;
    this.#clock = deps.steadyClock ?? steadyClock;
    this.#timeOfDay = deps.clock ?? systemClock;
    this.segments = this.#createSegments();
    this.tails = this.#createTails();
    this.metrics = this.#createMetrics();
    this.heads = this.#createHeads();
    this.journal = this.#createJournal();
    this.flusher = this.#createFlusher();
    this.intake = this.#createIntake(checks);
    this.views = new Views(this.#clock);
    this.scanner = new HeldScanner(deps.scanner, this.views);
    this.held = this.#createHeld(checks);
  }

  /** Begins to bring back what earlier processes left in the log, which is open; the signal ends it. */
  beginRecovery(signal: AbortSignal): void {
    if (!this.#deps.options.config.wal.enabled) {
      this.recovery.begin(undefined);
      return;
    }
    this.recovery.begin({
      ...this.#shared(),
      endFile: this.journal.wal.nextFile(),
      sealer: this.flusher.sealer,
      signal,
    });
  }

  /** What most parts are given. */
  #shared() {
    return {
      ...this.#deps,
      metrics: this.metrics,
      heads: this.heads,
      segments: this.segments,
      clock: this.#clock,
    };
  }

  #createSegments(): LocalSegments {
    const { options, log, onDropped } = this.#deps;
    return new LocalSegments({
      dataDir: options.dataDir,
      log,
      clock: this.#clock,
      retainMs: options.config.chunk_retain_period,
      timeOfDay: this.#timeOfDay,
      onDropped: (path) => onDropped?.(path),
    });
  }

  #createTails(): Tails {
    const { runTails, options, log } = this.#deps;
    return new Tails({
      run: runTails,
      maxDropped: options.config.max_dropped_streams,
      onDropped: (rows) => this.metrics.tailDropped.inc(rows),
      onError: (error) => log.error("a tail failed", { error }),
    });
  }

  #createMetrics(): IngesterMetrics {
    return createIngesterMetrics(this.#deps.metrics, {
      tails: () => this.tails.count,
      chunks: () => this.heads.count,
      flushQueue: () => this.flusher.sealer.length,
      headBytes: () => this.heads.memory.usedBytes,
      localSegments: () => this.segments.all().length,
      walBytes: () => this.journal.wal.stats().bytes,
      walQueuedBytes: () => this.journal.wal.stats().queuedBytes,
    });
  }

  #createHeads(): Heads {
    return new Heads({
      options: this.#deps.options,
      startMs: this.#timeOfDay.nowMs(),
      clock: this.#clock,
      metrics: () => this.metrics,
      sealer: () => this.flusher.sealer,
    });
  }

  #createJournal(): Journal {
    return new Journal({
      ...this.#shared(),
      onSettled: () => this.flusher.sealer.kick(),
      onPublished: (push) => {
        push.tenant.changes.noteGrowth(push.heads.values());
        this.tails.note(push);
      },
    });
  }

  #createFlusher(): Flusher {
    return new Flusher({
      ...this.#shared(),
      isReplaying: () => !this.recovery.isDone,
      onSealed: (sizeBytes) => {
        this.intake.wrote(sizeBytes);
        this.journal.planCut();
      },
    });
  }

  #createIntake({ assertRunning }: StateChecks): Intake {
    return new Intake({
      ...this.#shared(),
      directories: writtenDirectories(this.#deps.options),
      journal: this.journal,
      sealer: this.flusher.sealer,
      assertRunning,
    });
  }

  #createHeld({ assertReadable }: StateChecks): Held {
    const { options, limitsOf } = this.#deps;
    return new Held({
      heads: this.heads,
      segments: this.segments,
      views: this.views,
      scanner: this.scanner,
      recovery: this.recovery,
      limitsOf,
      maxReplayWaitMs: options.bounds.maxReplayWaitMs,
      sleep: this.#deps.sleep ?? sleep,
      assertReadable,
    });
  }
}
