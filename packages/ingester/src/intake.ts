import { join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { PushOutcome, PushRequest } from "@skald/contracts";
import { type Batch, SkaldError, type SteadyClock } from "@skald/model";
import { runInTurns } from "@skald/push";
import { type Semaphore, type Sleep, sleep } from "@skald/runtime";
import { type DiskSpace, nodeWalDisk, type WalDisk } from "@skald/storage";
import type { Sealer } from "./flush/sealer.js";
import type { Journal } from "./log/journal.js";
import type { IngesterMetrics } from "./settings/metrics.js";
import {
  type IngesterLimits,
  type IngesterOptions,
  writtenDirectories,
} from "./settings/options.js";
import type { Heads } from "./tenant/heads.js";
import {
  comesInParts,
  type NumberedBatch,
  type Tenant,
  type TenantAppend,
} from "./tenant/tenant.js";

export interface IntakeContext {
  readonly options: IngesterOptions;
  readonly limitsOf: (tenant: string) => IngesterLimits;
  readonly heads: Heads;
  readonly journal: Journal;
  readonly sealer: Sealer;
  /** Throws while the ingester is not running. */
  readonly assertRunning: () => void;
  readonly metrics: IngesterMetrics;
  readonly clock: SteadyClock;
  readonly sleep?: Sleep;
  readonly disk?: WalDisk;
}

/** Period of the checks of the disk. */
export const diskCheckPeriodMs = 5000;
/** Memory of a row of a batch without its line. */
const bytesPerRow = 40;

/** Takes pushes: each waits for room, is appended to heads and logged, and becomes visible once the log has it. */
export class Intake {
  readonly #context: IntakeContext;
  readonly #queue: PushQueue;
  readonly #disk: DiskWatch;

  constructor(context: IntakeContext) {
    this.#context = context;
    this.#queue = new PushQueue(context);
    this.#disk = new DiskWatch(context);
  }

  /** Why no push can be stored: a directory is not writable. */
  get unwritable(): string | undefined {
    return this.#disk.unwritable;
  }

  /** The room on the disk, by its last check and what was written since. */
  get room(): DiskRoom {
    return this.#disk.room;
  }

  async push(request: PushRequest): Promise<PushOutcome> {
    this.#assertPushable();
    const { tenant, batch } = request;
    const { line } = this.#context.heads.tenantOf(tenant);
    const isInParts = comesInParts(batch);
    if (!isInParts && line.free > 0) return this.#push(request);
    const leave = line.tryAcquire() ?? (await this.#queue.standIn(line, memoryOf(batch)));
    try {
      if (!isInParts) leave();
      return await this.#push(request);
    } finally {
      leave();
    }
  }

  async #push({ tenant, batch }: PushRequest): Promise<PushOutcome> {
    this.#assertPushable();
    const release = await this.#enter(tenant, batch);
    try {
      let numbers = this.#numberStreams(tenant, batch);
      if (numbers instanceof Promise) {
        numbers = await numbers;
        this.#assertPushable();
      }
      return await this.#append(tenant, batch, numbers);
    } finally {
      release();
    }
  }

  /** Must be called with the size of each file that was written. */
  wrote(sizeBytes: number): void {
    this.#disk.wrote(sizeBytes);
  }

  /** Checks whether the disk has room and is writable; the result decides about pushes until the next check. */
  async checkDisk(): Promise<void> {
    await Promise.all([this.#disk.check(), this.#context.journal.wal.checkDisk()]);
  }

  #assertPushable(): void {
    this.#context.assertRunning();
    const refusal = this.#context.journal.wal.refusal ?? this.#disk.refusal;
    if (refusal === undefined) return;
    this.#context.metrics.walDiskFull.inc();
    const { code, message, retryAfterSeconds = diskCheckPeriodMs / 1000 } = refusal;
    throw new SkaldError(code, message, { cause: refusal, retryAfterSeconds });
  }

  #enter(tenant: string, batch: Batch): Promise<() => void> {
    const body = batch.source?.body.byteLength ?? 0;
    const logBytes = (body > 0 ? body : batch.bytes.byteLength) + batch.rowCount;
    const { lineBytes } = batch;
    return this.#queue.enter({ tenant, lineBytes, logBytes, heldBytes: memoryOf(batch) });
  }

  /** Numbers the streams of a batch: those of a small one at once, those of others in turn with the work for other tenants. */
  #numberStreams(name: string, batch: Batch): Int32Array | Promise<Int32Array> {
    const { heads, limitsOf, clock } = this.#context;
    const tenant = heads.tenantOf(name);
    const numbering = tenant.numberStreams(batch, limitsOf(name), clock.elapsedMs());
    const numbered = runInTurns(numbering, { queue: name, goesOn: true });
    if (!(numbered instanceof Promise)) return this.#noted(tenant, numbered);
    return numbered.then((found) => {
      const numbers = this.#noted(tenant, found);
      return tenant.streams.removals === found.removals
        ? numbers
        : this.#numberStreams(name, batch);
    });
  }

  #noted({ name, streams }: Tenant, { numbers, created }: NumberedBatch): Int32Array {
    const { metrics } = this.#context;
    if (created > 0) {
      metrics.streamsCreated.inc({ tenant: name }, created);
      metrics.memoryStreams.set({ tenant: name }, streams.size);
    }
    return numbers;
  }

  /** Appends and logs a batch, part by part. */
  async #append(name: string, batch: Batch, numbers: Int32Array): Promise<PushOutcome> {
    const { heads, limitsOf, clock } = this.#context;
    const tenant = heads.tenantOf(name);
    let { removals } = tenant.streams;
    const parts = tenant.append(batch, numbers, limitsOf(name), clock.elapsedMs());
    for (;;) {
      const { value: part, done } = parts.next();
      await this.#log(part, batch);
      if (done === true) return { refusals: part.refusals };
      if (part.ranges.length === 0) await nextTurn();
      this.#assertPushable();
      if (tenant.streams.removals === removals) continue;
      numbers.set(await this.#numberStreams(name, batch));
      removals = tenant.streams.removals;
    }
  }

  async #log(part: TenantAppend, batch: Batch): Promise<void> {
    const { journal, metrics } = this.#context;
    if (part.duplicates > 0) metrics.duplicates.inc(part.duplicates);
    if (part.ranges.length > 0) {
      const bytes = loggedBytes(part, batch);
      this.#disk.wrote(bytes);
      await journal.write(part, batch, bytes);
    }
    // Duplicates of rows that are not written yet are as safe as those rows.
    else if (part.duplicates > 0) await journal.settled(part.tenant);
  }
}

