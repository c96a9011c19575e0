import { describe, expect, it } from "@jest/globals";
import type { LifecyclerOptions } from "./lifecycler.js";
import type { RingOptions } from "./ring.js";
import { MemoryRingStore } from "./ring-store.js";
import { FakeClock, type FakeProcess, fakeProcess, live } from "./testing/fake-process.js";

/** A store that can be taken away, as a whole or for one process. */
class FaultyStore extends MemoryRingStore {
  isDown = false;

  override read(ring: string) {
    return this.isDown ? Promise.reject(new Error("down")) : super.read(ring);
  }

  override write(...parameters: Parameters<MemoryRingStore["write"]>) {
    return this.isDown ? Promise.reject(new Error("down")) : super.write(...parameters);
  }
}

const { signal } = new AbortController();

async function start(
  count: number,
  options: Partial<LifecyclerOptions & RingOptions & { skewMs: number }> = {},
) {
  const time = new FakeClock();
  const store = new FaultyStore();
  const processes: FakeProcess[] = [];
  for (let i = 0; i < count; i++) {
    const one = fakeProcess(store, `i${i}`, { time, tokens: 8, ...options });
    await one.member.start();
    await one.member.join(signal);
    processes.push(one);
  }
  await live(time, processes, 5000);
  return { time, store, processes };
}

/** How a process sees the others: `i0:ACTIVE i1:UNHEALTHY`. */
function seenBy({ ring }: FakeProcess): string {
  return ring.view.instances
    .map(({ id, state, isHealthy }) => `${id}:${isHealthy ? state : "UNHEALTHY"}`)
    .join(" ");
}

describe("health", () => {
  it("ends when heartbeats are missed for the timeout, and comes back with the next one", async () => {
    const { time, processes } = await start(3);
    const [a, b, c] = processes as [FakeProcess, FakeProcess, FakeProcess];
    await live(time, [a, b], 60_000);
    expect(seenBy(a)).toBe("i0:ACTIVE i1:ACTIVE i2:ACTIVE");
    await live(time, [a, b], 5000);
    expect(seenBy(a)).toBe("i0:ACTIVE i1:ACTIVE i2:UNHEALTHY");
    expect(a.ring.view.activeCount).toBe(2);
    await c.member.beat();
    await a.ring.refresh();
    expect(seenBy(a)).toBe("i0:ACTIVE i1:ACTIVE i2:ACTIVE");
  });

  it("does not depend on the clocks of the others", async () => {
    const time = new FakeClock();
    const store = new MemoryRingStore();
    const processes: FakeProcess[] = [];
    for (const [i, skewMs] of [0, 90_000, -90_000].entries()) {
      const one = fakeProcess(store, `i${i}`, { time, skewMs });
      await one.member.start();
      await one.member.join(signal);
      processes.push(one);
    }
    await live(time, processes, 300_000);
    for (const one of processes) expect(seenBy(one)).toBe("i0:ACTIVE i1:ACTIVE i2:ACTIVE");
    await live(time, processes.slice(0, 2), 65_000);
    expect(seenBy(processes[0]!)).toBe("i0:ACTIVE i1:ACTIVE i2:UNHEALTHY");
  });

  it("is not judged while the store is down, however long", async () => {
    const { time, store, processes } = await start(3);
    const view = processes[0]?.ring.view;
    store.isDown = true;
    await live(time, processes, 3_600_000);
    expect(processes[0]?.ring.view).toBe(view);
    store.isDown = false;
    // The first to come back sees only old heartbeats.
    await live(time, processes.slice(0, 1), 5000);
    expect(seenBy(processes[0]!)).toBe("i0:ACTIVE i1:ACTIVE i2:ACTIVE");
    await live(time, processes, 120_000);
    for (const one of processes) expect(seenBy(one)).toBe("i0:ACTIVE i1:ACTIVE i2:ACTIVE");
  });

  it("is not judged by a process that was stopped itself", async () => {
    const { time, processes } = await start(2);
    const [a, b] = processes as [FakeProcess, FakeProcess];
    await live(time, [b], 600_000);
    time.ms += 600_000;
    await a.ring.refresh();
    expect(seenBy(a)).toBe("i0:ACTIVE i1:ACTIVE");
    expect(seenBy(b)).toBe("i0:UNHEALTHY i1:ACTIVE");
  });

  it("lasts for ever without a timeout", async () => {
    const { time, processes } = await start(2, { heartbeatTimeoutMs: 0 });
    await live(time, processes.slice(0, 1), 600_000);
    expect(seenBy(processes[0]!)).toBe("i0:ACTIVE i1:ACTIVE");
  });
});

