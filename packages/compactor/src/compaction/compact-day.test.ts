import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { refuseNewerVersion } from "@skald/model";
import { bytesRange, MemoryStore, type ObjectStore, openSegment } from "@skald/storage";
import { until } from "@skald/testkit";
import { Compactors, testBounds, threadsHere } from "../testing/compactors.js";
import { methodsOf } from "../testing/faulty-stores.js";
import {
  baseNs,
  listDay,
  putRows,
  readRows,
  rowTexts,
  type StoredRow,
  table,
} from "../testing/stored-rows.js";

const { signal } = new AbortController();
let compactors: Compactors;
let nowMs: number;
const clock = { nowMs: () => nowMs };
let store: MemoryStore;

beforeEach(() => {
  compactors = new Compactors();
  nowMs = 1_000_000;
  store = new MemoryStore(clock);
});
afterEach(() => compactors.close());

function rowsOf(from: number, count: number, app = "a"): StoredRow[] {
  return Array.from({ length: count }, (_, i) => ({ app, time: from + i, line: `line ${i}` }));
}

async function keysOf(of: ObjectStore): Promise<string[]> {
  return (await allKeys(of)).map((key) => key.slice(key.lastIndexOf("/") + 1));
}

async function allKeys(of: ObjectStore): Promise<string[]> {
  const keys: string[] = [];
  for await (const { key } of of.list("", { signal })) keys.push(key);
  return keys;
}