/** What a push has in memory while it waits. */
function memoryOf({ source, bytes, rowCount }: Batch): number {
  return (source?.body.byteLength ?? 0) + bytes.byteLength + bytesPerRow * rowCount;
}

/** About what a part of a push takes in the log. */
function loggedBytes({ ranges }: TenantAppend, { source, lineBytes, rowCount }: Batch): number {
  if (source !== undefined) return source.body.byteLength;
  const rows = ranges.reduce((sum, { rowFrom, rowTo }) => sum + rowTo - rowFrom, 0);
  return Math.round((lineBytes * rows) / rowCount);
}

interface QueuedPush {
  readonly tenant: string;
  readonly lineBytes: number;
  /** What it adds to the log. */
  readonly logBytes: number;
  /** What it has in memory while it waits. */
  readonly heldBytes: number;
}

/** Lets pushes wait while sealing or the log is behind. Their memory and their time are bounded; beyond, they are refused. */
class PushQueue {
  readonly #context: Pick<IntakeContext, "options" | "sealer" | "journal" | "sleep">;
  #waitingBytes = 0;

  constructor(context: IntakeContext) {
    this.#context = context;
  }

  /** Resolves when a push may be appended; the result must be called once the log has the push. Rejects with `rate_limited`. */
  enter(push: QueuedPush): Promise<() => void> {
    const { sealer, journal } = this.#context;
    const { tenant, lineBytes, logBytes, heldBytes } = push;
    // No push is refused for its turn.
    const waitMs = this.#mayWait(heldBytes) ? sealer.paceMs(tenant, lineBytes) : 0;
    const isNow = waitMs < 1 && sealer.mayPush(tenant);
    const release = isNow ? journal.wal.tryReserve(logBytes) : undefined;
    if (release !== undefined) return Promise.resolve(release);
    return this.#wait(push, waitMs);
  }

  /** Resolves when it is the turn of a push in the line of its tenant; the result ends the turn. Rejects in the same way. */
  standIn(line: Semaphore, heldBytes: number): Promise<() => void> {
    return this.#hold(heldBytes, (signal) => line.acquire({ signal }));
  }

