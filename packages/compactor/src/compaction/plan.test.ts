import { describe, expect, it } from "@jest/globals";
import { dayNs } from "@skald/model";
import { type IndexedSegment, inOrderOfArrival, MemoryStore, mergedId } from "@skald/storage";
import { seededRandom, testSeed } from "@skald/testkit";
import { listTables } from "./day-state.js";
import { planBounds, planMerges, planSweep } from "./plan.js";

const mib = 1024 * 1024;
const { signal } = new AbortController();

function segments(...lineMib: number[]): IndexedSegment[] {
  return lineMib.map((size, i) => ({
    ...{ id: `s${i}`, minNs: BigInt(i), maxNs: BigInt(i + 1), sizeBytes: 1, rows: 1, level: 0 },
    lineBytes: size * mib,
  }));
}

const names = (groups: readonly (readonly IndexedSegment[])[]) =>
  groups.map((group) => group.map(({ id }) => id).join(" "));
const eight = new Array<number>(8).fill(1);

describe("what is merged", () => {
  it.each([
    ["nothing of nothing", [], false, []],
    ["few of a size wait for more", [1, 1, 1], false, []],
    ["eight of a size are merged", eight, false, ["s0 s1 s2 s3 s4 s5 s6 s7"]],
    ["not with one of another size", [100, ...eight], false, ["s1 s2 s3 s4 s5 s6 s7 s8"]],
    ["a settled day is merged for good", [1, 300, 1], true, []],
    ["where that is worth it", [200, 300, 1], true, ["s0 s1 s2"]],
    ["large ones stay", [600, 900, 1], true, []],
    ["in groups of the target size", [500, 400, 400, 500], true, ["s0 s1", "s2 s3"]],
  ])("%s", (_, sizes, isSettled, want) => {
    expect(names(planMerges(segments(...sizes), isSettled))).toEqual(want);
  });

  it("takes along what arrived between two that it has times in common with", () => {
    const made = (number: number, from: number, to: number, size = 1) => ({
      ...segments(size)[0]!,
      id: `i-${(1e12 + number).toString(36)}-0123abcd-0`,
      minNs: BigInt(from),
      maxNs: BigInt(to),
    });
    const bounds = { ...planBounds, minInputs: 2 };
    const a = made(1, 0, 10);
    const b = made(3, 20, 30);
    // Of another size, and so large that only the end of the group is left.
    const [between, apart, huge] = [
      made(2, 10, 20, 100),
      made(2, 11, 19, 100),
      made(2, 10, 20, 1024),
    ];
    expect(planMerges([a, b, between], false, bounds)).toEqual([[a, between, b]]);
    expect(planMerges([a, b, apart], false, bounds)).toEqual([[a, b]]);
    expect(planMerges([a, b, huge], false, bounds)).toEqual([]);
    expect(planMerges([b, a], false, bounds)).toEqual([[a, b]]);
  });

  it("never changes which of two that have times in common arrived first", () => {
    const random = seededRandom(testSeed());
    let [written, put] = [0, 0];
    // What was put, by number, in each segment of the day.
    let day: (IndexedSegment & { readonly parts: readonly number[] })[] = [];
    const spans: (readonly [bigint, bigint])[] = [];
    for (let i = 0; i < 600; i++) {
      const from = BigInt(10 * i + random(30));
      const span = [from, from + BigInt(random(40))] as const;
      const lineBytes = 2 ** random(27);
      spans.push(span);
      put += lineBytes;
      const id = `i-${(1e12 + i).toString(36)}-0123abcd-0`;
      const [minNs, maxNs] = span;
      day.push({ ...segments(1)[0]!, id, minNs, maxNs, lineBytes, parts: [i] });
      for (const group of planMerges(day, false) as (typeof day)[]) {
        const parts = group.flatMap((one) => one.parts);
        written += group.reduce((all, one) => all + one.lineBytes, 0);
        day = day.filter((one) => !group.includes(one));
        day.push({
          ...group[0]!,
          id: mergedId(group[0]!, "0".repeat(32)),
          minNs: group.reduce((least, one) => (one.minNs < least ? one.minNs : least), minNs),
          maxNs: group.reduce((most, one) => (one.maxNs > most ? one.maxNs : most), maxNs),
          lineBytes: group.reduce((all, one) => all + one.lineBytes, 0),
          parts,
        });
      }
    }
    const order = inOrderOfArrival(day).flatMap(({ parts }) => parts);
    expect(order).toHaveLength(spans.length);
    const wrong = order.filter((one, at) =>
      order
        .slice(at + 1)
        .some(
          (later) =>
            later < one && spans[later]![0] <= spans[one]![1] && spans[one]![0] <= spans[later]![1],
        ),
    );
    expect(wrong).toEqual([]);
    expect(written / put).toBeLessThan(8);
  });

  it("writes each row a few times however many segments a day has", () => {
    const random = seededRandom(testSeed());
    let day: IndexedSegment[] = [];
    let written = 0;
    let put = 0;
    for (let i = 0; i < 3000; i++) {
      const lineBytes = 20_000 + random(3_000_000);
      put += lineBytes;
      day.push({ ...segments(1)[0]!, id: `s${i}`, minNs: BigInt(i), lineBytes });
      for (const group of planMerges(day, false)) {
        const sum = group.reduce((all, one) => all + one.lineBytes, 0);
        expect(sum).toBeLessThanOrEqual(planBounds.targetBytes);
        written += sum;
        day = day.filter((one) => !group.includes(one));
        day.push({ ...group[0]!, id: `m${written}`, lineBytes: sum });
      }
    }
    expect(written / put).toBeLessThan(5);
    expect(day.length).toBeLessThan(40);
  });
});

