import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { type LifecyclerOptions, readTokenFile } from "./lifecycler.js";
import { MemoryRingStore } from "./ring-store.js";
import { FakeClock, type FakeProcess, fakeProcess } from "./testing/fake-process.js";

const { signal } = new AbortController();
let directory: string;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "skald-life-"));
});
afterAll(() => rm(directory, { recursive: true }));

function make(store: MemoryRingStore, id: string, options: Partial<LifecyclerOptions> = {}) {
  return fakeProcess(store, id, { time: new FakeClock(), ...options });
}

async function join_(store: MemoryRingStore, id: string, options?: Partial<LifecyclerOptions>) {
  const process = make(store, id, options);
  await process.member.start();
  await process.member.join(signal);
  return process;
}

describe("joining", () => {
  it("goes from PENDING to ACTIVE with the tokens wanted", async () => {
    const store = new MemoryRingStore();
    const { member, ring } = make(store, "a");
    await member.start();
    await ring.refresh();
    expect(ring.view.find("a")).toMatchObject({ state: "PENDING", address: "a:9095" });
    expect(ring.view.find("a")?.tokens).toHaveLength(0);
    await member.join(signal);
    expect(ring.view.find("a")).toMatchObject({ state: "ACTIVE" });
    expect(ring.view.find("a")?.tokens).toHaveLength(128);
    expect(member.owns(42)).toBe(true);
  });

  it("needs no tokens where the ring places no keys", async () => {
    const { ring } = await join_(new MemoryRingStore(), "a", { tokens: 0 });
    expect(ring.view.find("a")).toMatchObject({ state: "ACTIVE" });
    expect(ring.view.activeCount).toBe(1);
  });

  it("spreads the tokens of instances that join at the same time", async () => {
    const store = new MemoryRingStore();
    const processes = ["a", "b", "c", "d", "e", "f"].map((id) => make(store, id));
    for (const { member } of processes) await member.start();
    await Promise.all(processes.map(({ member }) => member.join(signal)));
    const [{ ring }] = processes as [FakeProcess];
    await ring.refresh();
    const parts = [...ring.view.ownership().values()];
    expect(parts).toHaveLength(6);
    for (const part of parts) expect(part * 6).toBeCloseTo(1, 1);
    const tokens = ring.view.instances.flatMap((instance) => [...instance.tokens]);
    expect(new Set(tokens).size).toBe(6 * 128);
  });

  it("works on a key in one place only", async () => {
    const store = new MemoryRingStore();
    const processes = [];
    for (const id of ["a", "b", "c"]) processes.push(await join_(store, id));
    for (const { ring } of processes) await ring.refresh();
    for (let key = 0; key < 2 ** 32; key += 2 ** 24)
      expect(processes.filter(({ member }) => member.owns(key))).toHaveLength(1);
  });
});

describe("coming back", () => {
  it("keeps its tokens by the file, though it left the ring", async () => {
    const store = new MemoryRingStore();
    const tokensFile = join(directory, "a.tokens");
    await join_(store, "b");
    const { member } = await join_(store, "a", { tokensFile });
    expect(await readTokenFile(tokensFile)).toEqual(member.tokens);
    await member.stop({ unregister: true });
    await join_(store, "c");
    const again = await join_(store, "a", { tokensFile });
    expect(again.member.tokens).toEqual(member.tokens);
  });

  it("keeps its tokens by the store, and when it first joined", async () => {
    const store = new MemoryRingStore();
    const { member, ring } = await join_(store, "a");
    const first = ring.view.find("a")?.registeredMs;
    await member.stop({ unregister: false });
    const time = new FakeClock();
    time.ms = 1_000_000;
    const again = fakeProcess(store, "a", { time });
    await again.member.start();
    await again.ring.refresh();
    expect(again.ring.view.find("a")).toMatchObject({ state: "PENDING", registeredMs: first });
    expect(again.member.tokens).toEqual(member.tokens);
    await again.member.join(signal);
    expect(again.member.state).toBe("ACTIVE");
  });

  it("chooses anew when another number of tokens is wanted, or the file is damaged", async () => {
    const store = new MemoryRingStore();
    const tokensFile = join(directory, "b.tokens");
    await writeFile(tokensFile, '{"tokens":[1,2');
    const { member } = await join_(store, "a", { tokensFile, tokens: 16 });
    expect(member.tokens).toHaveLength(16);
    await member.stop({ unregister: true, deleteTokens: true });
    expect(await readTokenFile(tokensFile)).toBeUndefined();
    expect((await join_(store, "a", { tokensFile, tokens: 32 })).member.tokens).toHaveLength(32);
  });
});

describe("without the store", () => {
  class BrokenStore extends MemoryRingStore {
    isDown = true;
    override read(ring: string) {
      return this.isDown ? Promise.reject(new Error("down")) : super.read(ring);
    }
    override write(...parameters: Parameters<MemoryRingStore["write"]>) {
      return this.isDown ? Promise.reject(new Error("down")) : super.write(...parameters);
    }
  }

  it("comes back with its file, and is told of when the store is there", async () => {
    const store = new BrokenStore();
    const tokensFile = join(directory, "c.tokens");
    await join_(new MemoryRingStore(), "a", { tokensFile });
    const { member } = await join_(store, "a", { tokensFile });
    expect(member.state).toBe("ACTIVE");
    store.isDown = false;
    await member.beat();
    expect((await store.read("ring")).get("a")).toContain('"ACTIVE"');
  });

  it("waits with its first tokens, and does not write over those that the store has", async () => {
    const store = new BrokenStore();
    store.isDown = false;
    const { member: before } = await join_(store, "a");
    store.isDown = true;
    const { member } = make(store, "a", {
      sleep: async () => {
        store.isDown = false;
      },
    });
    await member.start();
    await member.join(signal);
    expect(member.tokens).toEqual(before.tokens);
  });

  it("ends its wait with the signal", async () => {
    const end = new AbortController();
    const { member } = make(new BrokenStore(), "a", { sleep: async () => end.abort() });
    await member.start();
    await expect(member.join(end.signal)).rejects.toThrow("aborted");
    await member.stop({ unregister: true });
  });
});
