import type {
  AnswerOf,
  FlushRequest,
  HeldChanges,
  HeldChangesRequest,
  HeldKind,
  Ingester as IngesterContract,
  PushOutcome,
  PushRequest,
  ScanOptions,
  Selection,
  SelectRequest,
  Tailer,
  TailRequest,
  TailRows,
  TaskOf,
} from "@skald/contracts";
import { unavailable } from "@skald/model";
import { type Logger, repeat } from "@skald/runtime";
import { DirectoryLock } from "@skald/storage";
import type { Flusher } from "./flusher.js";
import type { Held } from "./held/held.js";
import type { HeldScanner } from "./held/held-scanner.js";
import { diskCheckPeriodMs, type Intake } from "./intake.js";
import type { Journal } from "./log/journal.js";
import { type IngesterDependencies, IngesterParts } from "./parts.js";
import { writtenDirectories } from "./settings/options.js";

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
