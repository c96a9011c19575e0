import { describe, expect, it } from "@jest/globals";
import { dayNs, type SegmentRef } from "@skald/model";
import { dayIndexKey, segmentKey } from "../object-store/keys.js";
import { MemoryStore } from "../object-store/memory-store.js";
import { DayEdit } from "./day-edit.js";
import type { IndexedSegment } from "./day-index.js";
import { SegmentCatalog } from "./segment-catalog.js";

const { signal } = new AbortController();
const baseNs = 20_777n * dayNs;
const tenant = "t";
const range = { tenant, fromNs: baseNs, toNs: baseNs + dayNs };
const streams = { a: ['{app="a"}'], b: ['{app="b"}'], ab: ['{app="a"}', '{app="b"}'] };

function segment(id: string, hour: number, level = 0): IndexedSegment {
  const minNs = baseNs + BigInt(hour) * 3_600_000_000_000n;
  return { id, minNs, maxNs: minNs + 1000n, sizeBytes: 3, rows: 1, lineBytes: 1, level };
}

async function put(store: MemoryStore, { id, minNs, maxNs }: IndexedSegment): Promise<void> {
  await store.put(segmentKey({ tenant, id, minNs, maxNs }), new Uint8Array(3), { signal });
}

async function putIndex(store: MemoryStore, edit: DayEdit | Uint8Array, generation: number) {
  const bytes = edit instanceof DayEdit ? edit.encode({ generation, writtenMs: 1 }) : edit;
  await store.put(dayIndexKey({ tenant, baseNs, generation }), bytes, { signal });
}

function catalogOf(store: Pick<MemoryStore, "list" | "get">, told: string[] = []) {
  return new SegmentCatalog({
    store,
    locate: (key) => ({ kind: "object", key }),
    clock: { elapsedMs: () => 0 },
    onCorruptIndex: (_, key) => told.push(key),
  });
}

const idsOf = (refs: readonly SegmentRef[]) => refs.map(({ id }) => id).sort();

/** One, two and a young one; then one and two are merged. */
async function mergedDay() {
  const store = new MemoryStore();
  const first = new DayEdit({ tenant, baseNs });
  for (const one of [segment("one", 1), segment("two", 2), segment("young", 3)]) {
    await put(store, one);
  }
  first.add(segment("one", 1), streams.a);
  first.add(segment("two", 2), streams.b);
  await putIndex(store, first, 1);
  const merged = { ...segment("merged-x", 1, 1), maxNs: segment("two", 2).maxNs };
  const second = new DayEdit({ tenant, baseNs });
  second.add(merged, streams.ab);
  for (const id of ["one", "two"])
    second.remove({ ...segment(id, id === "one" ? 1 : 2), sinceMs: 1, by: "merged-x" });
  return { store, merged, second };
}

describe("a catalog with a day index", () => {
  it("tells old or new, and never both", async () => {
    const { store, merged, second } = await mergedDay();
    expect(idsOf(await catalogOf(store).list(range, { signal }))).toEqual(["one", "two", "young"]);
    await put(store, merged);
    expect(idsOf(await catalogOf(store).list(range, { signal }))).toEqual(["one", "two", "young"]);
    await putIndex(store, second, 2);
    expect(idsOf(await catalogOf(store).list(range, { signal }))).toEqual(["merged-x", "young"]);
  });

  it("leaves out segments without a stream of the query, as far as it knows", async () => {
    const { store } = await mergedDay();
    const matchers = [{ name: "app", op: "=", value: "b" } as const];
    const found = await catalogOf(store).list({ ...range, matchers }, { signal });
    expect(idsOf(found)).toEqual(["two", "young"]);
  });

  it("tells which segments that the asker has were replaced", async () => {
    const { store, merged, second } = await mergedDay();
    await put(store, merged);
    await putIndex(store, second, 2);
    const found = await catalogOf(store).list({ ...range, held: ["one", "young"] }, { signal });
    expect(found.find(({ id }) => id === "merged-x")?.replaces).toEqual(["one"]);
    expect(found.find(({ id }) => id === "young")?.replaces).toBeUndefined();
  });

  it("uses the generation before a damaged one, and tells", async () => {
    const { store } = await mergedDay();
    await putIndex(store, new Uint8Array(40), 2);
    const told: string[] = [];
    const found = await catalogOf(store, told).list(range, { signal });
    expect(idsOf(found)).toEqual(["one", "two", "young"]);
    expect(told).toEqual([dayIndexKey({ tenant, baseNs, generation: 2 })]);
  });

  it("is not answered by an older index that counts a segment which is deleted", async () => {
    const { store } = await mergedDay();
    await putIndex(store, new Uint8Array(40), 2);
    await store.delete(segmentKey({ tenant, ...segment("one", 1) }), { signal });
    const listing = catalogOf(store).list(range, { signal });
    await expect(listing).rejects.toMatchObject({ code: "unavailable" });
  });

  it("also tells stored segments that do not count, when it is asked for them", async () => {
    const { store, merged, second } = await mergedDay();
    await put(store, merged);
    await put(store, segment("merged-rest", 5));
    await putIndex(store, second, 2);
    const list = async (hours: number) => {
      const asked = { ...range, toNs: segment("", hours).minNs, withUncounted: true };
      return idsOf(await catalogOf(store).list(asked, { signal }));
    };
    expect(await list(2)).toEqual(["merged-x", "one"]);
    expect(await list(24)).toEqual(["merged-rest", "merged-x", "one", "two", "young"]);
  });

  it("is not answered where every index is damaged: what is replaced is not known", async () => {
    const { store } = await mergedDay();
    await putIndex(store, new Uint8Array(40), 1);
    const listing = catalogOf(store).list(range, { signal });
    await expect(listing).rejects.toMatchObject({
      code: "unavailable",
      message: expect.stringMatching(
        /^the index of tenant=.*\/ is damaged; compaction writes it anew$/,
      ),
    });
  });

  it("lists anew when an index is deleted while it reads", async () => {
    const { store, merged, second } = await mergedDay();
    await put(store, merged);
    let reads = 0;
    const racing: Pick<MemoryStore, "list" | "get"> = {
      list: (prefix, options) => store.list(prefix, options),
      get: async (key, options) => {
        if (reads++ > 0) return store.get(key, options);
        await putIndex(store, second, 2);
        await store.delete(key, options);
        return store.get(key, options);
      },
    };
    expect(idsOf(await catalogOf(racing).list(range, { signal }))).toEqual(["merged-x", "young"]);
  });
});
