import { join } from "node:path";
import type { PushOutcome, PushRequest } from "@skald/contracts";
import { type Batch, SkaldError, type SteadyClock } from "@skald/model";
import { type Sleep, sleep } from "@skald/runtime";
import { type DiskSpace, nodeWalDisk, type Wal, type WalDisk } from "@skald/storage";
import type { Sealer } from "./flush/sealer.js";
import type { Journal } from "./log/journal.js";
import type { IngesterMetrics } from "./settings/metrics.js";
import type { IngesterLimits, IngesterOptions } from "./settings/options.js";
import type { Heads } from "./tenant/heads.js";
import type { TenantAppend } from "./tenant/tenant.js";

export interface IntakeContext {
  readonly options: IngesterOptions;
  /** All that it writes to. */
  readonly directories: readonly string[];
  readonly limitsOf: (tenant: string) => IngesterLimits;
  readonly heads: Heads;
  readonly journal: Journal;
  readonly sealer: Sealer;
  /** Throws while no pushes are taken. */
  readonly assertRunning: () => void;
  readonly metrics: IngesterMetrics;
  readonly clock: SteadyClock;
  readonly sleep?: Sleep;
  readonly disk?: WalDisk;
}

/** How often the disk is looked at. */
export const diskCheckPeriodMs = 5000;
/** Memory of a row of a batch beside its line. */
const bytesPerRow = 40;

/** The way of a push: it waits for room, is appended to heads, logged, and published once the log has it. */
export class Intake {
  readonly #context: IntakeContext;
  readonly #queue: PushQueue;
  readonly #disk: DiskWatch;

  constructor(context: IntakeContext) {
    const { options, sealer, journal, sleep, disk } = context;
    this.#context = context;
    this.#queue = new PushQueue({
      sealer,
      log: () => journal.wal,
      maxWaitingBytes: options.bounds.maxWaitingBytes,
      maxWaitMs: options.bounds.maxPushWaitMs,
      ...(sleep === undefined ? {} : { sleep }),
    });
    this.#disk = new DiskWatch({
      dataDir: options.dataDir,
      dirs: context.directories,
      disk: disk ?? nodeWalDisk,
      minFreeBytes: options.bounds.minFreeBytes,
      queuedBytes: () => journal.wal.stats().queuedBytes,
    });
  }

  /** Why no push can be taken: a directory cannot be written. */
  get unwritable(): string | undefined {
    return this.#disk.unwritable;
  }

  async push({ tenant, batch }: PushRequest): Promise<PushOutcome> {
    this.#assertPushable();
    const release = await this.#enter(batch);
    try {
      this.#assertPushable();
      const push = this.#append(tenant, batch);
      if (push.ranges.length > 0) await this.#write(push, batch);
      // Duplicates of rows that are not written yet are as safe as those.
      else if (push.duplicates > 0) await this.#context.journal.settled(push.tenant);
      return { refusals: push.refusals };
    } finally {
      release();
    }
  }

  /** Takes notice of a file that was written. */
  wrote(sizeBytes: number): void {
    this.#disk.wrote(sizeBytes);
  }

  /** Looks whether the disk has room and takes writes: until the next look pushes are taken or refused accordingly. */
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

  #enter(batch: Batch): Promise<() => void> {
    const body = batch.source?.body.byteLength ?? 0;
    const logBytes = (body > 0 ? body : batch.bytes.byteLength) + batch.rowCount;
    const heldBytes = body + batch.bytes.byteLength + bytesPerRow * batch.rowCount;
    return this.#queue.enter(logBytes, heldBytes);
  }

  #append(name: string, batch: Batch): TenantAppend {
    const { heads, limitsOf, clock, metrics } = this.#context;
    const tenant = heads.tenantOf(name);
    const streamsBefore = tenant.streams.size;
    const push = tenant.append(batch, limitsOf(name), clock.elapsedMs());
    const created = tenant.streams.size - streamsBefore;
    if (created > 0) {
      metrics.streamsCreated.inc({ tenant: name }, created);
      metrics.memoryStreams.set({ tenant: name }, tenant.streams.size);
    }
    if (push.duplicates > 0) metrics.duplicates.inc(push.duplicates);
    return push;
  }

  #write(push: TenantAppend, batch: Batch): Promise<void> {
    const bytes = batch.source?.body.byteLength ?? batch.lineBytes;
    this.#disk.wrote(bytes);
    return this.#context.journal.write(push, batch, bytes);
  }
}

export interface PushQueueOptions {
  readonly sealer: Sealer;
  readonly log: () => Pick<Wal, "reserve" | "tryReserve">;
  readonly maxWaitingBytes: number;
  readonly maxWaitMs: number;
  readonly sleep?: Sleep;
}

/**
 * Where pushes wait while sealing or the log lags behind: the memory of what waits is bounded, and so is the time. Whoever
 * does not get in is told to slow down.
 */
export class PushQueue {
  readonly #options: PushQueueOptions;
  #waitingBytes = 0;

  constructor(options: PushQueueOptions) {
    this.#options = options;
  }

