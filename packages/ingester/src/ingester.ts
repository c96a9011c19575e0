import type {
  DuplicateTask,
  EncodedOutcome,
  EncodedStreams,
  FlushRequest,
  Ingester as IngesterContract,
  LabelTask,
  PushOutcome,
  PushRequest,
  RowMask,
  Scanner,
  ScanOptions,
  ScanPlan,
  ScanTask,
  Selection,
  SelectRequest,
  SourceRef,
  StreamTask,
} from "@skald/contracts";
import {
  type Batch,
  type Clock,
  SkaldError,
  type SteadyClock,
  steadyClock,
  systemClock,
  unavailable,
} from "@skald/model";
import { type Logger, type Metrics, repeat, type Sleep, sleep } from "@skald/runtime";
import { DirectoryLock, type LocalRef, nodeWalDisk, Wal, type WalDisk } from "@skald/storage";
import { DiskWatch } from "./flush/disk-watch.js";
import { LocalSegments } from "./flush/local-segments.js";
import { PushQueue } from "./flush/push-queue.js";
import { type Seal, Sealer } from "./flush/sealer.js";
import { type SegmentStore, Uploader } from "./flush/uploader.js";
import type { Head } from "./head/head.js";
import type { IngesterLimits } from "./limits.js";
import { PendingPushes } from "./log/pending-pushes.js";
import { noLog, type PushLog } from "./log/push-log.js";
import { forwardRecordsOf, recordsOf } from "./log/push-record.js";
import { recoverHeads } from "./log/recovery.js";
import { createIngesterMetrics, type IngesterMetrics, observeSealed } from "./metrics.js";
import type { IngesterOptions } from "./options.js";
import { Heads } from "./tenant/heads.js";
import { selectHeads } from "./tenant/selection.js";
import type { TenantAppend } from "./tenant/tenant.js";
import { Views } from "./tenant/views.js";

export interface IngesterDependencies {
  readonly options: IngesterOptions;
  readonly limitsOf: (tenant: string) => IngesterLimits;
  readonly seal: Seal;
  readonly store: SegmentStore;
  /** Scans what the ingester holds. */
  readonly scanner: Scanner<LocalRef>;
  /** Told of each local file that was deleted, so that whoever has it open closes it. */
  readonly onDropped?: (path: string) => void;
  readonly log: Logger;
  readonly metrics: Metrics;
  readonly clock?: Clock;
  readonly steadyClock?: SteadyClock;
  readonly sleep?: Sleep;
  readonly disk?: WalDisk;
}

/** `starting` while the log is replayed: neither pushes nor queries are taken. */
export type IngesterState = "new" | "starting" | "running" | "stopping" | "stopped";

/** A head whose rows are on their way to a later file of the log. */
interface ForwardedHead {
  readonly head: Head;
  readonly file: number;
  readonly written: Promise<void>;
}

/** Memory of a row of a batch beside its line. */
const bytesPerRow = 40;
/** How often the disk is looked at. */
const diskCheckPeriodMs = 5000;
/** How long a flush gathers segments before it uploads them. */
const uploadPauseMs = 50;

/**
 * Holds new rows until they are in the object store. A push is checked, appended to heads in memory and to the
 * write-ahead log, and visible once the log has it. Heads are sealed into segments on the local disk by workers, and
 * segments are uploaded; a head's rows leave the log only when its segment is synced.
 */
