import { copyFile, readdir, rm, truncate, writeFile } from "node:fs/promises";
import { basename, dirname, extname, join, relative } from "node:path";
import { describe, expect, it } from "@jest/globals";
import type { SelectRequest } from "@skald/contracts";
import { makeBatch, until } from "@skald/testkit";
import { kinds, metric, minuteMs, pushLine, started } from "../testing/flush.js";
import {
  copyFiles,
  everything,
  newDir,
  readRows,
  readUnion,
  selectOnce,
} from "../testing/ingester.js";

describe("uploading", () => {
  it("uploads by age, and drops the local copy later", async () => {
    const setup = await started({
      changes: { chunk_idle_period: 6000, chunk_retain_period: 5000 },
    });
    const { ingester, clock, store } = setup;
    await pushLine(setup, 1);
    await ingester.flush({ tenant: "another tenant" });
    expect(store.objects.size).toBe(0);
    clock.ms += 31 * minuteMs;
    await ingester.sweep();
    await until(async () => (await kinds(setup)).includes("segment"));
    await ingester.sweep();
    expect(store.objects.size).toBe(0);
    clock.ms += 6000;
    await ingester.sweep();
    await until(() => store.objects.size === 1);
    expect(await kinds(setup)).toEqual(["segment"]);
    await until(async () => (await metric(setup, "chunks_stored_total")) === 1);
    await pushLine(setup, 2);
    clock.ms += 4999;
    await ingester.sweep();
    expect(await kinds(setup)).toEqual(["head", "segment"]);
    clock.ms += 1;
    await ingester.sweep();
    expect(await kinds(setup)).toEqual(["head"]);
    expect(await readUnion(setup, "t")).toHaveLength(2);
    await ingester.stop();
  });

  it("drops a local copy although queries are never pausing", async () => {
    const setup = await started({ changes: { chunk_idle_period: 0, chunk_retain_period: 5000 } });
    const { ingester, clock } = setup;
    const request = { ...everything, tenant: "t" };
    const idsOf = async (changes: Partial<SelectRequest> = {}) => {
      const { view = "", sources } = await ingester.select({ ...request, ...changes });
      return { view, ids: sources.map(({ id }) => id) };
    };
    await pushLine(setup, 1);
    await ingester.flush();
    const first = await idsOf();
    clock.ms += 5000;
    await ingester.sweep();
    // The first query still reads the local copy. Later ones read the store.
    const [second, again] = [await idsOf(), await selectOnce(ingester, request)];
    expect([first.ids.length, second.ids, again.storedAgoMs]).toEqual([1, [], 5000]);
    expect(await readUnion(setup, "t")).toHaveLength(1);
    expect((await idsOf({ withLeaving: true })).ids).toEqual(first.ids);
    await ingester.release(first.view);
    await ingester.sweep();
    expect((await idsOf({ withLeaving: true })).ids).toEqual([]);
    await ingester.stop();
  });

  it("tells those who list the store of what it dropped before listings are sure to have it", async () => {
    const setup = await started({ changes: { chunk_idle_period: 0, chunk_retain_period: 5000 } });
    const { ingester, clock } = setup;
    const told = async (tenant = "t") =>
      (await selectOnce(ingester, { ...everything, tenant })).storedAgoMs;
    clock.ms += 2 * minuteMs;
    await pushLine(setup, 1);
    await ingester.flush();
    const minNs = ingester.oldestNs();
    expect(await told()).toBeUndefined();
    clock.ms += 5000;
    await ingester.sweep();
    expect(await kinds(setup)).toEqual([]);
    expect([await told(), await told("another"), ingester.oldestNs()]).toEqual([
      5000,
      undefined,
      minNs,
    ]);
    clock.ms += minuteMs;
    expect([await told(), ingester.oldestNs()]).toEqual([undefined, undefined]);
    await ingester.stop();
  });

  it("uploads the oldest beyond the size for local segments", async () => {
    const setup = await started({ changes: { bounds: { maxLocalBytes: 1 } } });
    await pushLine(setup, 1);
    setup.clock.ms += 31 * minuteMs;
    await setup.ingester.sweep();
    await until(async () => (await kinds(setup)).includes("segment"));
    await setup.ingester.sweep();
    await until(() => setup.store.objects.size === 1);
    await setup.ingester.stop();
  });

  it("starts the next one that is due when one ends", async () => {
    const changes = { head_target_size: 1, concurrent_flushes: 2, bounds: { maxLocalBytes: 1 } };
    const setup = await started({ changes });
    for (let i = 0; i < 9; i++) await pushLine(setup, i, `line ${i}`, `tenant ${i}`);
    await until(async () => (await metric(setup, "flush_queue_length")) === 0);
    await setup.ingester.sweep();
    await until(() => setup.store.objects.size === 9);
    await setup.ingester.stop();
  });

  it("leaves a store alone that is down until the next look", async () => {
    const changes = { head_target_size: 1, concurrent_flushes: 2, bounds: { maxLocalBytes: 1 } };
    const setup = await started({ changes });
    setup.store.isDown = true;
    for (let i = 0; i < 9; i++) await pushLine(setup, i, `line ${i}`, `tenant ${i}`);
    await until(async () => (await metric(setup, "flush_queue_length")) === 0);
    await setup.ingester.sweep();
    await until(async () => (await metric(setup, "chunks_flush_failures_total")) === 2);
    for (let turn = 0; turn < 50; turn++) await new Promise((resolve) => setImmediate(resolve));
    expect(await metric(setup, "chunks_flush_failures_total")).toBe(2);
    await setup.ingester.stop();
  });

  it("tries again for ever, later and later", async () => {
    const flush_op_backoff = { min_period: 1000, max_period: 3000, max_retries: 10 };
    const changes = { flush_op_backoff, chunk_idle_period: 0 };
    const setup = await started({ changes });
    const { ingester, clock, store } = setup;
    store.isDown = true;
    await pushLine(setup, 1);
    await expect(ingester.flush()).rejects.toMatchObject({ code: "unavailable" });
    for (const [pauseMs, failures] of [
      [999, 1],
      [1, 2],
      [1999, 2],
      [1, 3],
      [3000, 4],
    ] as const) {
      clock.ms += pauseMs;
      await ingester.sweep();
      await until(async () => (await metric(setup, "chunks_flush_failures_total")) === failures);
    }
    expect(await readRows(ingester, "t")).toHaveLength(1);
    store.isDown = false;
    clock.ms += 3000;
    await ingester.sweep();
    await until(() => store.objects.size === 1);
    await ingester.stop();
  });

  it("counts ages and pauses by what passes, also when the time of day is set back", async () => {
    const changes = {
      chunk_idle_period: 1000,
      flush_op_backoff: { min_period: 1000, max_period: 1000, max_retries: 10 },
      chunk_retain_period: 5000,
    };
    const setup = await started({ changes });
    const { ingester, clock, store } = setup;
    await pushLine(setup, 1);
    const failures = () => metric(setup, "chunks_flush_failures_total");
    for (const [what, ms, isDone] of [
      ["sealed", 1000, async () => (await kinds(setup)).includes("segment")],
      ["uploaded", 5000, async () => (await failures()) === 1],
      ["uploaded again", 1000, async () => (await metric(setup, "chunks_stored_total")) === 1],
      ["dropped", 5000, async () => (await kinds(setup)).length === 0],
    ] as const) {
      store.isDown = what === "uploaded";
      clock.setBackMs += 3_600_000;
      clock.ms += ms;
      await ingester.sweep();
      await until(isDone);
    }
    await ingester.stop();
  });

  it("says from when on it has all rows", async () => {
    const setup = await started({ changes: { chunk_retain_period: 0 } });
    const { ingester } = setup;
    const completeFrom = async () =>
      (await selectOnce(ingester, { ...everything, tenant: "t" })).completeFromNs as bigint;
    const before = await completeFrom();
    const late = before + 3_600_000_000_000n;
    const rows = [{ ns: late, line: "late" }];
    await ingester.push({ tenant: "t", batch: makeBatch([{ labels: { app: "a" }, rows }]) });
    expect(await completeFrom()).toBe(before);
    await ingester.flush();
    await ingester.sweep();
    await until(async () => (await kinds(setup)).length === 0);
    expect(await completeFrom()).toBe(late + 1n);
    await ingester.stop();
    const again = await started({ dir: setup.dir, store: setup.store });
    expect(
      (await again.ingester.select({ ...everything, tenant: "t" })).completeFromNs,
    ).toBeGreaterThan(0n);
    await again.ingester.stop();
  });

  it("does not upload again what was merged and deleted in the store", async () => {
    const setup = await started();
    await pushLine(setup, 1);
    await setup.ingester.flush();
    await setup.ingester.stop();
    setup.store.objects.clear();
    const again = await started({ dir: setup.dir, store: setup.store });
    await again.ingester.flush();
    expect(setup.store.puts).toBe(1);
    await again.ingester.stop();
  });

  it("stores again what may be there from a put that did not end", async () => {
    const setup = await started();
    await pushLine(setup, 1);
    await setup.ingester.flush();
    await setup.ingester.stop();
    const [marker] = (await readdir(setup.dir, { recursive: true })).filter((name) =>
      name.endsWith(".uploaded"),
    );
    await rm(join(setup.dir, marker as string));
    const again = await started({ dir: setup.dir, store: setup.store });
    await again.ingester.flush();
    expect(setup.store.puts).toBe(2);
    expect(await readUnion(again, "t")).toHaveLength(1);
    await again.ingester.stop();
  });
});