  /**
   * Resolves when a push may be appended; call what it gives when the log has it. `logBytes` go to the log, `heldBytes`
   * are in memory while it waits. Rejects with `rate_limited`.
   */
  enter(logBytes: number, heldBytes: number): Promise<() => void> {
    const { sealer, log, maxWaitingBytes } = this.#options;
    const release = sealer.hasRoom ? log().tryReserve(logBytes) : undefined;
    if (release !== undefined) return Promise.resolve(release);
    if (this.#waitingBytes > 0 && this.#waitingBytes + heldBytes > maxWaitingBytes) {
      return Promise.reject(slowDown("too many pushes wait to be stored"));
    }
    return this.#wait(logBytes, heldBytes);
  }

  async #wait(logBytes: number, heldBytes: number): Promise<() => void> {
    const { sealer, log, maxWaitMs } = this.#options;
    const late = new AbortController();
    const done = new AbortController();
    const timer = (this.#options.sleep ?? sleep)(maxWaitMs, done.signal).then(
      () => late.abort(slowDown(`the push has waited ${maxWaitMs / 1000}s to be stored`)),
      () => undefined,
    );
    this.#waitingBytes += heldBytes;
    try {
      for (;;) {
        await sealer.room(late.signal);
        const release = await log().reserve(logBytes, late.signal);
        if (sealer.hasRoom || sealer.isClosed) return release;
        release();
      }
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

export interface DiskWatchOptions {
  /** Where segments are written. */
  readonly dataDir: string;
  /** Every directory that the ingester writes to, `dataDir` among them. */
  readonly dirs: readonly string[];
  readonly disk: WalDisk;
  /** Free space of the disk of `dataDir` below which pushes are refused, or a twentieth of that disk if that is less. */
  readonly minFreeBytes: number;
  /** Bytes on their way to the disk that it does not know of yet. */
  readonly queuedBytes: () => number;
}

/** How much of a small disk must be free. */
const minFreePart = 1 / 20;
/** A refused push may come again when the disk was looked at again. */
const retryAfterSeconds = 5;

/**
 * Keeps an eye on the disk, so that what was acknowledged can always be sealed: pushes are refused while there is no more
 * free than a segment may need. Counts what is written between two looks.
 */
export class DiskWatch {
  readonly #options: DiskWatchOptions;
  /** Bytes that may still be written before pushes are refused, as far as known. */
  #spareBytes = Number.POSITIVE_INFINITY;
  #space: DiskSpace = { totalBytes: 0, freeBytes: 0 };
  #unwritable: string | undefined;
  #checking: Promise<void> | undefined;

  constructor(options: DiskWatchOptions) {
    this.#options = options;
  }

  /** Why pushes must be refused now. */
  get refusal(): SkaldError | undefined {
    const why = this.#unwritable ?? (this.#spareBytes < 0 ? this.#tooFull() : undefined);
    return why === undefined
      ? undefined
      : new SkaldError("unavailable", why, { retryAfterSeconds });
  }

  /** Why no push can be taken until somebody mends a directory. */
  get unwritable(): string | undefined {
    return this.#unwritable;
  }

  /** Takes notice of bytes that were written. */
  wrote(bytes: number): void {
    this.#spareBytes -= bytes;
    if (this.#spareBytes < 0) void this.check();
  }

  /** Looks at the disk; a look that runs already serves as well. Never rejects. */
  check(): Promise<void> {
    this.#checking ??= this.#check().finally(() => {
      this.#checking = undefined;
    });
    return this.#checking;
  }

  async #check(): Promise<void> {
    const { dataDir, dirs, disk, minFreeBytes, queuedBytes } = this.#options;
    try {
      this.#space = await disk.space(dataDir);
      const { freeBytes, totalBytes } = this.#space;
      const floorBytes = Math.min(minFreeBytes, minFreePart * totalBytes);
      this.#spareBytes = freeBytes - floorBytes - queuedBytes();
      for (const dir of dirs) await tryWriting(dir, disk);
      this.#unwritable = undefined;
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      this.#unwritable = isFull(error) ? undefined : `a directory cannot be written: ${why}`;
      if (isFull(error)) this.#spareBytes = -1;
    }
  }

  #tooFull(): string {
    const mib = (bytes: number) => `${Math.max(0, Math.floor(bytes / 1024 / 1024))} MiB`;
    const { dataDir, minFreeBytes } = this.#options;
    const { freeBytes, totalBytes } = this.#space;
    const floor = mib(Math.min(minFreeBytes, minFreePart * totalBytes));
    return `the disk of ${dataDir} is full: ${mib(freeBytes)} are free, pushes are refused below ${floor}, so that what was taken can be sealed; free space to go on`;
  }
}

async function tryWriting(dir: string, disk: WalDisk): Promise<void> {
  const path = join(dir, "writable");
  await disk.write(path, new Uint8Array(1));
  await disk.remove(path);
}

function isFull(error: unknown): boolean {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  return code === "ENOSPC" || code === "EDQUOT";
}
