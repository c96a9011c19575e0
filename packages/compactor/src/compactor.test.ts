import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, it } from "@jest/globals";
import { silentLogger } from "@skald/runtime/log";
import { Metrics } from "@skald/runtime/metrics";
import { MemoryStore, type ObjectStore } from "@skald/storage";
import { Compactor, type CompactorDeps } from "./compactor.js";
import { testBounds, threadsHere } from "./testing/compactors.js";
import { methodsOf } from "./testing/faulty-stores.js";
import { listDay, putRows, readRows, rowTexts } from "./testing/stored-rows.js";

const directory = mkdtempSync(join(tmpdir(), "skald-compactor-"));
afterEach(() => rmSync(directory, { recursive: true, force: true }));

const { signal } = new AbortController();

function compactorOf(
  store: ObjectStore,
  metrics: Metrics,
  deps: Partial<CompactorDeps> = {},
): Compactor {
  const config = {
    ...{ compaction_interval: 1, max_compaction_parallelism: 2, retention_delete_delay: 1000 },
    ...{ skip_latest_n_tables: 0, tables_to_compact: 0, working_directory: directory },
    retention_enabled: true,
  } as CompactorDeps["config"];
  return new Compactor({
    ...{ config, store, metrics, threads: threadsHere, bounds: testBounds },
    locate: (key) => ({ kind: "object", key }),
    clock: { nowMs: () => 1_000_000 },
    log: silentLogger(),
    ...deps,
  });
}

it("merges by itself until it is stopped, and counts", async () => {
  const store = new MemoryStore({ nowMs: () => 1_000_000 });
  const rows = [1, 2, 3].map((time) => ({ app: "a", time, line: `${time}` }));
  for (const [i, row] of rows.entries()) await putRows(store, `s${i}`, [row]);
  const metrics = new Metrics();
  let merged = (): void => {};
  const isMerged = new Promise<void>((resolve) => {
    merged = resolve;
  });
  const compactor = compactorOf(
    {
      ...methodsOf(store),
      put: async (...args) => {
        const outcome = await store.put(...args);
        if (args[0].endsWith("2.day")) merged();
        return outcome;
      },
    },
    metrics,
  );
  compactor.start();
  await isMerged;
  await compactor.stop();
  expect(await listDay(store)).toHaveLength(1);
  expect(await readRows(store)).toEqual(rowTexts(rows));
});

it("works on its own days, and on those of another once they are its own", async () => {
  const store = new MemoryStore({ nowMs: () => 1_000_000 });
  for (const id of ["s0", "s1"]) await putRows(store, id, [{ app: "a", time: 1, line: id }]);
  let owner = "one";
  const metrics = { one: new Metrics(), two: new Metrics() };
  const compactors = (["one", "two"] as const).map((name) =>
    compactorOf(store, metrics[name], { owns: () => name === owner }),
  );
  const mergesOf = async (name: "one" | "two") => {
    const { text } = await metrics[name].read();
    return Number(/compactor_merges_total (\d+)/.exec(text)?.[1]);
  };
  for (const compactor of compactors) await compactor.runOnce();
  expect([await mergesOf("one"), await mergesOf("two")]).toEqual([1, 0]);
  owner = "two";
  for (const id of ["s2", "s3"]) await putRows(store, id, [{ app: "a", time: 2, line: id }]);
  for (const compactor of compactors) await compactor.runOnce();
  expect(await mergesOf("one")).toBe(1);
  expect(await mergesOf("two")).toBeGreaterThan(0);
  expect(await readRows(store)).toHaveLength(4);
});

it("looks at once at a day whose index is damaged, also while it works on it", async () => {
  const store = new MemoryStore({ nowMs: () => 1_000_000 });
  const rows = [1, 2, 3].map((time) => ({ app: "a", time, line: `${time}` }));
  for (const [i, row] of rows.entries()) await putRows(store, `s${i}`, [row]);
  const compactor = compactorOf(store, new Metrics());
  await compactor.runOnce();
  const keys: string[] = [];
  for await (const { key } of store.list("", { signal })) keys.push(key);
  const newest = keys.filter((key) => key.endsWith(".day")).at(-1) as string;
  for (const key of keys.filter((one) => one.endsWith(".day"))) {
    await store.put(key, new Uint8Array(40), { signal });
  }
  await expect(listDay(store)).rejects.toThrow("is damaged");
  await Promise.all([compactor.repair(newest), compactor.repair(newest), compactor.repair("x")]);
  expect(await readRows(store)).toEqual(rowTexts(rows));
});

it("tells of days that fail, and goes on with others", async () => {
  const store = new MemoryStore({ nowMs: () => 1_000_000 });
  await putRows(store, "s0", [{ app: "a", time: 1, line: "x" }]);
  const metrics = new Metrics();
  const broken = {
    ...methodsOf(store),
    put: () => Promise.reject(new Error("disk full")),
  };
  const compactor = compactorOf(broken, metrics);
  await compactor.runOnce();
  const { text } = await metrics.read();
  expect(text).toContain('compact_tables_operation_total{status="failure"} 1');
  expect(text).toContain('loki_compactor_apply_retention_operation_total{status="failure"} 1');
});
