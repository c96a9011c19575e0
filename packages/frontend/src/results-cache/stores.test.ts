import { describe, expect, it } from "@jest/globals";
import { silentLogger } from "@skald/runtime/log";
import { MemoryStore, type MemoryStoreOptions } from "./memory-store.js";
import { type RedisClient, RedisResultStore } from "./redis-store.js";
import { unwrap, wrap } from "./result-store.js";

const { signal } = new AbortController();
const bytes = (...values: number[]) => Uint8Array.from(values);

describe("MemoryStore", () => {
  let nowMs = 0;
  const open = (changes: Partial<MemoryStoreOptions> = {}) =>
    new MemoryStore({
      ...{ maxBytes: 8000, maxItems: 0, ttlMs: 100, compress: false },
      clock: { elapsedMs: () => nowMs },
      ...changes,
    });
  const has = async (store: MemoryStore, ...keys: string[]) =>
    (await store.get(keys)).map((value) => value?.[0]);

  it("gives what it was given, for so long", async () => {
    const store = open();
    store.put("a", bytes(1));
    store.put("a", bytes(2));
    store.put("b", bytes(3));
    expect(await has(store, "b", "x", "a")).toEqual([3, undefined, 2]);
    nowMs += 100;
    expect(await has(store, "a", "b")).toEqual([undefined, undefined]);
    expect([store.bytes, store.count]).toEqual([0, 0]);
  });

  it("lets go what was not asked for longest, and takes nothing too large", async () => {
    const store = open({ maxItems: 2 });
    store.put("a", bytes(1));
    store.put("b", bytes(2));
    await store.get(["a"]);
    store.put("c", bytes(3));
    expect(await has(store, "a", "b", "c")).toEqual([1, undefined, 3]);
    const large = open();
    large.put("x", new Uint8Array(1001));
    expect(large.count).toBe(0);
    for (let i = 0; i < 50; i++) large.put(String(i), new Uint8Array(800));
    expect(large.bytes).toBeLessThanOrEqual(8000);
    expect(await has(large, "49", "0")).toEqual([0, undefined]);
  });
});

describe("RedisResultStore", () => {
  function open(answer: (key: string) => Promise<Buffer | null>, status = "ready") {
    const client: RedisClient & { status: string } = {
      status,
      getBuffer: answer,
      set: async (...args) => written.push(args),
      ...{ connect: async () => undefined, disconnect: () => undefined, on: () => undefined },
    };
    const written: unknown[][] = [];
    const store = new RedisResultStore(
      {
        ...{ endpoints: ["x"], masterName: "", username: "", password: "", database: 0 },
        ...{ timeoutMs: 60_000, ttlMs: 7, compress: true, prefix: "p:", log: silentLogger() },
      },
      async () => client,
    );
    store.open();
    return { store, client, written };
  }

  it("reads and writes", async () => {
    const { store, written } = open(async (key) => (key === "p:a" ? Buffer.from("v") : null));
    await new Promise(setImmediate);
    expect(await store.get(["a", "b"], signal)).toEqual([Buffer.from("v"), undefined]);
    store.put("c", bytes(1));
    expect(written).toEqual([["p:c", Buffer.from([1]), "PX", 7]]);
  });

  it("has nothing while there is no connection, and does not wait for one", async () => {
    const { store, written } = open(() => new Promise(() => {}), "connecting");
    await new Promise(setImmediate);
    expect(await store.get(["a"], signal)).toEqual([undefined]);
    store.put("c", bytes(1));
    expect(written).toEqual([]);
  });

  it("has nothing when a command fails, and lets Redis rest then", async () => {
    let calls = 0;
    const { store } = open(() => {
      calls++;
      return Promise.reject(new Error("Command timed out"));
    });
    await new Promise(setImmediate);
    expect(await store.get(["a"], signal)).toEqual([undefined]);
    expect(await store.get(["a"], signal)).toEqual([undefined]);
    expect(calls).toBe(1);
  });
});

describe("a value", () => {
  const data = {
    token: "t",
    at: Uint32Array.of(1, 2),
    values: Float64Array.of(0.5),
    ns: 2n ** 62n,
  };

  it.each([false, true])("comes back as it was, compressed: %s", (compress) => {
    const value = wrap(data, { compress, maxBytes: 1000 });
    expect(unwrap(value)).toEqual(data);
    expect(wrap(data, { compress, maxBytes: 20 })).toBeUndefined();
  });

  it("that is damaged, or of another version, is none", () => {
    const value = wrap(data, { compress: true, maxBytes: 1000 })!;
    for (let i = 0; i < value.length; i++) {
      const damaged = Uint8Array.from(value);
      damaged[i]! ^= 0x10;
      // The mark of compression is not part of the checksum, but nothing else can be read by it.
      expect(unwrap(damaged)).toBeUndefined();
    }
    expect(unwrap(value.subarray(0, value.length - 1))).toBeUndefined();
    expect(unwrap(bytes(1, 0))).toBeUndefined();
  });
});