export class Ingester implements IngesterContract {
  readonly #deps: IngesterDependencies;
  readonly #options: IngesterOptions;
  readonly #clock: SteadyClock;
  readonly #log: Logger;
  readonly #metrics: IngesterMetrics;
  readonly #segments: LocalSegments;
  readonly #heads: Heads;
  readonly #sealer: Sealer;
  readonly #uploader: Uploader;
  readonly #queue: PushQueue;
  readonly #disk: DiskWatch;
  readonly #views: Views;
  readonly #abort = new AbortController();
  readonly #pending = new PendingPushes();
  readonly #locks: DirectoryLock[] = [];
  #wal: PushLog = noLog;
  #walFile = 0;
  #state: IngesterState = "new";
  #started: Promise<void> = Promise.resolve();
  #loops: Promise<unknown> = Promise.resolve();
  #cutting: Promise<void> = Promise.resolve();
  #cutPlanned = false;

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
    this.#heads = new Heads({
      options,
      startMs: timeOfDay.nowMs(),
      clock: this.#clock,
      metrics: () => this.#metrics,
      sealer: () => this.#sealer,
    });
    this.#sealer = this.#createSealer();
    this.#uploader = this.#createUploader();
    this.#views = new Views(this.#clock);
    this.#queue = new PushQueue({
      sealer: this.#sealer,
      log: () => this.#wal,
      maxWaitingBytes: options.bounds.maxWaitingBytes,
      maxWaitMs: options.bounds.maxPushWaitMs,
      ...(deps.sleep === undefined ? {} : { sleep: deps.sleep }),
    });
    this.#disk = new DiskWatch({
      dataDir: options.dataDir,
      dirs: this.#directories(),
      disk: deps.disk ?? nodeWalDisk,
      minFreeBytes: options.bounds.minFreeBytes,
      queuedBytes: () => this.#wal.stats().queuedBytes,
    });
    this.#metrics = createIngesterMetrics(deps.metrics, {
      chunks: () => this.#heads.count,
      flushQueue: () => this.#sealer.length,
      headBytes: () => this.#heads.memory.usedBytes,
      localSegments: () => this.#segments.all().length,
      walBytes: () => this.#wal.stats().bytes,
      walQueuedBytes: () => this.#wal.stats().queuedBytes,
    });
  }

  get state(): IngesterState {
    return this.#state;
  }

  /** Why it takes no pushes although it runs: a directory cannot be written. Goes away by itself when it can be. */
  get unready(): string | undefined {
    return this.#state === "running" ? this.#disk.unwritable : undefined;
  }

  /**
   * Locks its directories, finds local segments, replays the log, and takes pushes from then on. Rejects when another
   * process has the directories, when it is stopped meanwhile, or the signal is aborted.
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
    if (this.#options.config.wal.enabled) await this.#startLog();
    await this.checkDisk();
    this.#state = "running";
    this.#planCut();
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

  /** Takes no more pushes, seals and uploads everything if asked to, and closes the log. */
  async stop(options: { flush?: boolean } = {}): Promise<void> {
    this.#abort.abort();
    await this.#started.catch(() => undefined);
    if (this.#state === "stopping" || this.#state === "stopped") return;
    const wasRunning = this.#state === "running";
    this.#state = "stopping";
    await this.#loops;
    if (wasRunning && (options.flush ?? this.#options.config.wal.flush_on_shutdown)) {
      try {
        await this.#inTime(this.flush());
      } catch (error) {
        this.#log.error("flushing at the end failed; the rest stays on the local disk", { error });
      }
    }
    await this.#sealer.close();
    await this.#uploader.close();
    await this.#cutAll();
    await this.#wal.close();
    for (const lock of this.#locks) lock.release();
    this.#state = "stopped";
  }

  /** Waits for the last flush no longer than whoever asked for the end can be expected to. */
  async #inTime(flush: Promise<void>): Promise<void> {
    const done = new AbortController();
    const { maxStopFlushMs } = this.#options.bounds;
    const late = (this.#deps.sleep ?? sleep)(maxStopFlushMs, done.signal).then(() => {
      throw unavailable(`it has taken longer than ${maxStopFlushMs / 1000}s`);
    });
    // Both go on behind the race, and nobody hears of them any more.
    for (const one of [flush, late]) one.catch(() => undefined);
    try {
      await Promise.race([flush, late]);
    } finally {
      done.abort();
    }
  }

  async push({ tenant, batch }: PushRequest): Promise<PushOutcome> {
    this.#assertPushable();
    const release = await this.#enter(batch);
    try {
      this.#assertPushable();
      const push = this.#append(tenant, batch);
      if (push.ranges.length > 0) await this.#write(push, batch);
      // Duplicates of rows that are not written yet are as safe as those.
      else if (push.duplicates > 0) await this.#pending.settled(push.tenant);
      return { refusals: push.refusals };
    } finally {
      release();
    }
  }

  async select(request: SelectRequest): Promise<Selection> {
    if (this.#state !== "running" && this.#state !== "stopping") {
      throw unavailable(`the ingester is ${this.#state}; try again`);
    }
    const tenant = this.#heads.find(request.tenant);
    const heads = tenant === undefined ? [] : selectHeads(request, tenant);
    const segments = this.#segments.select(request.tenant, request.fromNs, request.toNs);
    const { refs, ...view } = this.#views.open(heads);
    const graceMs = this.#deps.limitsOf(request.tenant).creation_grace_period;
    const completeFromNs = this.#segments.completeFromNs(request.tenant, graceMs);
    return { ...view, sources: [...segments, ...refs], completeFromNs };
  }

  async release(view: string): Promise<void> {
    this.#views.release(view);
  }

  async scan(task: ScanTask, options: ScanOptions): Promise<EncodedOutcome> {
    return this.#deps.scanner.scan(this.#local(task), options);
  }

  async measure(task: ScanTask, options: ScanOptions): Promise<number> {
    return this.#deps.scanner.measure(this.#local(task), options);
  }

  async streams(task: StreamTask, options: ScanOptions): Promise<EncodedStreams> {
    const sources = task.sources.map((ref) => this.#localRef(ref));
    return this.#deps.scanner.streams({ ...task, sources }, options);
  }

  async labels(task: LabelTask, options: ScanOptions): Promise<EncodedStreams> {
    const sources = task.sources.map((ref) => this.#localRef(ref));
    return this.#deps.scanner.labels({ ...task, sources }, options);
  }

  async duplicates(task: DuplicateTask, options: ScanOptions): Promise<RowMask> {
    const newer = this.#localRef(task.newer);
    const older = task.older.map((ref) => this.#localRef(ref));
    return this.#deps.scanner.duplicates({ ...task, newer, older }, options);
  }

  /** Seals every head and uploads every local segment, of one tenant or of all. */
  async flush({ tenant }: FlushRequest = {}): Promise<void> {
    let isSealed = false;
    const sealing = this.#heads.seal(tenant).finally(() => {
      isSealed = true;
    });
    sealing.catch(() => undefined);
    // What is sealed is uploaded while the rest is.
    for (;;) {
      const done = new AbortController();
      const pause = (this.#deps.sleep ?? sleep)(uploadPauseMs, done.signal).catch(() => undefined);
      await Promise.race([sealing, pause]).finally(() => done.abort());
      if (isSealed) break;
      await this.#uploader.flush(tenant);
    }
    await sealing;
    await this.#uploader.flush(tenant);
  }

  /** Does what is due by time: seals old heads, uploads old segments, drops what nobody needs. */
  async sweep(): Promise<void> {
    this.#heads.freezeOld();
    this.#relieveLog();
    this.#heads.removeIdle();
    this.#views.sweep();
    this.#uploader.sweep();
    await this.#cutAll();
    await this.#uploader.dropOld(this.#wal.firstFile);
  }

  /** Looks whether the disk has room and takes writes: until the next look pushes are taken or refused accordingly. */
  async checkDisk(): Promise<void> {
    await Promise.all([this.#disk.check(), this.#wal.checkDisk()]);
  }

  #local(task: ScanTask): ScanTask<ScanPlan, LocalRef> {
    const sources = task.sources.map((source) => ({ ...source, ref: this.#localRef(source.ref) }));
    return { ...task, sources };
  }

  #localRef(ref: SourceRef): LocalRef {
    return ref.kind === "head" ? this.#views.find(ref) : ref;
  }

  #assertPushable(): void {
    if (this.#state !== "running") {
      throw unavailable(`the ingester is ${this.#state} and takes no pushes; try again`);
    }
    const refusal = this.#wal.refusal ?? this.#disk.refusal;
    if (refusal === undefined) return;
    this.#metrics.walDiskFull.inc();
    const { code, message, retryAfterSeconds = diskCheckPeriodMs / 1000 } = refusal;
    throw new SkaldError(code, message, { cause: refusal, retryAfterSeconds });
  }

  #enter(batch: Batch): Promise<() => void> {
    const body = batch.source?.body.byteLength ?? 0;
    const logBytes = (body > 0 ? body : batch.bytes.byteLength) + batch.rowCount;
    const heldBytes = body + batch.bytes.byteLength + bytesPerRow * batch.rowCount;
    return this.#queue.enter(logBytes, heldBytes);
  }

  #append(name: string, batch: Batch): TenantAppend {
    const tenant = this.#heads.tenantOf(name);
    const streamsBefore = tenant.streams.size;
    const push = tenant.append(batch, this.#deps.limitsOf(name), this.#clock.elapsedMs());
    const created = tenant.streams.size - streamsBefore;
    if (created > 0) {
      this.#metrics.streamsCreated.inc({ tenant: name }, created);
      this.#metrics.memoryStreams.set({ tenant: name }, tenant.streams.size);
    }
    if (push.duplicates > 0) this.#metrics.duplicates.inc(push.duplicates);
    return push;
  }

  /** Logs what was appended; publishes it when the log has it. */
  #write(push: TenantAppend, batch: Batch): Promise<void> {
    const file = this.#wal.nextFile();
    const logged = batch.source?.body.byteLength ?? batch.lineBytes;
    this.#disk.wrote(logged);
    const written = this.#pending.add(push, file, this.#clock.elapsedMs(), () => {
      const records = recordsOf(push, batch, { file, offset: this.#wal.offset });
      return this.#wal.append(records, () => this.#publish()).written;
    });
    this.#metrics.walRecords.inc();
    this.#metrics.walBytes.inc(logged);
    this.#heads.freezeFull(push.tenant, push.heads.keys());
    if (file !== this.#walFile) this.#relieveLog();
    this.#walFile = file;
    return written;
  }

  /** Writes small heads again that keep much of the log from being cut; the log is cut when they are synced. */
  #relieveLog(): void {
    const forwarded = this.#heads.relieve(this.#wal).map(({ tenant, head }) => {
      const file = this.#wal.nextFile();
      const records = forwardRecordsOf(tenant, head, { file, offset: this.#wal.offset });
      head.forwarding = true;
      head.noteFile(file);
      this.#metrics.forwardedEntries.inc(head.rowCount);
      return { head, file, written: this.#wal.append(records, () => undefined).written };
    });
    if (forwarded.length > 0) void this.#moveOn(forwarded);
  }

  async #moveOn(forwarded: readonly ForwardedHead[]): Promise<void> {
    try {
      await Promise.all(forwarded.map(({ written }) => written));
      await this.#wal.sync();
      for (const { head, file } of forwarded) head.forwardTo(file);
    } catch (error) {
      // The log has told, and the rows are where they were.
      this.#log.warn("writing small heads again failed; trying again", { error });
    } finally {
      for (const { head } of forwarded) head.forwarding = false;
    }
    this.#planCut();
  }

  #publish(): void {
    this.#pending.publishOldest();
    this.#sealer.kick();
  }

  #undoPending(): void {
    this.#pending.undoAll();
    this.#sealer.kick();
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

  async #startLog(): Promise<void> {
    const { sleep, disk } = this.#deps;
    const { config, bounds } = this.#options;
    const { dir, fsync, fsync_interval, disk_full_threshold, replay_memory_ceiling } = config.wal;
    await recoverHeads({
      dir,
      ceilingBytes: Math.min(replay_memory_ceiling, bounds.maxReplayBytes, config.max_head_memory),
      heads: this.#heads,
      sealer: this.#sealer,
      segments: this.#segments,
      limitsOf: this.#deps.limitsOf,
      metrics: this.#metrics,
      log: this.#log,
      clock: this.#clock,
      signal: this.#abort.signal,
      ...(disk === undefined ? {} : { disk }),
    });
    const wal = await Wal.open({
      dir,
      fsync,
      fsyncIntervalMs: fsync_interval,
      maxFileBytes: bounds.maxWalFileBytes,
      maxQueuedBytes: bounds.maxWalQueuedBytes,
      diskFullThreshold: disk_full_threshold,
      onError: (error) => {
        this.#metrics.walFailures.inc();
        this.#log.error("the write-ahead log failed", { error });
      },
      ...(sleep === undefined ? {} : { sleep }),
      ...(disk === undefined ? {} : { disk }),
    });
    wal.onAbort(() => this.#undoPending());
    wal.onUnsynced((file) => this.#heads.freezeIn(file));
    this.#wal = wal;
    await wal.checkDisk();
  }

  #createSealer(): Sealer {
    const { seal, sleep } = this.#deps;
    const { config, bounds } = this.#options;
    const { min_period, max_period } = config.flush_op_backoff;
    return new Sealer({
      seal: async (job) => {
        const path = this.#segments.temporaryOf(job.path);
        const sealed = await seal({ ...job, path, sync: false });
        await this.#segments.place(job.path);
        return sealed;
      },
      concurrency: bounds.sealConcurrency,
      maxFrozenBytes: bounds.maxFrozenBytes,
      backoff: { min_period, max_period },
      pathOf: (head) => this.#segments.pathOf(head),
      streamsOf: (head) => this.#heads.streamsOf(head),
      onSealed: (head, sealed, path, reason) => {
        const nowMs = this.#clock.elapsedMs();
        const measures = { reason, targetBytes: config.head_target_size, nowMs };
        observeSealed(this.#metrics, head, sealed, measures);
        this.#disk.wrote(sealed.sizeBytes);
        this.#segments.add(head, sealed, path);
        this.#heads.replace(head);
        this.#planCut();
      },
      onEmpty: (head) => this.#heads.replace(head),
      onFailed: () => this.#metrics.flushFailures.inc(),
      log: this.#log,
      ...(sleep === undefined ? {} : { sleep }),
    });
  }

  #createUploader(): Uploader {
    return new Uploader({
      store: this.#deps.store,
      segments: this.#segments,
      config: this.#options.config,
      bounds: this.#options.bounds,
      onStored: ({ ref }) => {
        this.#metrics.chunksStored.inc({ tenant: ref.tenant });
        this.#metrics.storedBytes.inc({ tenant: ref.tenant }, ref.sizeBytes);
      },
      onFailed: () => this.#metrics.flushFailures.inc(),
      log: this.#log,
      clock: this.#clock,
    });
  }

  /** Cuts what can be cut, down to nothing when every row is in a segment. */
  async #cutAll(): Promise<void> {
    if (this.#heads.firstWalFile() > this.#wal.nextFile()) this.#wal.rotate();
    this.#planCut();
    await this.#cutting;
  }

  /** Cuts the log behind the oldest unsealed row, one cut at a time. */
  #planCut(): void {
    if (this.#cutPlanned || this.#state === "starting") return;
    this.#cutPlanned = true;
    this.#cutting = this.#cutting.then(async () => {
      this.#cutPlanned = false;
      try {
        await this.#wal.cut(this.#heads.firstWalFile());
      } catch (error) {
        this.#log.error("cutting the write-ahead log failed", { error });
      }
    });
  }
}
