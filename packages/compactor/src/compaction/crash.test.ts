import { afterEach, beforeEach, expect, it } from "@jest/globals";
import { errorCodeOf } from "@skald/model";
import { MemoryStore } from "@skald/storage";
import { seededRandom, testRuns, testSeed } from "@skald/testkit";
import { Compactors, testBounds } from "../testing/compactors.js";
import { Killed, killedAt, loose, paused } from "../testing/faulty-stores.js";
import {
  listDay,
  putRows,
  readRows,
  rowTexts,
  type StoredRow,
  table,
} from "../testing/stored-rows.js";
import { OtherWasFirst } from "./compact-day.js";

const { signal } = new AbortController();
let compactors: Compactors;
let nowMs: number;
const clock = { nowMs: () => nowMs };

beforeEach(() => {
  compactors = new Compactors();
  nowMs = 1_000_000;
});
afterEach(() => compactors.close());

/** Segments that overlap, with rows that two of them have. */
async function fill(store: MemoryStore, from: number, count: number): Promise<StoredRow[]> {
  const all: StoredRow[] = [];
  for (let s = from; s < from + count; s++) {
    const rows = Array.from({ length: 6 }, (_, i) => ({
      app: i % 2 === 0 ? "a" : "b",
      time: s * 4 + i * 2,
      line: `line ${s * 4 + i * 2}`,
    }));
    await putRows(store, `s${s}`, rows);
    all.push(...rows);
  }
  return all;
}

const unique = (rows: readonly string[]) => [...new Set(rows)];

/** Every object is the newest index or one of the day's segments. */
async function expectNoOrphans(store: MemoryStore): Promise<void> {
  const live = (await listDay(store)).map(({ location }) =>
    location.kind === "object" ? location.key : "",
  );
  const keys: string[] = [];
  for await (const { key } of store.list("", { signal })) keys.push(key);
  expect(keys.filter((key) => !key.endsWith(".day")).sort()).toEqual(live.sort());
  expect(keys.filter((key) => key.endsWith(".day"))).toHaveLength(1);
}

it.each(["before", "after"] as const)("loses nothing when killed %s any step", async (moment) => {
  for (let step = 1; ; step++) {
    const store = new MemoryStore(clock);
    const rows = await fill(store, 0, 5);
    // A day that went through all of it once, so that there is something to delete too.
    await (await compactors.make(store, { clock })).run(table, { signal });
    rows.push(...(await fill(store, 5, 3)));
    nowMs += testBounds.graceMs + 1;
    const want = rowTexts(rows);
    const dying = await compactors.make(killedAt(store, step, moment), { clock });
    const end = await dying.run(table, { signal }).catch((error: unknown) => error);
    expect(unique(await readRows(store))).toEqual(want);
    for (let round = 0; round < 8; round++) {
      await (await compactors.make(store, { clock })).run(table, { signal });
      expect(await readRows(store)).toEqual(want);
      nowMs += testBounds.graceMs + 1;
    }
    await expectNoOrphans(store);
    if (end === undefined) {
      expect(step).toBeGreaterThan(10);
      return;
    }
    expect(end).toBeInstanceOf(Killed);
  }
});

it.each([
  ["a store with conditional puts", false],
  ["a store that only says so", true],
])("keeps every row when several work on a day of %s", async (_, isLoose) => {
  for (let run = 0; run < testRuns(3); run++) {
    const random = seededRandom(testSeed() * 4000 + run);
    const store = new MemoryStore(clock);
    const rows = await fill(store, 0, 3 + random(6));
    const want = rowTexts(rows);
    const shared = isLoose ? loose(store) : store;
    const work = async (): Promise<void> => {
      const days = await compactors.make(paused(shared, random), { clock });
      for (let round = 0; round < 3; round++) {
        await days.run(table, { signal }).catch((error: unknown) => {
          // Time passes while it merges, so that its inputs may be gone before it has read them.
          if (!(error instanceof OtherWasFirst) && errorCodeOf(error) !== "not_found") throw error;
        });
        nowMs += random(400);
      }
    };
    let isDone = false;
    const watch = async (): Promise<void> => {
      while (!isDone) {
        expect(unique(await readRows(paused(store, random)))).toEqual(want);
      }
    };
    const workers = Promise.all([work(), work(), work()]).finally(() => {
      isDone = true;
    });
    await Promise.all([workers, watch()]);
    for (let round = 0; round < 8; round++) {
      nowMs += testBounds.graceMs + 1;
      await (await compactors.make(store, { clock })).run(table, { signal });
    }
    expect(await readRows(store)).toEqual(want);
    await expectNoOrphans(store);
  }
});
