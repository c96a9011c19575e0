import { parseStreamText, type SteadyClock } from "@skald/model";
import type { Logger } from "@skald/runtime";
import type { WalDamage, WalDisk, WalPosition } from "@skald/storage";
import type { LocalSegments } from "../flush/local-segments.js";
import type { Sealer } from "../flush/sealer.js";
import type { IngesterLimits } from "../limits.js";
import type { IngesterMetrics } from "../metrics.js";
import type { Heads } from "../tenant/heads.js";
import type { Tenant } from "../tenant/tenant.js";
import { type ReplaySummary, replayLog } from "./replay.js";
import { SealedHeads } from "./sealed-heads.js";

export interface RecoveryContext {
  readonly dir: string;
  /** Memory of heads above which they are sealed while the rest is read. */
  readonly ceilingBytes: number;
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

/**
 * Brings the heads back that an earlier process left in the log, and reports what was found. Memory stays below the
 * ceiling: heads are sealed while the rest is still being read. Rejects when the signal is aborted.
 */
export async function recoverHeads(context: RecoveryContext): Promise<void> {
  const { heads, clock, metrics, dir, disk } = context;
  const startMs = clock.elapsedMs();
  let turnMs = performance.now();
  metrics.replayActive.set(1);
  const summary = await replayLog({
    dir,
    ...(disk === undefined ? {} : { disk }),
    sealed: new SealedHeads(context.segments),
    tenantOf: (name) => heads.tenantOf(name),
    addStream: (tenant, text) => addStream(context, tenant, text, startMs),
    createHead: (tenant, day, id) => heads.create(tenant, day, id),
    freeze: (tenant, head) => void heads.freeze(tenant, head, "full"),
    afterPush: async (position) => {
      await makeRoom(context, position);
      if (performance.now() - turnMs < maxTurnMs) return;
      await nextTurn();
      turnMs = performance.now();
    },
    onDamage: (damage) => reportDamage(context, damage),
  });
  metrics.replayActive.set(0);
  report(context, summary, (clock.elapsedMs() - startMs) / 1000);
}

/** How long replay may keep the event loop from answering `/ready` and signals. */
const maxTurnMs = 10;

function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

function addStream(context: RecoveryContext, tenant: Tenant, text: string, nowMs: number): number {
  const burst = context.limitsOf(tenant.name).per_stream_rate_limit_burst;
  return tenant.streams.add(text, parseStreamText(text), nowMs, burst);
}

async function makeRoom(context: RecoveryContext, position: WalPosition): Promise<void> {
  const { heads, sealer, ceilingBytes, signal } = context;
  signal.throwIfAborted();
  await heads.sealParts(position, ceilingBytes);
  await sealer.room(signal);
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