describe("membership", () => {
  it("survives a store that lost everything: owners write themselves again", async () => {
    const { time, store, processes } = await start(3);
    for (const { member } of processes) await store.remove("ring", member.id);
    const [a] = processes as [FakeProcess];
    await a.ring.refresh();
    expect(seenBy(a)).toBe("i0:ACTIVE i1:ACTIVE i2:ACTIVE");
    await live(time, processes.slice(0, 2), 5000);
    expect([...(await store.read("ring")).keys()]).toEqual(["i0", "i1"]);
    await live(time, processes.slice(0, 2), 65_000);
    expect(seenBy(a)).toBe("i0:ACTIVE i1:ACTIVE");
  });

  it("is written again as soon as an owner sees that it is lost", async () => {
    const { store, processes } = await start(1);
    await store.remove("ring", "i0");
    await processes[0]?.ring.refresh();
    expect((await store.read("ring")).has("i0")).toBe(true);
  });

  it("ends at once by leaving, and what remains of it is deleted later", async () => {
    const { time, store, processes } = await start(2);
    const [a, b] = processes as [FakeProcess, FakeProcess];
    await b.member.leave();
    await a.ring.refresh();
    expect(seenBy(a)).toBe("i0:ACTIVE i1:LEAVING");
    await b.member.stop({ unregister: true });
    await a.ring.refresh();
    expect(seenBy(a)).toBe("i0:ACTIVE");
    expect((await store.read("ring")).size).toBe(2);
    await live(time, [a], 700_000);
    expect((await store.read("ring")).size).toBe(1);
  });

  it("ends with rows and is missed by readers, new ones too, until it is back or what remains of it is deleted", async () => {
    const { time, store, processes } = await start(4);
    const [a, b] = processes as [FakeProcess, FakeProcess];
    const others = processes.filter((one) => one !== b);
    const missing = ({ ring } = a) => ring.view.readSet().maxMissing;
    expect(missing()).toBe(1);
    await b.member.stop({ unregister: true, holdsRows: true });
    await live(time, others, 60_000);
    expect(missing()).toBe(0);
    const reader = fakeProcess(store, "reader", { time });
    await reader.ring.refresh();
    expect(missing(reader)).toBe(0);
    for (const id of ["i0", "i1", "i2", "i3"]) await store.remove("ring", id);
    await live(time, others, 60_000);
    expect(missing()).toBe(0);
    await live(time, others, 600_000);
    expect(missing()).toBe(1);
    expect(a.ring.sinceLeftMs).toBe(Number.POSITIVE_INFINITY);
    const again = fakeProcess(store, "i1", { time, tokens: 8 });
    await again.member.start();
    await again.member.join(signal);
    await live(time, [...others, again], 5000);
    expect(missing()).toBe(1);
  });

  it("ends with all rows stored and is not missed, but it is known since when listings have them", async () => {
    const { time, store, processes } = await start(4);
    const [a, b] = processes as [FakeProcess, FakeProcess];
    expect(a.ring.sinceLeftMs).toBe(Number.POSITIVE_INFINITY);
    await b.member.stop({ unregister: true });
    await a.ring.refresh();
    expect(a.ring.view.readSet().maxMissing).toBe(1);
    time.ms += 700;
    await a.ring.refresh();
    const reader = fakeProcess(store, "reader", { time });
    await reader.ring.refresh();
    expect([a.ring.sinceLeftMs, reader.ring.sinceLeftMs]).toEqual([700, 0]);
  });

  it("ends by hand and is not missed, also of one that left with rows", async () => {
    const { time, processes } = await start(5);
    const [a, b, c] = processes as [FakeProcess, FakeProcess, FakeProcess];
    await c.member.stop({ unregister: true, holdsRows: true });
    await live(time, [a, b], 5000);
    expect([a, b].map(({ ring }) => ring.view.readSet().maxMissing)).toEqual([0, 0]);
    await a.ring.forget("i2");
    await a.ring.forget("i4");
    await live(time, [a, b], 5000);
    expect([a, b].map(({ ring }) => ring.view.readSet().maxMissing)).toEqual([1, 1]);
  });

  it("ends by hand; one that lives comes back", async () => {
    const { time, processes } = await start(3);
    const [a, b, c] = processes as [FakeProcess, FakeProcess, FakeProcess];
    await a.ring.forget("i1");
    await a.ring.forget("i2");
    expect(seenBy(a)).toBe("i0:ACTIVE");
    await live(time, [a, b], 5000);
    expect(seenBy(a)).toBe("i0:ACTIVE i1:ACTIVE");
    await c.member.stop({ unregister: false });
    expect(seenBy(b)).toBe("i0:ACTIVE i1:ACTIVE");
  });

  it("ends by itself when an instance is dead for long, if the ring does that", async () => {
    const { time, processes } = await start(2, { forgetAfterMs: 120_000 });
    const [a] = processes as [FakeProcess];
    await live(time, [a], 120_000);
    expect(seenBy(a)).toBe("i0:ACTIVE i1:UNHEALTHY");
    await live(time, [a], 5000);
    expect(seenBy(a)).toBe("i0:ACTIVE");
  });

  it("is not ended by a field that cannot be read", async () => {
    const { store, processes } = await start(2);
    await store.write("ring", "i1", "nonsense", { news: false });
    await store.write("ring", "x", "nonsense", { news: false });
    await processes[0]?.ring.refresh();
    expect(seenBy(processes[0]!)).toBe("i0:ACTIVE i1:ACTIVE");
  });
});

describe("watching", () => {
  it("reads at once when there is news, without waiting for its turn", async () => {
    const time = new FakeClock();
    const store = new MemoryRingStore();
    const a = fakeProcess(store, "a", { time });
    const b = fakeProcess(store, "b", { time });
    const end = new AbortController();
    const running = a.ring.run(end.signal);
    const seen = new Promise<void>((resolve) => {
      a.ring.onRead((fields) => {
        if (fields.has("b")) resolve();
      });
    });
    await b.member.start();
    await seen;
    expect(seenBy(a)).toBe("b:PENDING");
    end.abort();
    await running;
  });

  it("is not ready before it has read once, and stays ready", async () => {
    const time = new FakeClock();
    const store = new FaultyStore();
    const { ring } = fakeProcess(store, "a", { time });
    store.isDown = true;
    await expect(ring.refresh()).rejects.toThrow("down");
    expect(ring.unready).toBe("the ring ring could not be read yet");
    store.isDown = false;
    await ring.refresh();
    store.isDown = true;
    await expect(ring.refresh()).rejects.toThrow("down");
    expect(ring.unready).toBeUndefined();
  });

  it("keeps its view as long as there are only heartbeats", async () => {
    const { time, processes } = await start(2);
    const view = processes[0]?.ring.view;
    await live(time, processes, 60_000);
    expect(processes[0]?.ring.view).toBe(view);
  });
});