describe("compacting a day", () => {
  it("merges small segments, and what comes later with them", async () => {
    const first = [rowsOf(0, 10), rowsOf(5, 10), rowsOf(100, 5, "b")];
    for (const [i, rows] of first.entries()) await putRows(store, `s${i}`, rows);
    const days = await compactors.make(store, { clock });
    await days.run(table, { signal });
    expect((await listDay(store)).map(({ id }) => id)).toEqual([expect.stringMatching(/^merged-/)]);
    expect(await readRows(store)).toEqual(rowTexts(first.flat()));
    const later = rowsOf(50, 10);
    await putRows(store, "later", later);
    await days.run(table, { signal });
    expect(await listDay(store)).toHaveLength(1);
    expect(await readRows(store)).toEqual(rowTexts([...first.flat(), ...later]));
  });

  it("lists the rows of the texts that queries of the tenant ask for", async () => {
    for (const i of [0, 1]) await putRows(store, `s${i}`, rowsOf(i * 10, 10));
    const asked: string[] = [];
    const askedOf = async (tenant: string) => {
      asked.push(tenant);
      return { texts: ["line 3", "absent"], fields: new Map() };
    };
    const days = await compactors.make(store, { clock, askedOf });
    await days.run(table, { signal });
    expect(asked).toEqual([table.tenant]);
    const [{ id } = { id: "" }] = await listDay(store);
    const key = (await allKeys(store)).find((one) => one.includes(id))!;
    const segment = openSegment(bytesRange(key, await store.get(key, { signal })), {
      ...table,
      id,
    });
    expect(segment.facts(0)).toMatchObject({
      texts: [Buffer.from("line 3"), Buffer.from("absent")],
    });
    expect([0, 1].map((text) => segment.facts(0)?.rowsWith(text).count)).toEqual([2, 0]);
  });

  it.each([
    [0, undefined],
    [1, ["level"]],
  ])(
    "keeps fields of lines as columns, up to a share of %d of the lines",
    async (fieldShare, want) => {
      const lines = rowsOf(0, 2000).map((row) => ({ ...row, line: '{"level":"info"}' }));
      for (const i of [0, 1]) await putRows(store, `s${i}`, lines.slice(i * 1000, i * 1000 + 1000));
      const days = await compactors.make(store, { clock, fieldShare });
      await days.run(table, { signal });
      const [{ id } = { id: "" }] = await listDay(store);
      const key = (await allKeys(store)).find((one) => one.includes(id))!;
      const segment = openSegment(bytesRange(key, await store.get(key, { signal })), {
        ...table,
        id,
      });
      expect(segment.facts(0)?.fields?.names).toEqual(want);
    },
  );

  it("has nothing to do twice", async () => {
    for (const i of [0, 1]) await putRows(store, `s${i}`, rowsOf(i * 10, 10));
    const days = await compactors.make(store, { clock });
    await days.run(table, { signal });
    const before = await keysOf(store);
    await days.run(table, { signal });
    expect(await keysOf(store)).toEqual(before);
  });

  it("deletes what was replaced after the grace time, and old indexes", async () => {
    const rows = [rowsOf(0, 10), rowsOf(10, 10)];
    for (const [i, some] of rows.entries()) await putRows(store, `s${i}`, some);
    const days = await compactors.make(store, { clock });
    await days.run(table, { signal });
    nowMs += testBounds.graceMs - 1;
    await days.run(table, { signal });
    expect((await keysOf(store)).filter((key) => /-s\d/.test(key))).toHaveLength(2);
    nowMs += 2;
    await days.run(table, { signal });
    expect(await keysOf(store)).toEqual([
      expect.stringMatching(/-merged-/),
      "index-0000000002.day",
    ]);
    expect(await readRows(store)).toEqual(rowTexts(rows.flat()));
    nowMs += testBounds.rememberMs;
    await days.run(table, { signal });
    expect((await keysOf(store)).at(-1)).toBe("index-0000000003.day");
  });

  it("fetches what it merges, and deletes, several at a time", async () => {
    for (const i of [0, 1, 2, 3]) await putRows(store, `s${i}`, rowsOf(i * 10, 10));
    const all = methodsOf(store);
    let [fetches, deletes, most] = [0, 0, 0];
    let letAllGo = (): void => {};
    const allAreAsked = new Promise<void>((resolve) => {
      letAllGo = resolve;
    });
    let isIndexed = false;
    const days = await compactors.make(
      {
        ...all,
        put: (...args) => {
          isIndexed = true;
          return all.put(...args);
        },
        getRange: async (...args) => {
          if (isIndexed && ++fetches === 4) letAllGo();
          if (isIndexed) await allAreAsked;
          return all.getRange(...args);
        },
        delete: async (...args) => {
          most = Math.max(most, ++deletes);
          await all.delete(...args);
          deletes--;
        },
      },
      { clock },
    );
    await days.run(table, { signal });
    expect(fetches).toBe(4);
    nowMs += testBounds.graceMs + 1;
    await days.run(table, { signal });
    expect(await keysOf(store)).toHaveLength(2);
    expect(most).toBe(testBounds.deletesAtOnce);
  });

  it.each([1, 2])("merges groups of a day side by side, up to %d at a time", async (most) => {
    const rows = Array.from({ length: 8 }, (_, i) => rowsOf(i * 10, 10));
    for (const [i, some] of rows.entries()) await putRows(store, `s${i}`, some);
    let [running, atOnce, merges] = [0, 0, 0];
    const merge: typeof threadsHere.merge = async (...args) => {
      atOnce = Math.max(atOnce, ++running);
      // The first merges end together; without others beside it one waits in vain.
      if (++merges <= most) await until(() => merges >= most);
      const sealed = await threadsHere.merge(...args);
      running--;
      return sealed;
    };
    const bounds = { ...testBounds, mergesAtOnce: most };
    const days = await compactors.make(store, {
      clock,
      bounds,
      threads: { ...threadsHere, merge },
    });
    await days.run(table, { signal });
    expect([merges, atOnce]).toEqual([3, most]);
    expect(await listDay(store)).toHaveLength(1);
    expect(await readRows(store)).toEqual(rowTexts(rows.flat()));
  });

  it("begins no merge of a day that it has lost", async () => {
    for (let i = 0; i < 8; i++) await putRows(store, `s${i}`, rowsOf(i * 10, 10));
    let merges = 0;
    const merge: typeof threadsHere.merge = (...args) => {
      merges++;
      return threadsHere.merge(...args);
    };
    const bounds = { ...testBounds, mergesAtOnce: 1 };
    const days = await compactors.make(store, {
      clock,
      bounds,
      threads: { ...threadsHere, merge },
    });
    await days.run(table, { signal, isOwn: () => merges === 0 });
    expect(merges).toBe(1);
    expect(await listDay(store)).toHaveLength(5);
  });

  it("hides and deletes a replaced segment that is uploaded again", async () => {
    const rows = [rowsOf(0, 10), rowsOf(10, 10)];
    for (const [i, some] of rows.entries()) await putRows(store, `s${i}`, some);
    const days = await compactors.make(store, { clock });
    await days.run(table, { signal });
    nowMs += testBounds.graceMs;
    await days.run(table, { signal });
    await putRows(store, "s0", rowsOf(0, 10));
    expect(await readRows(store)).toEqual(rowTexts(rows.flat()));
    await days.run(table, { signal });
    expect((await keysOf(store)).filter((key) => /-s\d/.test(key))).toEqual([]);
  });

  it("leaves a damaged segment alone, and merges the others", async () => {
    const rows = [0, 1, 2, 3].map((i) => rowsOf(i * 10, 10));
    const keys: string[] = [];
    for (const [i, some] of rows.entries()) keys.push(await putRows(store, `s${i}`, some));
    const bytes = await store.get(keys[1]!, { signal });
    // In the page of the lines, then everywhere.
    await store.put(
      keys[1]!,
      bytes.map((byte, at) => (at > 4 && at < 200 ? byte ^ 1 : byte)),
      {
        signal,
      },
    );
    await store.put(
      keys[2]!,
      bytes.map(() => 0),
      { signal },
    );
    let damaged = 0;
    const days = await compactors.make(store, { clock, onDamaged: () => damaged++ });
    await days.run(table, { signal });
    const ids = (await listDay(store)).map(({ id }) => id).sort();
    expect(ids).toEqual([expect.stringMatching(/^merged-/), "s1", "s2"]);
    expect(damaged).toBe(2);
  });

  it("drops segments and rows as it is told", async () => {
    for (const i of [0, 1, 2]) await putRows(store, `s${i}`, rowsOf(i * 10, 10));
    const done: string[] = [];
    const rows = Uint32Array.from({ length: 9 }, (_, row) => row);
    const days = await compactors.make(store, {
      clock,
      rules: {
        changesOf: async () => ({
          drop: done.length > 0 ? [] : ["s0"],
          rewrite: new Map(
            done.length > 0 ? [] : [["s1", { blocks: Uint32Array.of(0), rows: [rows] }]],
          ),
        }),
        onDone: (_, ids) => done.push(...ids),
      },
    });
    await days.run(table, { signal });
    expect(done).toEqual(["s0", "s1"]);
    expect(await readRows(store)).toEqual(rowTexts([rowsOf(10, 10)[9]!, ...rowsOf(20, 10)]));
  });
});

