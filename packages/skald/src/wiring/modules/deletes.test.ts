import { expect, it } from "@jest/globals";
import { DeletePass, DeleteRequests, isFinished, RequestStore } from "@skald/compactor";
import type { HeldRows, Scanner } from "@skald/contracts";
import type { SegmentRef } from "@skald/model";
import { ReplicatedIngester } from "@skald/querier";
import { type RingInstance, RingView } from "@skald/ring";
import { silentLogger } from "@skald/runtime/log";
import { Metrics } from "@skald/runtime/metrics";
import { MemoryStore } from "@skald/storage";
import { KeptCopies } from "./deletes.js";

const { signal } = new AbortController();
const log = silentLogger();

/** Ingesters a, b and c without rows, of which one may be away or fail. */
async function makeCluster() {
  const state = { away: "", failing: "", isCovered: false };
  const view = () => {
    const members = ["a", "b", "c"].map((id, i): RingInstance => {
      const isAway = id === state.away;
      return {
        ...{ id, zone: "", address: `${id}:1`, state: "ACTIVE", tokens: Uint32Array.of(i) },
        ...{ beat: 1, heartbeatMs: 1, registeredMs: 1, isHealthy: !isAway },
        isCovered: isAway && state.isCovered,
      };
    });
    return new RingView(members, { replicas: 3, isZoneAware: false });
  };
  const ingester = new ReplicatedIngester<RingInstance>({
    replicasOf: () => view().everyHolder(),
    queryWithinMs: 0,
    connect: ({ id }) => {
      const select = async () => {
        if (id === state.failing) throw new Error("no answer");
        return { sources: [] };
      };
      return { select } as unknown as HeldRows;
    },
  });
  const clock = { ms: 1_800_000_000_000, nowMs: () => clock.ms };
  const onDamaged = () => undefined;
  const requests = new RequestStore({ store: new MemoryStore(), prefix: "index/", onDamaged });
  const deletes = new DeleteRequests({
    ...{ requests, clock, log, metrics: new Metrics(), cancelPeriodMs: 1, redactPeriodMs: 1e9 },
    pendingLimitOf: () => 0,
    modeOf: () => "filter-and-delete",
  });
  await deletes.refresh({ signal });
  // No source is scanned, so that nothing looks at the parsed query.
  const asked = { query: "{a=`b`}", boundsMs: [1000, 3000], log: { matchers: [] } as never };
  await deletes.create("t", asked, { signal });
  clock.ms += 1000;
  const pass = new DeletePass({
    ...{ catalog: { list: async () => [] }, deletes, ingester, log, maxRequests: 10 },
    scanner: {} as Scanner<SegmentRef, "matches">,
  });
  /** Whether the request is open after a run. */
  const run = async () => {
    await pass.run({ signal });
    return deletes.hidesRows("t");
  };
  return { state, run, view };
}

it("a delete request is done only when every ingester that may have rows was asked", async () => {
  const { state, run, view } = await makeCluster();
  state.away = "c";
  expect(view().readSet().maxMissing).toBe(0);
  expect(await run()).toBe(true);
  // Its rows are in the store, but it may bring deleted ones back.
  state.isCovered = true;
  expect(view().readSet().maxMissing).toBe(1);
  expect(await run()).toBe(true);
  Object.assign(state, { away: "", failing: "c" });
  expect(await run()).toBe(true);
  state.failing = "";
  expect(await run()).toBe(false);
});

it("a process drops its copies of what is deleted, and what an earlier one left, for a day", async () => {
  const clock = { ms: 1_800_000_000_000, nowMs: () => clock.ms };
  const store = new MemoryStore();
  const deletes = new DeleteRequests({
    ...{ clock, log, metrics: new Metrics(), cancelPeriodMs: 1000, redactPeriodMs: 1e9 },
    requests: new RequestStore({ store, prefix: "index/", onDamaged: () => undefined }),
    pendingLimitOf: () => 0,
    modeOf: () => "filter-and-delete",
  });
  await deletes.refresh({ signal });
  const asked = { query: "{a=`b`}", boundsMs: [1000, 3000], log: { matchers: [] } as never };
  let calls: string[] = [];
  const note = (what: string) => async (name: string) => void calls.push(`${what} ${name}`);
  const parts = { cache: { dropGone: note("cache") }, ownPatterns: { erase: note("patterns") } };
  const newCopies = () => new KeptCopies({ deletes, parts: parts as never });
  const sweep = async (copies: KeptCopies) => {
    calls = [];
    await copies.sweep({ signal });
    return calls;
  };
  const copies = newCopies();
  expect(await sweep(copies)).toEqual([]);
  await deletes.create("t", asked, { signal });
  // Patterns are hidden at once. Nothing leaves the store while the request can be cancelled.
  expect(await sweep(copies)).toEqual(["patterns t"]);
  const both = ["patterns t", "cache tenant=t/"];
  clock.ms += 1000;
  expect(await sweep(copies)).toEqual(both);
  const [known] = deletes.list("t");
  if (known === undefined) throw new Error("no request");
  await deletes.note(known.request, [0], { signal });
  expect(deletes.list("t").every(isFinished)).toBe(true);
  expect(await sweep(copies)).toEqual(both);
  clock.ms += 86_400_001;
  expect(await sweep(copies)).toEqual([]);
  // A later process may find files of before.
  const later = newCopies();
  expect([await sweep(later), await sweep(later)]).toEqual([both, []]);
});
