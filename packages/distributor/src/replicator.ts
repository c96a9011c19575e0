import type {
  Ingester,
  PartTaker,
  PushOutcome,
  PushPart,
  PushRefusal,
  PushRequest,
} from "@skald/contracts";
import { type Batch, errorCodeOf, SkaldError, textForClients, unavailable } from "@skald/model";
import { takeStreams } from "@skald/push";
import type { Ring, RingInstance, WritePlan, WriteTarget } from "@skald/ring";
import type { PushTarget, PushTargetOptions } from "./distributor.js";
import type { DistributorMetrics } from "./metrics.js";

export interface ReplicatorOptions {
  readonly ring: Pick<Ring, "view" | "replicas">;
  /** Returns a client of a member of the ring. */
  readonly ingesterOf: (instance: RingInstance) => PartTaker;
  /** Number of ingesters that get a tenant's streams; 0 means all. */
  readonly shardSizeOf?: (tenant: string) => number;
  /** Time limit of a push to an ingester. */
  readonly timeoutMs: number;
  /** Bytes of unanswered pushes to one ingester; beyond them it gets no more, and the others go on. */
  readonly maxBytesBehind: number;
  readonly metrics: Pick<
    DistributorMetrics,
    "ingesterAppends" | "ingesterAppendFailures" | "ingesterAppendTimeouts"
  >;
  /** Returns a signal that is aborted after a time. */
  readonly timeout?: (ms: number) => AbortSignal;
}

/** One push, which may be tried with other ingesters. */
interface Trial {
  readonly signal: AbortSignal;
  /** Ids of ingesters that were unavailable. */
  readonly gone: Set<string>;
  /** Receives the end of all calls. */
  readonly hold: (calls: Promise<unknown>) => void;
}

/** Size of a row in columns. */
const bytesPerRow = 32;

/**
 * Writes to the ingesters of a ring. Each stream goes to as many ingesters as there are copies, and is stored when a quorum
 * has it. Calls to the other ingesters continue after the answer, within limits of time and bytes.
 */
export class Replicator implements PushTarget {
  readonly #options: ReplicatorOptions;
  /** Bytes of unanswered pushes, by the id of the ingester. */
  readonly #behind = new Map<string, number>();

  constructor(options: ReplicatorOptions) {
    this.#options = options;
  }

  /**
   * Stores a batch. When too few ingesters store a stream because some are stopping or gone, others take their place:
   * an ingester that has the rows already drops them as duplicates. Throws unavailable when there are too few ingesters, and
   * the failure of one when too few of them store a stream; some streams may be stored then. The batch must not change until
   * the promise given to `hold` settles.
   */
  async push(request: PushRequest, { hold }: PushTargetOptions): Promise<PushOutcome> {
    const plan = this.#plan(request);
    const signal = (this.#options.timeout ?? AbortSignal.timeout)(this.#options.timeoutMs);
    const calls: Promise<unknown>[] = [];
    const gone = new Set<string>();
    const trial = { signal, gone, hold: (call: Promise<unknown>) => void calls.push(call) };
    const outcome = this.#tryAll(plan, request, trial);
    hold?.(outcome.then(ignore, ignore).then(() => Promise.all(calls)));
    return outcome;
  }

  /** Tries again without those that are gone, as long as each try finds more of them. */
  async #tryAll(first: WritePlan, request: PushRequest, trial: Trial): Promise<PushOutcome> {
    const { gone, signal } = trial;
    for (let plan = first; ; ) {
      const before = gone.size;
      try {
        return await this.#pushTo(plan, request, trial);
      } catch (error) {
        const isNew = gone.size > before && !signal.aborted;
        const other = isNew ? this.#planWithout(gone, request) : undefined;
        if (other === undefined) throw error;
        plan = other;
      }
    }
  }

  /** Pushes to the ingesters of a plan, and notes those that did not take their part. */
  #pushTo(plan: WritePlan, { tenant, batch }: PushRequest, trial: Trial): Promise<PushOutcome> {
    const tally = new WriteTally(plan, batch.streams.length);
    const parts = new PushParts(tenant, batch);
    return new Promise((resolve, reject) => {
      const calls = plan.targets.map(async (target, i) => {
        const verdict = tally.add(i, await this.#send(target.instance, parts.of(target), trial));
        if (verdict?.kind === "stored") resolve({ refusals: verdict.refusals });
        if (verdict?.kind === "failed") reject(asServerError(verdict.error));
      });
      const all = Promise.all(calls);
      trial.hold(all);
      all.catch(reject);
    });
  }

