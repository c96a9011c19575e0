import type { Batch, SkaldError, SteadyClock } from "@skald/model";
import type { Logger, Sleep } from "@skald/runtime";
import { Wal, type WalDisk, type WalPosition, type WalStats } from "@skald/storage";
import type { LocalSegments } from "../flush/local-segments.js";
import type { Head } from "../head/head.js";
import type { IngesterMetrics } from "../settings/metrics.js";
import type { IngesterOptions } from "../settings/options.js";
import type { Heads } from "../tenant/heads.js";
import type { Tenant, TenantAppend } from "../tenant/tenant.js";
import { forwardRecordsOf, recordsOf } from "./push-record.js";

export interface JournalContext {
  readonly options: IngesterOptions;
  readonly heads: Heads;
  readonly segments: Pick<LocalSegments, "placed">;
  /** Told when rows were published or taken back: a head may have got its last one. */
  readonly onSettled: () => void;
  /** Told of each push whose rows can be seen from now on. */
  readonly onPublished: (push: TenantAppend) => void;
  readonly metrics: IngesterMetrics;
  readonly log: Logger;
  readonly clock: SteadyClock;
  readonly sleep?: Sleep;
  readonly disk?: WalDisk;
}

/** A sync that takes longer shows a slow disk, and is logged; and the least time between two such messages. */
const slowSyncMs = 1000;
const warnPauseMs = 60_000;

/** A head whose rows are on their way to a later file of the log. */
interface ForwardedHead {
  readonly head: Head;
  readonly file: number;
  readonly written: Promise<void>;
}

/**
 * Keeps the write-ahead log for the heads: writes what was appended to them and publishes it, writes small heads again that
 * keep much of the log, and cuts the log behind the oldest unsealed row.
 */
export class Journal {
  readonly #context: JournalContext;
  readonly #pending = new PendingPushes();
  #wal: PushLog = noLog;
  #lastFile = 0;
  #isReplayed = false;
  #cutting: Promise<void> = Promise.resolve();
  #cutPlanned = false;
  #warnedMs = Number.NEGATIVE_INFINITY;

  constructor(context: JournalContext) {
    this.#context = context;
  }

  /** The log itself; in its place one that keeps nothing until `open` has resolved, and where logging is switched off. */
  get wal(): PushLog {
    return this.#wal;
  }

