import type { PushOutcome, PushRefusal, PushRequest } from "@skald/contracts";
import { type Batch, unavailable } from "@skald/model";
import { type RingInstance, RingView } from "@skald/ring";
import { Metrics } from "@skald/runtime/metrics";
import { createDistributorMetrics } from "../metrics.js";
import { Replicator, type ReplicatorOptions, takerFor } from "../replicator.js";
import { rowsOf } from "./harness.js";

/** An ingester of a ring that keeps what it is sent, unless a test says that it does something else. */
export interface FakeReplica {
  readonly id: string;
  readonly batches: Batch[];
  /** What it answers to the next pushes; it stores them either way. */
  refusals: readonly PushRefusal[];
  state: "well" | "dead" | "stuck";
  /** Lets pushes go on that are stuck. */
  release(): void;
  /** Rows as texts. */
  rows(): string[];
}

export interface Replicas {
  readonly all: readonly FakeReplica[];
  readonly replicator: Replicator;
  readonly metrics: Metrics;
  /** Fires the time limit of every push that runs. */
  timeOut(): void;
  /** Takes an instance for unhealthy from now on. */
  lose(id: string): void;
}

/** Some ingesters in a ring of three copies. */
export function makeReplicas(
  count: number,
  options: Partial<ReplicatorOptions> & { zones?: readonly string[] } = {},
): Replicas {
  const all = Array.from({ length: count }, (_, i) => makeReplica(`i${i}`));
  const { zones, ...changes } = options;
  const members = all.map(({ id }, i) => memberOf(id, i, zones?.[i % zones.length] ?? ""));
  const placing = { replicas: 3, isZoneAware: zones !== undefined };
  const ring = { replicas: 3, view: new RingView(members, placing) };
  const ends: AbortController[] = [];
  const metrics = new Metrics();
  const replicator = new Replicator({
    ring,
    ingesterOf: ({ id }) =>
      takerFor({
        push: (request, { signal }) => pushTo(all.find((one) => one.id === id)!, request, signal),
      }),
    timeoutMs: 5000,
    maxBytesBehind: 1e9,
    metrics: createDistributorMetrics(metrics),
    timeout: () => {
      const end = new AbortController();
      ends.push(end);
      return end.signal;
    },
    ...changes,
  });
  return {
    all,
    replicator,
    metrics,
    timeOut: () => {
      for (const end of ends) end.abort(new DOMException("too late", "TimeoutError"));
    },
    lose: (id) => {
      const others = ring.view.instances.map((one) =>
        one.id === id ? { ...one, isHealthy: false } : one,
      );
      ring.view = new RingView(others, placing);
    },
  };
}

interface Waiting extends FakeReplica {
  readonly waiting: (() => void)[];
}

function makeReplica(id: string): Waiting {
  const replica: Waiting = {
    id,
    batches: [],
    waiting: [],
    refusals: [],
    state: "well",
    release: () => {
      for (const go of replica.waiting.splice(0)) go();
    },
    rows: () =>
      replica.batches.flatMap((batch) =>
        rowsOf(batch).map((row) => JSON.stringify({ ...row, ns: String(row.ns) })),
      ),
  };
  return replica;
}

async function pushTo(
  replica: FakeReplica,
  { batch }: PushRequest,
  signal: AbortSignal,
): Promise<PushOutcome> {
  if (replica.state === "dead") throw unavailable("connection refused");
  if (replica.state === "stuck")
    await new Promise<void>((resolve, reject) => {
      (replica as Waiting).waiting.push(resolve);
      signal.addEventListener("abort", () => reject(signal.reason), { once: true });
    });
  replica.batches.push(batch);
  return { refusals: replica.refusals };
}

/** Tokens all over the circle, other ones for each. */
function memberOf(id: string, index: number, zone: string): RingInstance {
  const tokens = Uint32Array.from({ length: 64 }, (_, i) =>
    Math.imul(i * 64 + index + 1, 0x9e3779b1),
  );
  return {
    ...{ id, zone, address: `${id}:9095`, state: "ACTIVE", tokens: tokens.sort() },
    ...{ beat: 1, heartbeatMs: 0, registeredMs: 0, isHealthy: true },
  };
}
