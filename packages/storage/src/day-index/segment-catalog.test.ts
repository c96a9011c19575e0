import { describe, expect, it } from "@jest/globals";
import { segmentKey } from "../object-store/keys.js";
import { MemoryStore } from "../object-store/memory-store.js";
import type { ObjectInfo } from "../object-store/object-store.js";
import { SegmentCatalog } from "./segment-catalog.js";

const { signal } = new AbortController();
const hourNs = 3_600_000_000_000n;
const dayNs = 24n * hourNs;
const start = 20_000n * dayNs;

describe("SegmentCatalog", () => {
  async function catalogOf(spans: readonly (readonly [bigint, bigint])[]) {
    const store = new MemoryStore();
    let nowMs = 1_000_000;
    for (const [i, [minNs, maxNs]] of spans.entries()) {
      await store.put(segmentKey({ tenant: "t", id: `s${i}`, minNs, maxNs }), new Uint8Array(3), {
        signal,
      });
    }
    const clock = { elapsedMs: () => nowMs };
    const locate = (key: string) => ({ kind: "object" as const, key });
    const failures: unknown[] = [];
    const onListFailure = (error: unknown) => failures.push(error);
    const catalog = new SegmentCatalog({ store, locate, clock, onListFailure });
    return { store, catalog, failures, pass: (ms: number) => (nowMs += ms) };
  }

  const request = { tenant: "t", fromNs: start, toNs: start + hourNs };
  const late = { tenant: "t", id: "late", minNs: start, maxNs: start + 1n };

  it.each([
    ["all", start, start + 2n * dayNs, 3],
    ["the first hour", start, start + hourNs - 1n, 1],
    ["the next day", start + dayNs, start + 2n * dayNs, 1],
    ["nothing between", start + 6n * hourNs, start + 7n * hourNs, 0],
    ["a range of years", 0n, start * 2n, 3],
  ])("prunes by time: %s", async (_name, fromNs, toNs, want) => {
    const { catalog } = await catalogOf([
      [start, start + hourNs],
      [start + hourNs, start + 2n * hourNs],
      [start + dayNs, start + dayNs + hourNs],
    ]);
    const found = await catalog.list({ tenant: "t", fromNs, toNs }, { signal });
    expect(found).toHaveLength(want);
    expect(await catalog.list({ tenant: "other", fromNs, toNs }, { signal })).toEqual([]);
  });

  it("lists again after a while", async () => {
    const { store, catalog, pass } = await catalogOf([]);
    expect(await catalog.list(request, { signal })).toEqual([]);
    await store.put(segmentKey(late), new Uint8Array(5), { signal });
    expect(await catalog.list(request, { signal })).toEqual([]);
    pass(61_000);
    expect(await catalog.list(request, { signal })).toMatchObject([{ ...late, sizeBytes: 5 }]);
  });

  it("goes on with a listing while it is read again", async () => {
    const { store, catalog, pass } = await catalogOf([]);
    await catalog.list(request, { signal });
    await store.put(segmentKey(late), new Uint8Array(5), { signal });
    pass(6_000);
    expect(await catalog.list(request, { signal })).toEqual([]);
    await new Promise((resolve) => setImmediate(resolve));
    expect(await catalog.list(request, { signal })).toHaveLength(1);
  });

  it("lists anew when it is asked to", async () => {
    const { store, catalog } = await catalogOf([]);
    await catalog.list(request, { signal });
    await store.put(segmentKey(late), new Uint8Array(5), { signal });
    expect(await catalog.list({ ...request, maxAgeMs: 0 }, { signal })).toHaveLength(1);
    expect(await catalog.list(request, { signal })).toHaveLength(1);
  });

  it("lists anew when what it has is too old for the asker, and waits for a listing that was begun in time", async () => {
    const { store, catalog, pass } = await catalogOf([]);
    await catalog.list(request, { signal });
    const list = store.list.bind(store);
    const listings: (() => void)[] = [];
    store.list = async function* (prefix, options) {
      const found: ObjectInfo[] = [];
      for await (const object of list(prefix, options)) found.push(object);
      await new Promise<void>((resolve) => listings.push(resolve));
      yield* found;
    };
    const next = () => new Promise((resolve) => setImmediate(resolve));
    pass(6000);
    // An older one serves, and is read again behind.
    expect(await catalog.list(request, { signal })).toEqual([]);
    await next();
    await store.put(segmentKey(late), new Uint8Array(5), { signal });
    pass(300);
    expect(await catalog.list({ ...request, maxAgeMs: 6400 }, { signal })).toEqual([]);
    const asked = catalog.list({ ...request, maxAgeMs: 200 }, { signal });
    listings.shift()?.();
    await next();
    await next();
    listings.shift()?.();
    expect(await asked).toHaveLength(1);
  });

  it("keeps a listing while the store is down, but not for long", async () => {
    const { store, catalog, failures, pass } = await catalogOf([[start, start + 1n]]);
    await catalog.list(request, { signal });
    store.list = () => {
      throw new Error("the store is down");
    };
    pass(6_000);
    expect(await catalog.list(request, { signal })).toHaveLength(1);
    expect(await catalog.list(request, { signal })).toHaveLength(1);
    expect(failures).toEqual([expect.objectContaining({ message: "the store is down" })]);
    pass(60_000);
    await expect(catalog.list(request, { signal })).rejects.toThrow("the store is down");
    await expect(catalog.list({ ...request, maxAgeMs: 0 }, { signal })).rejects.toThrow(
      "the store is down",
    );
  });

  it("tells of a store that hangs what it answered last, and sees it come back", async () => {
    const { store, catalog } = await catalogOf([[start, start + 1n]]);
    const list = store.list.bind(store);
    store.list = () => {
      throw new Error("the store is down");
    };
    await expect(catalog.list(request, { signal })).rejects.toThrow("the store is down");
    let comeBack = () => {};
    const back = new Promise<void>((resolve) => {
      comeBack = resolve;
    });
    store.list = async function* (prefix, options) {
      await back;
      yield* list(prefix, options);
    };
    await expect(catalog.list(request, { signal })).rejects.toThrow("the store is down");
    comeBack();
    expect(await catalog.list(request, { signal })).toHaveLength(1);
  });
});
