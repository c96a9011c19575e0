import type { PushOutcome, Scanner } from "@skald/contracts";
import { type Batch, type Clock, type SteadyClock, steadyClock, systemClock } from "@skald/model";
import { type Logger, type Metrics, type Sleep, sleep } from "@skald/runtime";
import type { LocalRef, WalDisk } from "@skald/storage";
import type { MergeLocal } from "./flush/local-merger.js";
import { LocalSegments } from "./flush/local-segments.js";
import type { Seal } from "./flush/sealer.js";
import type { SegmentStore } from "./flush/uploader.js";
import { Flusher } from "./flusher.js";
import { Held } from "./held/held.js";
import { HeldScanner } from "./held/held-scanner.js";
import { Views } from "./held/views.js";
import { Intake } from "./intake.js";
import { Journal } from "./log/journal.js";
import { Recovery } from "./log/recovery.js";
import type { IngesterLimits } from "./settings/limits.js";
import { createIngesterMetrics, type IngesterMetrics } from "./settings/metrics.js";
import { type IngesterOptions, writtenDirectories } from "./settings/options.js";
import { type RunTails, Tails } from "./tail/tails.js";
import { Heads } from "./tenant/heads.js";

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
