import { expect, it } from "@jest/globals";
import { Lifecycler, MemoryRingStore, Ring } from "@skald/ring";
import { silentLogger } from "@skald/runtime/log";
import { LostMembers } from "./lost-members.js";

const { signal } = new AbortController();
const log = silentLogger();

/** Ingesters of one ring whose time a test moves on; each stores what it has unless its store fails. */
async function makeCluster(options: { forgetsCovered?: boolean } = {}) {
  const time = { ms: 0 };
  const store = new MemoryRingStore();
  const clocks = {
    clock: { nowMs: () => time.ms },
    steadyClock: { elapsedMs: () => time.ms },
  };
  const start = async (id: string) => {
    const state = { flushes: 0, fails: false };
    const ring = new Ring({
      ...{ ...clocks, ...options, store, log, name: "ring", replicas: 3 },
      ...{ heartbeatTimeoutMs: 60_000, pollMs: 5000 },
    });
    const lost: LostMembers = new LostMembers({
      ...{ ring, id, log, heartbeatTimeoutMs: 60_000, sleep: async () => undefined },
      flush: async () => {
        if (state.fails) throw new Error("no store");
        state.flushes++;
      },
      publish: () => member.beat(true),
    });
    const member: Lifecycler = new Lifecycler({
      ...{ store, ring, id, log, address: `${id}:9095`, tokens: 8, heartbeatMs: 0, settleMs: 0 },
      ...{ clock: clocks.clock, covers: (earlier) => lost.covers(earlier) },
    });
    await member.start();
    await ring.refresh();
    lost.adopt();
    await member.join(signal);
    return { ring, member, state };
  };
  type Process = Awaited<ReturnType<typeof start>>;
  const live = async (processes: readonly Process[], forMs: number) => {
    for (const end = time.ms + forMs; time.ms < end; ) {
      time.ms += 5000;
      for (const { member } of processes) await member.beat();
      for (const { ring } of processes) await ring.refresh();
      await new Promise(setImmediate);
    }
  };
  return { start, live };
}

it("answers stay whole when ingesters are lost for good one after the other, and new ones come", async () => {
  const { start, live } = await makeCluster();
  const [a, b, c] = [await start("a"), await start("b"), await start("c")];
  await live([a, b, c], 10_000);
  await live([a, b], 180_000);
  expect([a.state.flushes, b.state.flushes]).toEqual([1, 1]);
  expect(a.ring.view.readSet()).toMatchObject({
    instances: [{ id: "a" }, { id: "b" }],
    maxMissing: 1,
  });
  await live([a], 180_000);
  expect(a.ring.view.readSet()).toMatchObject({ instances: [{ id: "a" }], maxMissing: 1 });
  // Those who come later have nothing in common with the lost ones, and see at once what the others know.
  const [d, e] = [await start("d"), await start("e")];
  await live([a, d, e], 5000);
  for (const { ring } of [a, d, e]) expect(ring.view.readSet()).toMatchObject({ maxMissing: 1 });
  expect([d.state.flushes, e.state.flushes]).toEqual([0, 0]);
});

it("misses two that are lost at the same time, and names the page to go to", async () => {
  const { start, live } = await makeCluster({ forgetsCovered: true });
  const [a, b, c] = [await start("a"), await start("b"), await start("c")];
  await live([a, b, c], 10_000);
  await live([a], 600_000);
  const text = /too many unhealthy instances in the ring: b,c; .* the page \/ring/;
  expect(() => a.ring.view.readSet()).toThrow(text);
  expect(() => a.ring.view.readSet()).toThrow(expect.objectContaining({ status: 503 }));
});

it("misses a lost one until all others have stored what they have", async () => {
  const { start, live } = await makeCluster();
  const [a, b, c] = [await start("a"), await start("b"), await start("c")];
  await live([a, b, c], 10_000);
  b.state.fails = true;
  await live([a, b], 300_000);
  expect(a.ring.view.readSet().maxMissing).toBe(0);
  b.state.fails = false;
  await live([a, b], 10_000);
  expect(a.ring.view.readSet().maxMissing).toBe(1);
});

it("counts one that comes back at once, and misses it again when it is lost again", async () => {
  const { start, live } = await makeCluster();
  const [a, b, c] = [await start("a"), await start("b"), await start("c")];
  await live([a, b, c], 10_000);
  await live([a, b], 300_000);
  await live([a, b, c], 5000);
  expect(a.ring.view.readSet().instances).toHaveLength(3);
  await live([a, b], 65_000);
  expect(a.ring.view.readSet().maxMissing).toBe(0);
  await live([a, b], 120_000);
  expect(a.ring.view.readSet().maxMissing).toBe(1);
  // It may still bring rows back: deletions wait for it.
  expect(() => a.ring.view.everyHolder()).toThrow("ingesters that may hold rows are away: c");
});

it("forgets a lost one when it is covered, if autoforget_unhealthy is set", async () => {
  const { start, live } = await makeCluster({ forgetsCovered: true });
  const all = [await start("a"), await start("b"), await start("c"), await start("d")];
  await live(all, 10_000);
  await live(all.slice(0, 3), 180_000);
  const [a] = all as [(typeof all)[0]];
  expect(a.ring.view.instances.map(({ id }) => id)).toEqual(["a", "b", "c"]);
  expect(a.ring.view.everyHolder().instances).toHaveLength(3);
});
