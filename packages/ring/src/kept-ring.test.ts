import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { silentLogger } from "@skald/runtime/log";
import { KeptRing } from "./kept-ring.js";
import { MemoryRingStore } from "./ring-store.js";
import { FakeClock, fakeProcess, live } from "./testing/fake-process.js";

const { signal } = new AbortController();
let folder: string;
let path: string;
let time: FakeClock;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "skald-kept-"));
  path = join(folder, "rings", "ring.json");
  time = new FakeClock();
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

class FaultyStore extends MemoryRingStore {
  isDown = false;

  override read(ring: string) {
    return this.isDown ? Promise.reject(new Error("down")) : super.read(ring);
  }

  override write(...parameters: Parameters<MemoryRingStore["write"]>) {
    return this.isDown ? Promise.reject(new Error("down")) : super.write(...parameters);
  }
}

function keptIn(source = "redis") {
  return new KeptRing({ path, source, log: silentLogger(), clock: time });
}

/** Three members of which the first keeps the ring; then the store goes down. */
async function loseStore() {
  const store = new FaultyStore();
  const processes = ["a", "b", "c"].map((id) =>
    fakeProcess(store, id, { time, tokens: 8, ...(id === "a" ? { kept: keptIn() } : {}) }),
  );
  for (const { member } of processes) {
    await member.start();
    await member.join(signal);
  }
  await live(time, processes, 20_000);
  store.isDown = true;
  return { store, processes };
}

describe("a member that starts again while the store is down", () => {
  it("works with the ring and the tokens of its earlier life, and nobody gets old", async () => {
    const { store, processes } = await loseStore();
    const again = fakeProcess(store, "a", { time, tokens: 8, kept: keptIn() });
    await again.member.start();
    await again.ring.refresh().catch(() => undefined);
    await again.member.join(signal);
    expect(again.ring.unready).toBeUndefined();
    expect(again.member.tokens).toEqual(processes[0]!.member.tokens);
    await live(time, [again], 300_000);
    expect(again.ring.view.instances.map(({ id, isHealthy }) => `${id} ${isHealthy}`)).toEqual([
      "a true",
      "b true",
      "c true",
    ]);
    store.isDown = false;
    await live(time, [again, processes[1]!], 65_000);
    expect(again.ring.view.find("b")?.isHealthy).toBe(true);
    expect(again.ring.view.find("c")?.isHealthy).toBe(false);
  });

  it("finds the ring as young as its last use, however long the store is down", async () => {
    const { store, processes } = await loseStore();
    await live(time, processes, 3_600_000);
    const again = fakeProcess(store, "a", { time, tokens: 8, kept: keptIn() });
    await again.ring.refresh().catch(() => undefined);
    expect(again.ring.unready).toBeUndefined();
  });

  it.each([
    [
      "too old",
      () => {
        time.ms += 601_000;
      },
    ],
    ["damaged", () => writeFileSync(path, "{")],
    ["not there", () => rmSync(path)],
  ])("waits for the store when the file is %s", async (_, change) => {
    const { store } = await loseStore();
    change();
    const again = fakeProcess(store, "a", { time, tokens: 8, kept: keptIn() });
    await again.ring.refresh().catch(() => undefined);
    expect(again.ring.unready).toBe("the ring ring could not be read yet");
  });

  it("does not take the ring of another store", async () => {
    await loseStore();
    expect((await keptIn().load())?.size).toBe(3);
    expect(await keptIn("redis-2").load()).toBeUndefined();
  });
});
