import type { Batch, SteadyClock } from "@skald/model";
import type { Logger, Sleep } from "@skald/runtime";
import { Wal, type WalDisk } from "@skald/storage";
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
  /** Is called when rows were published or undone, because a head may have its last row now. */
  readonly onSettled: () => void;
  /** Is called with each push as soon as its rows are visible. */
  readonly onPublished: (push: TenantAppend) => void;
  readonly metrics: IngesterMetrics;
  readonly log: Logger;
  readonly clock: SteadyClock;
  readonly sleep?: Sleep;
  readonly disk?: WalDisk;
}

/** A slower sync is logged, because the disk is slow, and the least time between two such messages. */
const slowSyncMs = 1000;
const warnPauseMs = 60_000;
/** The disk counts as slow for this long after a slow sync. */
const slowForMs = 60_000;

/** A head whose rows are being written again, to a later file of the log. */
interface ForwardedHead {
  readonly head: Head;
  readonly file: number;
  readonly written: Promise<void>;
}

/** A push whose rows are in heads and not in the log yet. */
interface Pending {
  readonly push: TenantAppend;
  written: Promise<void>;
}

/**
 * Keeps the write-ahead log for the heads. It writes the rows that were appended and publishes them, cuts the log behind the
 * oldest unsealed row, and writes small heads again that keep much of the log from being cut.
 */
export class Journal {
  readonly #context: JournalContext;
  /** Oldest first: the log writes them in this order, and a write that fails loses all of them. */
  readonly #pending: Pending[] = [];
  #wal: PushLog = noLog;
  #lastFile = 0;
  #isReplayed = false;
  #cutting: Promise<void> = Promise.resolve();
  #cutPlanned = false;
  #warnedMs = Number.NEGATIVE_INFINITY;
  /** The last slow sync. */
  #slowSync = { endMs: Number.NEGATIVE_INFINITY, ms: 0 };

  constructor(context: JournalContext) {
    this.#context = context;
  }

  /** The log; before `open` and when logging is switched off, one that keeps nothing. */
  get wal(): PushLog {
    return this.#wal;
  }

  /** What makes the disk of the log count as slow: a sync that takes long now, or took long a short time ago. */
  get slowDisk(): string | undefined {
    const { clock, options } = this.#context;
    const { endMs, ms } = this.#slowSync;
    const past = clock.elapsedMs() - endMs < slowForMs ? ms : 0;
    const longestMs = Math.max(past, this.#wal.stats().syncingMs);
    if (longestMs <= slowSyncMs) return undefined;
    const seconds = (longestMs / 1000).toFixed(1);
    return `disk slow: a sync of the write-ahead log in ${options.config.wal.dir} took ${seconds}s`;
  }

  /** Opens the log unless it is switched off. */
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
        if (what === "sync" && ms > slowSyncMs) this.#noteSlowSync(ms);
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

  /** Must be called when every row of the log is in a segment or in a head that knows its file; allows cuts from then on. */
  allowCuts(): void {
    this.#isReplayed = true;
    this.planCut();
  }

  /** Logs an append; publishes it when the log has it. `bytes` is its approximate size in the log. */
  write(push: TenantAppend, batch: Batch, bytes: number): Promise<void> {
    const { metrics, heads, clock } = this.#context;
    const file = this.#wal.nextFile();
    const pending: Pending = { push, written: Promise.resolve() };
    this.#pending.push(pending);
    const nowMs = clock.elapsedMs();
    for (const { head } of push.heads.values()) {
      head.pendingPushes++;
      head.lastAppendMs = nowMs;
      head.noteFile(file);
    }
    const records = recordsOf(push, batch, { file, offset: this.#wal.offset });
    pending.written = this.#wal.append(records, () => this.#publishOldest()).written;
    metrics.walRecords.inc();
    metrics.walBytes.inc(bytes);
    heads.freezeFull(push.tenant, push.heads.keys());
    if (file !== this.#lastFile) this.relieve();
    this.#lastFile = file;
    return pending.written;
  }

  /** Settles when the last unwritten push of a tenant is written or has failed; at once when there is none. */
  settled(tenant: Tenant): Promise<void> {
    const last = this.#pending.findLast(({ push }) => push.tenant === tenant);
    return last?.written ?? Promise.resolve();
  }

  /** Writes small heads again that keep much of the log from being cut; cuts the log when they are synced. */
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

  /** Cuts as much as possible: everything when every row is in a segment. */
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
      // The log has reported the error, and the rows stay where they were.
      this.#context.log.warn("writing small heads again failed; trying again", { error });
    } finally {
      for (const { head } of forwarded) head.forwarding = false;
    }
    this.planCut();
  }

  #noteSlowSync(ms: number): void {
    const { clock, log, options } = this.#context;
    this.#slowSync = { endMs: clock.elapsedMs(), ms };
    if (clock.elapsedMs() - this.#warnedMs < warnPauseMs) return;
    this.#warnedMs = clock.elapsedMs();
    log.warn("the disk is slow: a sync of the write-ahead log took long", {
      dir: options.config.wal.dir,
      seconds: ms / 1000,
    });
  }

  /** The log has the oldest push: makes its rows visible. */
  #publishOldest(): void {
    const push = this.#pending.shift()?.push;
    for (const { head, after } of push?.heads.values() ?? []) {
      head.publish(after);
      head.pendingPushes--;
    }
    if (push !== undefined) this.#context.onPublished(push);
    this.#context.onSettled();
  }

  /** All pending pushes are lost: undoes them, the last one first. */
  #undoPending(): void {
    for (const { push } of this.#pending.splice(0).reverse()) {
      push.tenant.undo(push);
      for (const { head } of push.heads.values()) head.pendingPushes--;
    }
    this.#context.onSettled();
  }
}

/** The write-ahead log as the ingester uses it. */
export type PushLog = Omit<Wal, "onAbort" | "onUnsynced">;

/** Replaces a log that is switched off: rows are visible at once, and the end of the process loses them. */
const noLog: PushLog = {
  refusal: undefined,
  reserve: () => Promise.resolve(() => undefined),
  tryReserve: () => () => undefined,
  nextFile: () => 1,
  offset: 0,
  append: (_, onWritten) => {
    onWritten();
    return { position: { file: 1, offset: 0 }, written: Promise.resolve() };
  },
  rotate: () => undefined,
  sync: () => Promise.resolve(),
  canCut: () => true,
  cut: () => Promise.resolve(0),
  firstFile: Number.POSITIVE_INFINITY,
  bytesSince: () => 0,
  checkDisk: () => Promise.resolve(),
  stats: () => ({
    files: 0,
    bytes: 0,
    queuedBytes: 0,
    writes: 0,
    syncs: 0,
    failures: 0,
    syncingMs: 0,
  }),
  close: () => Promise.resolve(),
};