  #plan({ tenant, batch }: PushRequest, without?: ReadonlySet<string>): WritePlan {
    const { ring, shardSizeOf } = this.#options;
    const size = shardSizeOf?.(tenant) ?? 0;
    const all = without === undefined ? ring.view : ring.view.without(without);
    const view = size > 0 ? all.shard(tenant, Math.max(size, ring.replicas)) : all;
    return view.planWrites(Uint32Array.from(batch.streams, ({ text }) => tokenOf(tenant, text)));
  }

  /** Undefined when those that are left are too few. */
  #planWithout(gone: ReadonlySet<string>, request: PushRequest): WritePlan | undefined {
    try {
      return this.#plan(request, gone);
    } catch {
      return undefined;
    }
  }

  /** Never rejects: a failure is a reply. */
  async #send(
    { id, ...instance }: RingInstance,
    { part, bytes }: SizedPart,
    { signal, gone }: Trial,
  ): Promise<Reply> {
    const { metrics, ingesterOf, maxBytesBehind } = this.#options;
    const labels = { ingester: id };
    const behind = this.#behind.get(id) ?? 0;
    metrics.ingesterAppends.inc(labels);
    try {
      if (behind > 0 && behind + bytes > maxBytesBehind)
        throw unavailable(`it does not keep up, ${behind} bytes wait for it`);
      this.#behind.set(id, behind + bytes);
      try {
        return await ingesterOf({ id, ...instance }).pushPart(part, { signal });
      } catch (failure) {
        if (errorCodeOf(failure) === "unavailable") gone.add(id);
        throw failure;
      } finally {
        this.#give(id, bytes);
      }
    } catch (failure) {
      metrics.ingesterAppendFailures.inc(labels);
      if (signal.aborted) metrics.ingesterAppendTimeouts.inc(labels);
      return { failure: namedFailure(id, failure) };
    }
  }

  #give(id: string, bytes: number): void {
    const left = (this.#behind.get(id) ?? 0) - bytes;
    if (left > 0) this.#behind.set(id, left);
    else this.#behind.delete(id);
  }
}

/** A part of a push, and about how much memory it takes until it is answered. */
interface SizedPart {
  readonly part: PushPart;
  readonly bytes: number;
}

/** The parts of a push for ingesters; those that get the same streams get the same object. */
class PushParts {
  readonly #whole: SizedPart;
  readonly #parts = new Map<string, SizedPart>();

  constructor(tenant: string, whole: Batch) {
    this.#whole = { part: { tenant, whole }, bytes: sizeOf(whole) };
  }

  of({ keys }: WriteTarget): SizedPart {
    const { part, bytes } = this.#whole;
    const { streams, rowCount } = part.whole;
    if (keys.length === streams.length) return this.#whole;
    const name = Buffer.from(keys.buffer, keys.byteOffset, keys.byteLength).toString("latin1");
    const known = this.#parts.get(name);
    if (known !== undefined) return known;
    let rows = 0;
    for (const key of keys) rows += streams[key]!.rowEnd - streams[key]!.rowStart;
    const own = { part: { ...part, streams: keys }, bytes: Math.ceil((bytes * rows) / rowCount) };
    this.#parts.set(name, own);
    return own;
  }
}

/** The ingester of this process as one of several. */
export function takerFor(ingester: Pick<Ingester, "push">): PartTaker {
  return {
    pushPart: ({ tenant, whole, streams }, options) => {
      const batch = streams === undefined ? whole : takeStreams(whole, streams);
      return ingester.push({ tenant, batch }, options);
    },
  };
}

const fnvBasis = 0x811c9dc5;
const fnvPrime = 0x01000193;

/** The place of a stream in the ring: FNV-1a of its tenant and its canonical labels, then the finalizer of MurmurHash3. */
function tokenOf(tenant: string, text: string): number {
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
  return lineBytes + sumOf(metaValueLength) + rowCount * bytesPerRow;
}

/** Names the ingester that is gone or slow, which is not a program fault. */
function namedFailure(id: string, cause: unknown): unknown {
  if (errorCodeOf(cause) !== "unavailable") return cause;
  return unavailable(`ingester ${id}: ${textForClients(cause)}`, { cause });
}