describe("a day with a file of a newer version", () => {
  /** The file of a key that ends so, with a version that this program does not know. */
  async function raise(end: string): Promise<void> {
    for await (const { key } of store.list("", { signal })) {
      if (!key.endsWith(end)) continue;
      const bytes = Buffer.from(await store.get(key, { signal }));
      if (end.endsWith(".day")) bytes.writeUInt32LE(2, 8);
      else bytes.write("SKALDIX2", bytes.lastIndexOf("SKALDIX1"), "latin1");
      await store.put(key, bytes, { signal });
    }
  }

  async function contents(): Promise<[string, Uint8Array][]> {
    const found: [string, Uint8Array][] = [];
    for await (const { key } of store.list("", { signal }))
      found.push([key, Uint8Array.from(await store.get(key, { signal }))]);
    return found;
  }

  it.each([
    ["a young segment", "-s2.parquet"],
    ["its newest index", "-0000000002.day"],
  ])("is left as it is, also what is due to be deleted: %s", async (_, end) => {
    for (const i of [0, 1]) await putRows(store, `s${i}`, rowsOf(i * 10, 10));
    const days = await compactors.make(store, { clock });
    await days.run(table, { signal });
    await putRows(store, "s2", rowsOf(20, 10));
    await putRows(store, "s3", rowsOf(30, 10));
    await raise(end);
    nowMs += testBounds.graceMs * 2;
    const before = await contents();
    for (const one of [days, await compactors.make(store, { clock })]) {
      await expect(one.run(table, { signal })).rejects.toMatchObject({ code: "newer_version" });
      expect(await contents()).toEqual(before);
    }
  });

  it("is not rebuilt when a merged segment behind a damaged index is one", async () => {
    for (const i of [0, 1]) await putRows(store, `s${i}`, rowsOf(i * 10, 10));
    const days = await compactors.make(store, { clock });
    await days.run(table, { signal });
    const merged = (await keysOf(store)).find((key) => key.includes("merged-")) as string;
    await raise(merged);
    for await (const { key } of store.list("", { signal }))
      if (key.endsWith("2.day")) await store.put(key, new Uint8Array(30), { signal });
    const before = await contents();
    await expect(days.run(table, { signal })).rejects.toMatchObject({ code: "newer_version" });
    expect(await contents()).toEqual(before);
  });

  it("keeps a merged segment that is one, and merges nothing with it", async () => {
    for (const i of [0, 1]) await putRows(store, `s${i}`, rowsOf(i * 10, 10));
    const days = await compactors.make(store, { clock });
    await days.run(table, { signal });
    const merged = (await keysOf(store)).find((key) => key.includes("merged-")) as string;
    await raise(merged);
    await putRows(store, "s2", rowsOf(20, 10));
    await expect(days.run(table, { signal })).rejects.toMatchObject({ code: "newer_version" });
    const ids = (await listDay(store)).map(({ id }) => id);
    expect(ids).toEqual([merged.replace(/^\d+-\d+-|\.parquet$/g, ""), "s2"]);
    nowMs += testBounds.graceMs * 2;
    await expect(days.run(table, { signal })).rejects.toMatchObject({ code: "newer_version" });
    expect(await keysOf(store)).toContain(merged);
  });

  it("is not looked at while its tenant has rules that only a newer version knows", async () => {
    for (const i of [0, 1]) await putRows(store, `s${i}`, rowsOf(i * 10, 10));
    const before = await contents();
    const rules = {
      changesOf: async () => ({ drop: [], rewrite: new Map() }),
      refuseNewer: () => refuseNewerVersion("a request", { found: 2, known: 1 }),
    };
    const days = await compactors.make(store, { clock, rules });
    await expect(days.run(table, { signal })).rejects.toMatchObject({ code: "newer_version" });
    expect(await contents()).toEqual(before);
  });
});