describe("local segments", () => {
  async function sealedFile() {
    const setup = await started({
      changes: { head_target_size: 1, bounds: { maxWalFileBytes: 1 } },
    });
    await pushLine(setup, 1, "kept", "täst/../.");
    await until(async () => (await kinds(setup, "täst/../.")).includes("segment"));
    const { sources } = await setup.ingester.select({ ...everything, tenant: "täst/../." });
    const source = sources[0];
    if (source?.kind !== "segment" || source.location.kind !== "file") throw new Error("no file");
    return { setup, path: source.location.path };
  }

  it("are set aside when they are corrupt, and written again from the log", async () => {
    const { setup, path } = await sealedFile();
    const dir = await newDir();
    await copyFiles(setup, dir);
    await setup.ingester.stop();
    await truncate(join(dir, relative(setup.dir, path)), 100);
    const again = await started({ dir, store: setup.store });
    expect(await metric(again, "corrupt_segments_total")).toBe(1);
    expect(await kinds(again, "täst/../.")).toEqual(["head"]);
    expect(await readRows(again.ingester, "täst/../.")).toHaveLength(1);
    const aside = await readdir(join(dir, "quarantine"), { recursive: true });
    expect(aside.filter((name) => name.endsWith(".parquet"))).toHaveLength(1);
    await again.ingester.stop();
  });

  it("are not those of another tenant, and not unfinished files", async () => {
    const { setup, path } = await sealedFile();
    await setup.ingester.stop();
    await copyFile(path, join(dirname(path), "..", "stray.parquet"));
    await writeFile(`${path}.tmp`, "unfinished");
    const foreign = ["notes.txt", "note.tmp", "backup.tar"];
    for (const name of foreign) await writeFile(join(dirname(path), name), "of somebody else");
    const again = await started({ dir: setup.dir, store: setup.store });
    expect(await kinds(again, "täst/../.")).toEqual(["segment"]);
    expect(await metric(again, "corrupt_segments_total")).toBe(1);
    const files = await readdir(join(setup.dir, "segments"), { recursive: true });
    const names = files.map((name) => basename(name));
    expect(names).toEqual(expect.arrayContaining(foreign));
    expect(names.filter((name) => name.endsWith(".parquet.tmp"))).toEqual([]);
    await again.ingester.stop();
  });

  it("leave no marker behind when a process ended between dropping a segment and its marker", async () => {
    const setup = await started();
    await pushLine(setup, 1);
    await setup.ingester.flush();
    await setup.ingester.stop();
    const dir = join(setup.dir, "segments");
    const endings = async () =>
      (await readdir(dir, { recursive: true })).map((name) => extname(name)).sort();
    expect(await endings()).toEqual(["", ".marked", ".parquet", ".uploaded"]);
    const names = await readdir(dir, { recursive: true });
    await rm(join(dir, names.find((name) => name.endsWith(".parquet")) as string));
    const again = await started({ dir: setup.dir, store: setup.store });
    expect(await endings()).toEqual(["", ".marked"]);
    expect(setup.store.puts).toBe(1);
    await again.ingester.stop();
  });

  it("take a tenant with a long name", async () => {
    const tenant = "ä".repeat(150);
    const setup = await started({ changes: { head_target_size: 1 } });
    await pushLine(setup, 1, "long", tenant);
    await until(async () => (await kinds(setup, tenant)).includes("segment"));
    await setup.ingester.stop();
    const again = await started({ dir: setup.dir, store: setup.store });
    expect(await readRows(again.ingester, tenant)).toHaveLength(1);
    await again.ingester.stop();
  });
});
