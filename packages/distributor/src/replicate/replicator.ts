import type { Ingester, PushOutcome, PushRequest } from "@skald/contracts";
import { type Batch, errorCodeOf, SkaldError, textForClients, unavailable } from "@skald/model";
import type { Ring, RingInstance, WritePlan, WriteTarget } from "@skald/ring";
import type { DistributorMetrics } from "../settings/metrics.js";
import type { PushTarget, PushTargetOptions } from "../settings/options.js";
import { takeStreams } from "./take-streams.js";
import { type Reply, WriteTally } from "./write-tally.js";

export interface ReplicatorOptions {
  readonly ring: Pick<Ring, "view" | "replicas">;
  /** How to call a member of the ring. */
  readonly ingesterOf: (instance: RingInstance) => Pick<Ingester, "push">;
  /** Ingesters that get a tenant's streams; 0: all. */
  readonly shardSizeOf?: (tenant: string) => number;
  /** How long an ingester may take for a push, ms. */
  readonly timeoutMs: number;
  /** Bytes of pushes that one ingester may have in hand; beyond them it gets no more, and the others go on. */
  readonly maxBytesBehind: number;
  readonly metrics: Pick<DistributorMetrics, "ingesterAppends" | "ingesterAppendFailures">;
  /** A signal that is aborted after so many ms. */
  readonly timeout?: (ms: number) => AbortSignal;
}

/** What a row takes beside its bytes, in columns. */
const bytesPerRow = 32;

/**
 * The ingesters of a ring, as one: each stream goes to as many of them as there are copies, and is taken when a quorum has it.
 * The others go on behind the answer, for so long and with so much as is bounded.
 */
export class Replicator implements PushTarget {
  readonly #options: ReplicatorOptions;
  /** Bytes that are under way, by the id of the ingester. */
  readonly #behind = new Map<string, number>();

  constructor(options: ReplicatorOptions) {
    this.#options = options;
  }

  /**
   * Stores a batch. Throws unavailable when there are too few ingesters, and the failure of one when too few of them take a
   * stream; some streams may be stored then. The batch must stay as it is until what `hold` gets is settled.
   */
  async push(request: PushRequest, { hold }: PushTargetOptions): Promise<PushOutcome> {
    const { tenant, batch } = request;
    const plan = this.#plan(tenant, batch);
    const signal = (this.#options.timeout ?? AbortSignal.timeout)(this.#options.timeoutMs);
    const tally = new WriteTally(plan, batch.streams.length);
    const parts = new BatchParts(batch);
    return new Promise((resolve, reject) => {
      const calls = plan.targets.map(async (target, i) => {
        const sent = { tenant, batch: parts.of(target) };
        const verdict = tally.add(i, await this.#send(target.instance, sent, signal));
        if (verdict?.kind === "stored") resolve({ refusals: verdict.refusals });
        if (verdict?.kind === "failed") reject(asServerError(verdict.error));
      });
      const all = Promise.all(calls);
      hold?.(all);
      all.catch(reject);
    });
  }

  #plan(tenant: string, batch: Batch): WritePlan {
    const { ring, shardSizeOf } = this.#options;
    const size = shardSizeOf?.(tenant) ?? 0;
    const view = size > 0 ? ring.view.shard(tenant, Math.max(size, ring.replicas)) : ring.view;
    return view.planWrites(Uint32Array.from(batch.streams, ({ text }) => tokenOf(tenant, text)));
  }

  /** Never rejects: a failure is a reply too. */
  async #send(
    { id, ...instance }: RingInstance,
    request: PushRequest,
    signal: AbortSignal,
  ): Promise<Reply> {
    const { metrics, ingesterOf, maxBytesBehind } = this.#options;
    const labels = { ingester: id };
    const bytes = sizeOf(request.batch);
    const behind = this.#behind.get(id) ?? 0;
    metrics.ingesterAppends.inc(labels);
    try {
      if (behind > 0 && behind + bytes > maxBytesBehind)
        throw unavailable(`it does not keep up, ${behind} bytes wait for it`);
      this.#behind.set(id, behind + bytes);
      try {
        return await ingesterOf({ id, ...instance }).push(request, { signal });
      } finally {
        this.#give(id, bytes);
      }
    } catch (failure) {
      metrics.ingesterAppendFailures.inc(labels);
      return { failure: namedFailure(id, failure) };
    }
  }

  #give(id: string, bytes: number): void {
    const left = (this.#behind.get(id) ?? 0) - bytes;
    if (left > 0) this.#behind.set(id, left);
    else this.#behind.delete(id);
  }
}

/** What each ingester gets of a batch; those that get the same streams get the same object. */
class BatchParts {
  readonly #batch: Batch;
  readonly #parts = new Map<string, Batch>();

  constructor(batch: Batch) {
    this.#batch = batch;
  }

  of({ keys }: WriteTarget): Batch {
    if (keys.length === this.#batch.streams.length) return this.#batch;
    const name = Buffer.from(keys.buffer, keys.byteOffset, keys.byteLength).toString("latin1");
    const known = this.#parts.get(name);
    if (known !== undefined) return known;
    const part = takeStreams(this.#batch, keys);
    this.#parts.set(name, part);
    return part;
  }
}

const fnvBasis = 0x811c9dc5;
const fnvPrime = 0x01000193;

/** The place of a stream in the ring: FNV-1a of its tenant and its canonical labels, with the bits mixed as MurmurHash3 does. */
export function tokenOf(tenant: string, text: string): number {
  let hash = addText(addText(fnvBasis, tenant), text);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}

function addText(basis: number, text: string): number {
  let hash = basis;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), fnvPrime);
  return hash;
}

function sizeOf({ rowCount, lineBytes, metaValueLength }: Batch): number {
  let values = 0;
  for (let i = 0; i < metaValueLength.length; i++) values += metaValueLength[i]!;
  return lineBytes + values + rowCount * bytesPerRow;
}

/** An ingester that is gone or slow is no fault of the program; the error says which it is. */
function namedFailure(id: string, cause: unknown): unknown {
  if (errorCodeOf(cause) !== "unavailable") return cause;
  return unavailable(`ingester ${id}: ${textForClients(cause)}`, { cause });
}

/** What makes a push fail as a whole is for a client to retry, whatever it was between services. */
function asServerError(cause: unknown): unknown {
  if (!(cause instanceof SkaldError) || cause.status === 400 || cause.status === 429) return cause;
  const { message: text, code } = cause;
  return new SkaldError("unavailable", text, { cause, status: code === "internal" ? 500 : 503 });
}