  /** Opens the log, if there is to be one. */
  async open(): Promise<void> {
    const { options, metrics, log, heads, sleep, disk } = this.#context;
    const { dir, enabled, fsync, fsync_interval, disk_full_threshold } = options.config.wal;
    if (!enabled) return;
    const wal = await Wal.open({
      dir,
      fsync,
      fsyncIntervalMs: fsync_interval,
      maxFileBytes: options.bounds.maxWalFileBytes,
      maxQueuedBytes: options.bounds.maxWalQueuedBytes,
      diskFullThreshold: disk_full_threshold,
      onError: (error) => {
        metrics.walFailures.inc();
        log.error("the write-ahead log failed", { error });
      },
      onTimed: (what, ms) => {
        metrics[what === "write" ? "walWriteSeconds" : "walSyncSeconds"].observe(ms / 1000);
        if (what === "sync" && ms > slowSyncMs) this.#warnOfSlowSync(ms);
      },
      clock: this.#context.clock,
      ...(sleep === undefined ? {} : { sleep }),
      ...(disk === undefined ? {} : { disk }),
    });
    wal.onAbort(() => this.#undoPending());
    wal.onUnsynced((file) => heads.freezeIn(file));
    this.#wal = wal;
    await wal.checkDisk();
  }

  /** Lets the log be cut from now on: every row that it has is in a head that knows its file, or in a segment. */
  allowCuts(): void {
    this.#isReplayed = true;
    this.planCut();
  }

  /** Logs what was appended; publishes it when the log has it. `bytes` is what the log takes of it, roughly. */
  write(push: TenantAppend, batch: Batch, bytes: number): Promise<void> {
    const { metrics, heads, clock } = this.#context;
    const file = this.#wal.nextFile();
    const written = this.#pending.add(push, file, clock.elapsedMs(), () => {
      const records = recordsOf(push, batch, { file, offset: this.#wal.offset });
      return this.#wal.append(records, () => this.#publish()).written;
    });
    metrics.walRecords.inc();
    metrics.walBytes.inc(bytes);
    heads.freezeFull(push.tenant, push.heads.keys());
    if (file !== this.#lastFile) this.relieve();
    this.#lastFile = file;
    return written;
  }

  /** Settles as the last push of a tenant that is not written does; at once when all are. */
  settled(tenant: Tenant): Promise<void> {
    return this.#pending.settled(tenant);
  }

  /** Writes small heads again that keep much of the log from being cut; the log is cut when they are synced. */
  relieve(): void {
    if (!this.#isReplayed) return;
    const { heads, metrics } = this.#context;
    const forwarded = heads.relieve(this.#wal).map(({ tenant, head }) => {
      const file = this.#wal.nextFile();
      const records = forwardRecordsOf(tenant, head, { file, offset: this.#wal.offset });
      head.forwarding = true;
      head.noteFile(file);
      metrics.forwardedEntries.inc(head.rowCount);
      return { head, file, written: this.#wal.append(records, () => undefined).written };
    });
    if (forwarded.length > 0) void this.#moveOn(forwarded);
  }

  /** Cuts what can be cut, down to nothing when every row is in a segment. */
  async cutAll(): Promise<void> {
    if (!this.#isReplayed) return;
    if (this.#context.heads.firstWalFile() > this.#wal.nextFile()) this.#wal.rotate();
    this.planCut();
    await this.#cutting;
  }

  /** Cuts the log behind the oldest unsealed row, one cut at a time. */
  planCut(): void {
    if (this.#cutPlanned || !this.#isReplayed) return;
    this.#cutPlanned = true;
    this.#cutting = this.#cutting.then(async () => {
      this.#cutPlanned = false;
      const { heads, segments } = this.#context;
      try {
        const before = heads.firstWalFile();
        if (this.#wal.canCut(before)) await segments.placed.sync();
        await this.#wal.cut(before);
      } catch (error) {
        this.#context.log.error("cutting the write-ahead log failed", { error });
      }
    });
  }

  async #moveOn(forwarded: readonly ForwardedHead[]): Promise<void> {
    try {
      await Promise.all(forwarded.map(({ written }) => written));
      await this.#wal.sync();
      for (const { head, file } of forwarded) head.forwardTo(file);
    } catch (error) {
      // The log has told, and the rows are where they were.
      this.#context.log.warn("writing small heads again failed; trying again", { error });
    } finally {
      for (const { head } of forwarded) head.forwarding = false;
    }
    this.planCut();
  }

  #warnOfSlowSync(ms: number): void {
    const { clock, log, options } = this.#context;
    if (clock.elapsedMs() - this.#warnedMs < warnPauseMs) return;
    this.#warnedMs = clock.elapsedMs();
    log.warn("the disk is slow: a sync of the write-ahead log took long", {
      dir: options.config.wal.dir,
      seconds: ms / 1000,
    });
  }

  #publish(): void {
    const push = this.#pending.publishOldest();
    if (push !== undefined) this.#context.onPublished(push);
    this.#context.onSettled();
  }

  #undoPending(): void {
    this.#pending.undoAll();
    this.#context.onSettled();
  }
}

interface Pending {
  readonly push: TenantAppend;
  written: Promise<void>;
}

/**
 * Pushes whose rows are in heads and not in the log yet, oldest first: the log writes them in this order, and when a write
 * fails it has lost them all.
 */
export class PendingPushes {
  readonly #pending: Pending[] = [];

  /** Takes a push in whose records go to a file; `log` hands them to the log and tells when they are written. */
  add(push: TenantAppend, file: number, nowMs: number, log: () => Promise<void>): Promise<void> {
    const pending: Pending = { push, written: Promise.resolve() };
    this.#pending.push(pending);
    for (const { head } of push.heads.values()) {
      head.pendingPushes++;
      head.lastAppendMs = nowMs;
      head.noteFile(file);
    }
    pending.written = log();
    return pending.written;
  }

  /** The oldest one is written: shows its rows. */
  publishOldest(): TenantAppend | undefined {
    const push = this.#pending.shift()?.push;
    for (const { head, after } of push?.heads.values() ?? []) {
      head.publish(after);
      head.pendingPushes--;
    }
    return push;
  }

  /** All are lost: takes their rows back, the last push first. */
  undoAll(): void {
    for (const { push } of this.#pending.splice(0).reverse()) {
      push.tenant.undo(push);
      for (const { head } of push.heads.values()) head.pendingPushes--;
    }
  }

  /** Settles as the last push of a tenant that is not written does; at once when all are. */
  settled(tenant: Tenant): Promise<void> {
    const last = this.#pending.findLast(({ push }) => push.tenant === tenant);
    return last?.written ?? Promise.resolve();
  }
}

/** The write-ahead log as the ingester uses it. */
export type PushLog = Pick<
  Wal,
  | "onAbort"
  | "onUnsynced"
  | "refusal"
  | "reserve"
  | "tryReserve"
  | "nextFile"
  | "offset"
  | "append"
  | "rotate"
  | "sync"
  | "canCut"
  | "cut"
  | "firstFile"
  | "bytesSince"
  | "checkDisk"
  | "stats"
  | "close"
>;

/** In the place of a log that is switched off: rows are visible at once, and gone when the process is. */
export const noLog: PushLog = {
  onAbort: (_: (error: SkaldError) => void) => undefined,
  onUnsynced: (_: (file: number) => void) => undefined,
  refusal: undefined,
  reserve: () => Promise.resolve(() => undefined),
  tryReserve: () => () => undefined,
  nextFile: () => 1,
  offset: 0,
  append: (_, onWritten) => {
    onWritten();
    const position: WalPosition = { file: 1, offset: 0 };
    return { position, written: Promise.resolve() };
  },
  rotate: () => undefined,
  sync: () => Promise.resolve(),
  canCut: () => true,
  cut: () => Promise.resolve(0),
  firstFile: Number.POSITIVE_INFINITY,
  bytesSince: () => 0,
  checkDisk: () => Promise.resolve(),
  stats: (): WalStats => ({ files: 0, bytes: 0, queuedBytes: 0, writes: 0, syncs: 0, failures: 0 }),
  close: () => Promise.resolve(),
};