/** A client may retry a push that failed as a whole, whatever error an ingester gave. */
function asServerError(cause: unknown): unknown {
  if (!(cause instanceof SkaldError) || cause.status === 400 || cause.status === 429) return cause;
  const { message: text, code } = cause;
  return new SkaldError("unavailable", text, { cause, status: code === "internal" ? 500 : 503 });
}

/** The reply of one ingester; a failure is the error of its call. */
type Reply = PushOutcome | { readonly failure: unknown };

/** The outcome for all streams of a push. */
type Verdict =
  | { readonly kind: "stored"; readonly refusals: readonly PushRefusal[] }
  | { readonly kind: "failed"; readonly error: unknown };

/**
 * Counts the replies to one push, stream by stream. A stream is stored once a quorum stored it without a refusal. It is
 * refused once the ingesters that did not refuse it are fewer than a quorum. It has failed once the calls that did not
 * fail are fewer than a quorum.
 */
class WriteTally {
  readonly #plan: WritePlan;
  /** Streams by target: the plan's keys, or one group for all streams. */
  readonly #groups: readonly Uint32Array[];
  readonly #clean: Uint16Array;
  readonly #refused: Uint16Array;
  readonly #failed: Uint16Array;
  readonly #replies: (Reply | undefined)[];
  #undecided: number;

  constructor(plan: WritePlan, streams: number) {
    this.#plan = plan;
    // Most pushes go to the same ingesters as a whole, and one group is enough.
    const isOne = plan.targets.length === plan.copies;
    const groups = isOne ? 1 : streams;
    this.#groups = plan.targets.map(({ keys }) => (isOne ? Uint32Array.of(0) : keys));
    this.#clean = new Uint16Array(groups);
    this.#refused = new Uint16Array(groups);
    this.#failed = new Uint16Array(groups);
    this.#replies = plan.targets.map(() => undefined);
    this.#undecided = groups;
  }

  /** Adds the reply of a target of the plan; returns the verdict as soon as there is one. */
  add(target: number, reply: Reply): Verdict | undefined {
    this.#replies[target] = reply;
    const isClean = !("failure" in reply) && reply.refusals.length === 0;
    const counts = isClean ? this.#clean : "failure" in reply ? this.#failed : this.#refused;
    for (const group of this.#groups[target]!) {
      const wasDecided = this.#isDecided(group);
      counts[group]!++;
      const canAnswer = this.#plan.copies - this.#failed[group]! >= this.#plan.quorum;
      if (!canAnswer) return { kind: "failed", error: this.#failureOf(group) };
      if (!wasDecided && this.#isDecided(group)) this.#undecided--;
    }
    return this.#undecided > 0 ? undefined : { kind: "stored", refusals: this.#refusals() };
  }

  #isDecided(group: number): boolean {
    const { copies, quorum } = this.#plan;
    const clean = this.#clean[group]!;
    const answers = clean + this.#refused[group]!;
    if (clean >= quorum) return true;
    const canBecomeClean = copies - this.#refused[group]! - this.#failed[group]! >= quorum;
    return answers >= quorum && !canBecomeClean;
  }

  /** The first failure of a stream, in the order of the plan. */
  #failureOf(group: number): unknown {
    const failures = this.#replies.filter(
      (reply, i) => reply !== undefined && "failure" in reply && this.#groups[i]!.includes(group),
    );
    return (failures[0] as { failure: unknown }).failure;
  }

  /** The refusals of the targets of a refused stream; equal ones count once. */
  #refusals(): PushRefusal[] {
    const merged = new Map<string, PushRefusal>();
    for (const [i, reply] of this.#replies.entries()) {
      if (reply === undefined || "failure" in reply || reply.refusals.length === 0) continue;
      const isRefused = this.#groups[i]!.some((group) => this.#clean[group]! < this.#plan.quorum);
      if (!isRefused) continue;
      for (const one of reply.refusals) {
        const key = JSON.stringify([one.status, one.reason, one.message]);
        const known = merged.get(key);
        if (known === undefined || known.entries < one.entries) merged.set(key, one);
      }
    }
    return [...merged.values()];
  }
}

function sumOf(numbers: Uint32Array): number {
  let total = 0;
  for (let i = 0; i < numbers.length; i++) total += numbers[i]!;
  return total;
}

function ignore(): void {}