describe("what is cleared", () => {
  const bounds = { graceMs: 100, rememberMs: 1000 };
  const key = (name: string) => `tenant=t/date=1970-01-01/${name}`;
  const object = (name: string, modifiedMs: number) => ({
    key: key(name),
    sizeBytes: 1,
    modifiedMs,
  });
  const times = "000000000000001-000000000000002";
  const gone = (id: string, sinceMs: number) => ({
    id,
    minNs: 1n,
    maxNs: 2n,
    sinceMs,
    by: undefined,
  });
  const index = {
    ...{ tenant: "t", gone: [gone("old", 0), gone("new", 950), gone("away", -200)] },
    knows: (id: string) => ["old", "new", "away", "merged-live"].includes(id),
  };

  it("is what the index says for long enough, and old indexes", () => {
    const sweep = planSweep(
      index,
      [
        ...["old", "new", "young", "merged-live"].map((id) => object(`${times}-${id}.parquet`, 0)),
        object(`${times}-merged-lost.parquet`, 0),
        object(`${times}-merged-now.parquet`, 990),
        ...[1, 2, 3].map((n) => object(`index-000000000${n}.day`, n * 400)),
      ],
      1000,
      bounds,
    );
    expect(sweep.deletes).toEqual([key("index-0000000001.day"), key(`${times}-old.parquet`)]);
    expect(sweep.orphans).toEqual([gone("merged-lost", 1000)]);
    expect(sweep.forget).toEqual(["away"]);
  });
});

it("finds the days of all tenants, and leaves the newest alone when told to", async () => {
  const store = new MemoryStore();
  const long = "x".repeat(450);
  for (const key of ["tenant=a/date=1970-01-01/x", "tenant=a/date=1970-01-03/x", "other/x"])
    await store.put(key, new Uint8Array(1), { signal });
  const parts = `tenant=${"x".repeat(200)}~/${"x".repeat(200)}~/${"x".repeat(50)}`;
  await store.put(`${parts}/date=1970-01-02/x`, new Uint8Array(1), { signal });
  const daysOf = async (skipNewest: number, most: number) =>
    (await listTables(store, { skipNewest, most }, signal)).map(
      ({ tenant, baseNs }) => `${tenant} ${baseNs / dayNs}`,
    );
  expect(await daysOf(0, 0)).toEqual(["a 2", `${long} 1`, "a 0"]);
  expect(await daysOf(1, 1)).toEqual([`${long} 1`]);
});