describe("a day whose newest index is damaged", () => {
  const day = `tenant=t/date=${new Date(Number(baseNs / 1_000_000n)).toISOString().slice(0, 10)}/`;
  const indexKeys = async () => (await keysOf(store)).filter((key) => key.endsWith(".day"));
  const damage = async (keys: readonly string[]) => {
    for (const key of keys) await store.put(day + key, new Uint8Array(30), { signal });
  };
  const lists = [rowsOf(0, 10), rowsOf(5, 10), rowsOf(100, 5, "b"), rowsOf(50, 3)];

  it.each<[string, number, boolean, boolean]>([
    ["just after a merge", 0, false, false],
    ["after the inputs were deleted", testBounds.graceMs * 2, true, false],
    ["that has none before it", 0, false, true],
    ["that has none before it, after the inputs were deleted", testBounds.graceMs * 2, true, true],
  ])("%s is rebuilt", async (_, laterMs, isSwept, all) => {
    for (const [i, rows] of lists.slice(0, 3).entries()) await putRows(store, `s${i}`, rows);
    const days = await compactors.make(store, { clock });
    await days.run(table, { signal });
    await putRows(store, "later", lists[3]!);
    await days.run(table, { signal });
    const before = (await listDay(store)).map(({ id }) => id);
    nowMs += laterMs;
    // What an older index says is not known any more once it was deleted.
    if (isSwept) await days.run(table, { signal });
    const generations = await indexKeys();
    await damage(all ? generations : generations.slice(-1));
    const again = await compactors.make(store, { clock });
    await again.run(table, { signal });
    expect((await listDay(store)).map(({ id }) => id)).toEqual(before);
    expect(await readRows(store)).toEqual(rowTexts(lists.flat()));
    expect((await indexKeys()).at(-1)! > generations.at(-1)!).toBe(true);
    nowMs += testBounds.graceMs * 2;
    await again.run(table, { signal });
    nowMs += testBounds.graceMs * 2;
    await again.run(table, { signal });
    expect((await keysOf(store)).filter((key) => key.endsWith(".parquet"))).toHaveLength(1);
    expect(await readRows(store)).toEqual(rowTexts(lists.flat()));
  });

  it("is left alone when a merged segment cannot be read", async () => {
    for (const i of [0, 1]) await putRows(store, `s${i}`, rowsOf(i * 10, 10));
    const days = await compactors.make(store, { clock });
    await days.run(table, { signal });
    const merged = (await keysOf(store)).find((key) => key.includes("merged-"))!;
    await store.put(day + merged, new Uint8Array(100), { signal });
    await damage((await indexKeys()).slice(-1));
    const before = await keysOf(store);
    await expect(days.run(table, { signal })).rejects.toMatchObject({ code: "internal" });
    expect(await keysOf(store)).toEqual(before);
  });
});
