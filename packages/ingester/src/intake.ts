import type { PushOutcome, PushRequest } from "@skald/contracts";
import { type Batch, SkaldError, type SteadyClock } from "@skald/model";
import type { Sleep } from "@skald/runtime";
import { nodeWalDisk, type WalDisk } from "@skald/storage";
import { DiskWatch } from "./flush/disk-watch.js";
import { PushQueue } from "./flush/push-queue.js";
import type { Sealer } from "./flush/sealer.js";
import type { Journal } from "./log/journal.js";
import type { IngesterLimits } from "./settings/limits.js";
import type { IngesterMetrics } from "./settings/metrics.js";
import type { IngesterOptions } from "./settings/options.js";
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
