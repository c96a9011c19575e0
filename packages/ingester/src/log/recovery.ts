import { SkaldError } from "@skald/model";
import type { Logger, Sleep } from "@skald/runtime";
import { replayWal, type WalDamage, type WalDisk } from "@skald/storage";
import type { IngesterMetrics } from "../settings/metrics.js";
import { Replay, type ReplayContext } from "./replay.js";

export interface RecoveryContext extends ReplayContext {
  /** Number of the first log file of this process. */
  readonly endFile: number;
  readonly metrics: IngesterMetrics;
  readonly log: Logger;
  readonly disk?: WalDisk;
}

/** Replay gives up the event loop after this time, for pushes, `/ready` and signals. */
const maxTurnMs = 4;
/** A query that has waited in vain may retry after this time. */
const retryAfterSeconds = 2;

/** Restores the heads that an earlier process left in the log, while pushes are already accepted. */
export class Recovery {
  #task: Promise<void> | undefined;
  #isDone = false;

  /** True once every row of the log is in a head that takes pushes, or in a frozen one. */
  get isDone(): boolean {
    return this.#isDone;
  }

  /** Resolves when `isDone` is true; rejects when the log cannot be read, or the signal of the recovery is aborted. */
  get done(): Promise<void> {
    return this.#task ?? Promise.resolve();
  }

  /** Starts with the current local segments; without a context there is nothing to restore. */
  begin(context: RecoveryContext | undefined): void {
    this.#task = (context === undefined ? Promise.resolve() : recoverHeads(context)).then(() => {
      this.#isDone = true;
    });
    // The caller reads `done`.
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

/** Restores heads. Memory stays below the ceiling: heads are sealed while the rest of the log is read. */
async function recoverHeads(context: RecoveryContext): Promise<void> {
  const { heads, signal, clock, metrics, options, endFile, disk, log } = context;
  const { wal, max_head_memory } = options.config;
  const { maxReplayBytes } = options.bounds;
  const ceiling = Math.min(wal.replay_memory_ceiling, maxReplayBytes, max_head_memory);
  const startMs = clock.elapsedMs();
  metrics.replayActive.set(1);
  const turns = new Turns(signal);
  const onDamage = (damage: WalDamage) => reportDamage(context, damage);
  const replay = new Replay(context, onDamage);
  const { files, records, bytes } = await replayWal({
    dir: wal.dir,
    endFile,
    ...(disk === undefined ? {} : { disk }),
    onRecord: (record, position) => {
      replay.apply(record, position);
      signal.throwIfAborted();
      return replay.heads.makeRoom(position, ceiling) ?? turns.end();
    },
    onNamesAhead: (record, file) => replay.nameAhead(record, file),
    onDamage,
  });
  await replay.heads.handOver(() => turns.end());
  const { entries, streams } = replay;
  const seconds = (clock.elapsedMs() - startMs) / 1000;
  metrics.replayActive.set(0);
  metrics.replaySeconds.set(seconds);
  metrics.recoveredEntries.inc(entries);
  metrics.recoveredStreams.inc(streams);
  metrics.recoveredBytes.inc(bytes);
  for (const { name, streams } of heads.tenants()) {
    metrics.memoryStreams.set({ tenant: name }, streams.size);
  }
  if (files === 0) return;
  log.info("replayed the write-ahead log", { files, records, bytes, entries, streams, seconds });
}

/** Splits work into turns of the event loop. */
class Turns {
  readonly #signal: AbortSignal;
  #startMs = performance.now();

  constructor(signal: AbortSignal) {
    this.#signal = signal;
  }

  /** Waits for the next turn if this one has lasted long enough. Rejects when the signal is aborted. */
  end(): Promise<void> | undefined {
    if (performance.now() - this.#startMs < maxTurnMs) return undefined;
    return new Promise<void>((resolve) => setImmediate(resolve)).then(() => {
      this.#signal.throwIfAborted();
      this.#startMs = performance.now();
    });
  }
}

function reportDamage({ metrics, log }: RecoveryContext, damage: WalDamage): void {
  metrics.walCorruptions.inc({ type: damage.kind });
  const fields = { ...damage };
  if (damage.kind === "torn") log.warn("cut an unfinished record off the log", fields);
  else log.error("the write-ahead log is damaged; part of it is left out", fields);
}