  #wait({ tenant, logBytes, heldBytes }: QueuedPush, waitMs: number): Promise<() => void> {
    const { sealer, journal, sleep: pause = sleep } = this.#context;
    const mayPush = () => sealer.mayPush(tenant);
    return this.#hold(heldBytes, async (signal) => {
      if (waitMs >= 1) await pause(waitMs, signal);
      for (;;) {
        await sealer.room(signal, mayPush);
        const release = await journal.wal.reserve(logBytes, signal);
        if (mayPush() || sealer.isClosed) return release;
        release();
      }
    });
  }

  /** Whether a push may wait besides those that do. */
  #mayWait(heldBytes: number): boolean {
    const { maxWaitingBytes } = this.#context.options.bounds;
    return this.#waitingBytes === 0 || this.#waitingBytes + heldBytes <= maxWaitingBytes;
  }

  /** Lets a push wait for something, within the bounds of memory and time. */
  async #hold<T>(heldBytes: number, wait: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const { maxPushWaitMs } = this.#context.options.bounds;
    if (!this.#mayWait(heldBytes)) throw slowDown("too many pushes wait to be stored");
    const late = new AbortController();
    const done = new AbortController();
    const timer = (this.#context.sleep ?? sleep)(maxPushWaitMs, done.signal).then(
      () => late.abort(slowDown(`the push has waited ${maxPushWaitMs / 1000}s to be stored`)),
      () => undefined,
    );
    this.#waitingBytes += heldBytes;
    try {
      return await wait(late.signal);
    } finally {
      this.#waitingBytes -= heldBytes;
      done.abort();
      await timer;
    }
  }
}

function slowDown(why: string): SkaldError {
  return new SkaldError("rate_limited", `${why}; slow down`);
}

/** Part of a small disk that must be free. */
const minFreePart = 1 / 20;

interface DiskRoom {
  /** Bytes that may be written before pushes are refused; infinite before the first check. */
  readonly spareBytes: number;
  readonly sizeBytes: number;
}

/**
 * Watches the disk, so that every acknowledged row can be sealed: pushes are refused while less is free than a segment may
 * need. Written bytes are counted between two checks.
 */
class DiskWatch {
  readonly #dataDir: string;
  /** All directories that the ingester writes to. */
  readonly #dirs: readonly string[];
  readonly #minFreeBytes: number;
  readonly #disk: WalDisk;
  readonly #journal: Journal;
  /** Bytes that may still be written before pushes are refused. */
  #spareBytes = Number.POSITIVE_INFINITY;
  #space: DiskSpace = { totalBytes: 0, freeBytes: 0 };
  #unwritable: string | undefined;
  #checking: Promise<void> | undefined;

  constructor({ options, disk = nodeWalDisk, journal }: IntakeContext) {
    this.#dataDir = options.dataDir;
    this.#dirs = writtenDirectories(options);
    this.#minFreeBytes = options.bounds.minFreeBytes;
    this.#disk = disk;
    this.#journal = journal;
  }

  /** The error for pushes while the disk is full or not writable. */
  get refusal(): SkaldError | undefined {
    const why = this.#unwritable ?? (this.#spareBytes < 0 ? this.#tooFull() : undefined);
    if (why === undefined) return undefined;
    return new SkaldError("unavailable", why, { retryAfterSeconds: diskCheckPeriodMs / 1000 });
  }

  get room(): DiskRoom {
    return { spareBytes: this.#spareBytes, sizeBytes: this.#space.totalBytes };
  }

  /** Why a directory is not writable. */
  get unwritable(): string | undefined {
    return this.#unwritable;
  }

  wrote(bytes: number): void {
    this.#spareBytes -= bytes;
    if (this.#spareBytes < 0) void this.check();
  }

  /** Checks the disk, or joins a running check. Never rejects. */
  check(): Promise<void> {
    this.#checking ??= this.#check().finally(() => {
      this.#checking = undefined;
    });
    return this.#checking;
  }

  async #check(): Promise<void> {
    try {
      this.#space = await this.#disk.space(this.#dataDir);
      const { queuedBytes } = this.#journal.wal.stats();
      this.#spareBytes = this.#space.freeBytes - this.#floorBytes - queuedBytes;
      for (const dir of this.#dirs) {
        const path = join(dir, "writable");
        await this.#disk.write(path, new Uint8Array(1));
        await this.#disk.remove(path);
      }
      this.#unwritable = undefined;
    } catch (error) {
      const code = error instanceof Error && "code" in error ? error.code : undefined;
      const isFull = code === "ENOSPC" || code === "EDQUOT";
      const why = error instanceof Error ? error.message : String(error);
      this.#unwritable = isFull ? undefined : `a directory cannot be written: ${why}`;
      if (isFull) this.#spareBytes = -1;
    }
  }

  /** Free space below which pushes are refused. */
  get #floorBytes(): number {
    return Math.min(this.#minFreeBytes, minFreePart * this.#space.totalBytes);
  }

  #tooFull(): string {
    const mib = (bytes: number) => `${Math.max(0, Math.floor(bytes / 1024 / 1024))} MiB`;
    return `the disk of ${this.#dataDir} is full: ${mib(this.#space.freeBytes)} are free, pushes are refused below ${mib(this.#floorBytes)}, so that what was taken can be sealed; free space to go on`;
  }
}
