import { parseStreamText, SkaldError, type SteadyClock } from "@skald/model";
import type { Logger, Sleep } from "@skald/runtime";
import type { WalDamage, WalDisk } from "@skald/storage";
import type { LocalSegments } from "../flush/local-segments.js";
import type { Sealer } from "../flush/sealer.js";
import type { IngesterMetrics } from "../settings/metrics.js";
import type { IngesterLimits, IngesterOptions } from "../settings/options.js";
import type { Heads } from "../tenant/heads.js";
import type { Tenant } from "../tenant/tenant.js";
import { ReplayedHeads, type ReplaySummary, replayLog, SealedHeads } from "./replay.js";

export interface RecoveryContext {
  readonly options: IngesterOptions;
  /** Number of the first log file of this process. */
  readonly endFile: number;
  readonly heads: Heads;
  readonly sealer: Sealer;
  readonly segments: LocalSegments;
  readonly limitsOf: (tenant: string) => IngesterLimits;
  readonly metrics: IngesterMetrics;
  readonly log: Logger;
  readonly clock: SteadyClock;
  readonly signal: AbortSignal;
  readonly disk?: WalDisk;
}

/** How long replay may keep the event loop from pushes, `/ready` and signals. */
const maxTurnMs = 4;
/** When a query that has waited in vain is to come again. */
const retryAfterSeconds = 2;

/**
 * Brings the heads back that an earlier process left in the log, while pushes are taken already, and lets wait who needs
 * all of them.
 */
export class Recovery {
  #task: Promise<void> | undefined;
  #isDone = false;

  /** True once every row of the log is in a head that takes pushes, or frozen. */
  get isDone(): boolean {
    return this.#isDone;
  }

  /** Resolves then; rejects when the log cannot be read, or the signal of the recovery is aborted. */
  get done(): Promise<void> {
    return this.#task ?? Promise.resolve();
  }

  /** Begins, with the local segments as they are at this moment; without a context there is nothing to bring back. */
  begin(context: RecoveryContext | undefined): void {
    this.#task = (context === undefined ? Promise.resolve() : recoverHeads(context)).then(() => {
      this.#isDone = true;
    });
    // Whoever started it asks for `done`.
    this.#task.catch(() => undefined);
  }

  /** Waits at most `maxWaitMs` for the end. Rejects with `unavailable` after that, or with the signal's reason. */
  async wait(maxWaitMs: number, signal: AbortSignal | undefined, pause: Sleep): Promise<void> {
    if (this.#isDone) return;
    signal?.throwIfAborted();
    const ended = new AbortController();
    const signals = signal === undefined ? [ended.signal] : [ended.signal, signal];
    const late = pause(maxWaitMs, AbortSignal.any(signals));
    late.catch(() => undefined);
    const failed = this.done.catch((error: unknown) => {
      throw notReplayed(error);
    });
    try {
      await Promise.race([failed, late]);
    } finally {
      ended.abort();
    }
    if (!this.#isDone) throw notReplayed();
  }
}

function notReplayed(cause?: unknown): SkaldError {
  const text = "the write-ahead log of an earlier process is not replayed yet; try again";
  return new SkaldError("unavailable", text, { cause, retryAfterSeconds });
}

/** Memory stays below the ceiling: heads are sealed while the rest is still being read. */
async function recoverHeads(context: RecoveryContext): Promise<void> {
  const { heads, sealer, signal, clock, metrics, options, endFile, disk } = context;
  const { dir, replay_memory_ceiling } = options.config.wal;
  const { max_head_memory } = options.config;
  const ceiling = Math.min(replay_memory_ceiling, options.bounds.maxReplayBytes, max_head_memory);
  const startMs = clock.elapsedMs();
  metrics.replayActive.set(1);
  const replayed = new ReplayedHeads({ heads, sealer, signal });
  const turns = new Turns(signal);
  const summary = await replayLog({
    dir,
    endFile,
    ...(disk === undefined ? {} : { disk }),
    sealed: new SealedHeads(context.segments),
    tenantOf: (name) => heads.tenantOf(name),
    addStream: (tenant, text) => addStream(context, tenant, text, startMs),
    heads: replayed,
    afterRecord: (position) => {
      signal.throwIfAborted();
      return replayed.makeRoom(position, ceiling) ?? turns.end();
    },
    onDamage: (damage) => reportDamage(context, damage),
  });
  await replayed.handOver(() => turns.end());
  metrics.replayActive.set(0);
  report(context, summary, (clock.elapsedMs() - startMs) / 1000);
}

/** Divides work into turns of the event loop. */
class Turns {
  readonly #signal: AbortSignal;
  #startMs = performance.now();

  constructor(signal: AbortSignal) {
    this.#signal = signal;
  }

  /** Waits for the next turn when this one has lasted long enough. Rejects when the signal is aborted. */
  end(): Promise<void> | undefined {
    if (performance.now() - this.#startMs < maxTurnMs) return undefined;
    return new Promise<void>((resolve) => setImmediate(resolve)).then(() => {
      this.#signal.throwIfAborted();
      this.#startMs = performance.now();
    });
  }
}

function addStream(context: RecoveryContext, tenant: Tenant, text: string, nowMs: number): number {
  const burst = context.limitsOf(tenant.name).per_stream_rate_limit_burst;
  return tenant.streams.add(text, parseStreamText(text), nowMs, burst);
}

function reportDamage({ metrics, log }: RecoveryContext, damage: WalDamage): void {
  metrics.walCorruptions.inc({ type: damage.kind });
  const fields = { ...damage };
  if (damage.kind === "torn") log.warn("cut an unfinished record off the log", fields);
  else log.error("the write-ahead log is damaged; part of it is left out", fields);
}

function report({ metrics, heads, log }: RecoveryContext, summary: ReplaySummary, seconds: number) {
  metrics.replaySeconds.set(seconds);
  metrics.recoveredEntries.inc(summary.entries);
  metrics.recoveredStreams.inc(summary.streams);
  metrics.recoveredBytes.inc(summary.bytes);
  for (const { name, streams } of heads.tenants()) {
    metrics.memoryStreams.set({ tenant: name }, streams.size);
  }
  if (summary.files > 0) log.info("replayed the write-ahead log", { ...summary, seconds });
}
