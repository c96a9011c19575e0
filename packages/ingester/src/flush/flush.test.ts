import { copyFile, readdir, rm, truncate, writeFile } from "node:fs/promises";
import { basename, dirname, join, relative } from "node:path";
import { describe, expect, it } from "@jest/globals";
import type { Sleep } from "@skald/runtime";
import { openHeadBlock } from "@skald/storage";
import { makeBatch } from "@skald/testkit";
import {
  copyFiles,
  everything,
  localRefs,
  newDir,
  readRows,
  readUnion,
  type Setup,
  type SetupOptions,
  sealHere,
  setUp,
  until,
} from "../testing/ingester.js";
import type { Seal } from "./sealer.js";

const base = 20_400n * 86_400_000_000_000n;
const minuteMs = 60_000;

async function started(options: SetupOptions = {}): Promise<Setup> {
  const setup = await setUp(options);
  await setup.ingester.start();
  return setup;
}

function pushLine(setup: Setup, ns: number, line = `line ${ns}`, tenant = "t") {
  const rows = [{ ns: base + BigInt(ns), line }];
  return setup.ingester.push({ tenant, batch: makeBatch([{ labels: { app: "a" }, rows }]) });
}

async function kinds({ ingester }: Setup, tenant = "t"): Promise<string[]> {
  const { sources } = await ingester.select({ ...everything, tenant });
  return sources.map(({ kind }) => kind).sort();
}

async function metric({ metrics }: Setup, name: string): Promise<number> {
  const { text } = await metrics.read();
  const values = text.split("\n").filter((line) => line.startsWith(`loki_ingester_${name}`));
  return values.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(" "))), 0);
}

/** A seal that waits until it is let go, or fails as often as told. */
function heldSeal() {
  const waiting: (() => void)[] = [];
  const state = { held: true, failures: 0, calls: 0 };
  const seal: Seal = async (job) => {
    state.calls++;
    if (state.failures > 0) {
      state.failures--;
      throw new Error("no space for a segment");
    }
    if (state.held) await new Promise<void>((resolve) => waiting.push(resolve));
    return sealHere(job);
  };
  const letGo = () => {
    state.held = false;
    for (const resolve of waiting.splice(0)) resolve();
  };
  return { seal, state, letGo };
}

describe("sealing", () => {
  it("seals a head that is full, under the id that queries know it by", async () => {
    const { seal, letGo } = heldSeal();
    const setup = await started({ seal, changes: { head_target_size: 20 } });
    await pushLine(setup, 1, "x".repeat(20));
    await pushLine(setup, 2, "next");
    const before = await setup.ingester.select({ ...everything, tenant: "t" });
    expect(before.sources.map(({ kind }) => kind)).toEqual(["head", "head"]);
    letGo();
    await until(async () => (await kinds(setup)).includes("segment"));
    const after = await setup.ingester.select({ ...everything, tenant: "t" });
    expect(after.sources.map(({ id }) => id).sort()).toEqual(
      before.sources.map(({ id }) => id).sort(),
    );
    expect(await readRows(setup.ingester, "t")).toHaveLength(2);
    expect(await metric(setup, 'chunks_flushed_total{reason="full"}')).toBe(1);
    await setup.ingester.stop();
  });

  it.each([
    ["idle", 31 * minuteMs, { chunk_idle_period: 30 * minuteMs }],
    ["max_age", 61 * minuteMs, { max_chunk_age: 60 * minuteMs, chunk_idle_period: 1e12 }],
  ])("seals a head by time: %s", async (reason, laterMs, changes) => {
    const setup = await started({ changes });
    await pushLine(setup, 1);
    await setup.ingester.sweep();
    expect(await kinds(setup)).toEqual(["head"]);
    setup.clock.ms += laterMs;
    await setup.ingester.sweep();
    await until(async () => (await kinds(setup)).includes("segment"));
    expect(await metric(setup, `chunks_flushed_total{reason="${reason}"}`)).toBe(1);
    expect(await metric(setup, "memory_streams")).toBe(1);
    await setup.ingester.sweep();
    expect(await metric(setup, "memory_streams")).toBe(reason === "idle" ? 0 : 1);
    await setup.ingester.stop();
  });

  it("seals the largest head when all take too much memory", async () => {
    const setup = await started({ changes: { max_head_memory: 100_000 } });
    await pushLine(setup, 1, "small", "other");
    await pushLine(setup, 1, "x".repeat(200_000));
    await until(async () => (await kinds(setup)).includes("segment"));
    expect(await kinds(setup, "other")).toEqual(["head"]);
    expect(await metric(setup, 'chunks_flushed_total{reason="memory"}')).toBe(1);
    await setup.ingester.stop();
  });

  it("writes the head of a quiet tenant that keeps much log again rather than seal it", async () => {
    const bounds = { maxWalFileBytes: 1000, maxPinnedWalBytes: 5000 };
    const changes = { head_target_size: 3000, bounds };
    const setup = await started({ changes });
    await pushLine(setup, 1, "quiet", "quiet");
    await pushLine(setup, 2, "quiet too", "quiet");
    for (let i = 0; i < 200; i++) {
      await pushLine(setup, i, "x".repeat(200));
      if (i === 100) await pushLine(setup, 3, "and later", "quiet");
    }
    await until(async () => (await metric(setup, "wal_disk_bytes")) < 12_000);
    expect(await kinds(setup, "quiet")).toEqual(["head"]);
    expect(await metric(setup, 'chunks_flushed_total{reason="wal"}')).toBe(0);
    expect(await metric(setup, "wal_forwarded_entries_total")).toBeGreaterThan(3);
    const rows = await readRows(setup.ingester, "quiet");
    expect(rows).toHaveLength(3);
    const dir = await newDir();
    await copyFiles(setup, dir);
    await setup.ingester.stop();
    const again = await started({ dir, store: setup.store, changes });
    expect(await readRows(again.ingester, "quiet")).toEqual(rows);
    expect(await kinds(again, "quiet")).toEqual(["head"]);
    await again.ingester.stop();
  });

  it("seals the head of a quiet tenant that keeps much log and is not small", async () => {
    const bounds = { maxWalFileBytes: 1000, maxPinnedWalBytes: 5000, maxForwardBytes: 100 };
    const setup = await started({ changes: { bounds } });
    await pushLine(setup, 1, "quiet", "quiet");
    for (let i = 0; i < 60; i++) await pushLine(setup, i, "x".repeat(200));
    await until(async () => (await kinds(setup, "quiet")).includes("segment"));
    expect(await metric(setup, 'chunks_flushed_total{reason="wal"}')).toBeGreaterThan(0);
    await setup.ingester.sweep();
    expect(await metric(setup, "wal_disk_bytes")).toBeLessThan(9000);
    await setup.ingester.stop();
  });

  it("makes pushes wait while too much is frozen", async () => {
    const { seal, letGo } = heldSeal();
    const setup = await started({
      seal,
      changes: { head_target_size: 10, bounds: { maxFrozenBytes: 1 } },
    });
    await pushLine(setup, 1, "0123456789");
    let done = false;
    const second = pushLine(setup, 2).then(() => {
      done = true;
    });
    for (let turn = 0; turn < 50; turn++) await new Promise((resolve) => setImmediate(resolve));
    expect(done).toBe(false);
    expect(await readRows(setup.ingester, "t")).toHaveLength(1);
    letGo();
    await second;
    expect(await readRows(setup.ingester, "t")).toHaveLength(2);
    await setup.ingester.stop();
  });

  it("lets only so much wait", async () => {
    const { seal, letGo } = heldSeal();
    const changes = { head_target_size: 10, bounds: { maxFrozenBytes: 1, maxWaitingBytes: 1000 } };
    const setup = await started({ seal, changes });
    await pushLine(setup, 1, "0123456789");
    const crowd = Promise.allSettled(Array.from({ length: 20 }, (_, i) => pushLine(setup, 10 + i)));
    await expect(pushLine(setup, 9)).rejects.toMatchObject({
      status: 429,
      message: "too many pushes wait to be stored; slow down",
    });
    letGo();
    const stored = (await crowd).filter(({ status }) => status === "fulfilled");
    expect(stored.length).toBeGreaterThan(1);
    expect(stored.length).toBeLessThan(19);
    expect(await readRows(setup.ingester, "t")).toHaveLength(1 + stored.length);
    await setup.ingester.stop();
  });

  it("lets no push wait for ever", async () => {
    const { seal, letGo } = heldSeal();
    let ring = (): void => undefined;
    const sleep: Sleep = (ms, signal) =>
      new Promise((resolve, reject) => {
        if (ms === 20_000) ring = resolve;
        signal?.addEventListener("abort", () => reject(signal.reason), { once: true });
      });
    const setup = await setUp({
      seal,
      sleep,
      changes: { head_target_size: 10, bounds: { maxFrozenBytes: 1 } },
    });
    await setup.ingester.start();
    await pushLine(setup, 1, "0123456789");
    const late = pushLine(setup, 2);
    ring();
    await expect(late).rejects.toMatchObject({
      code: "rate_limited",
      message: "the push has waited 20s to be stored; slow down",
    });
    letGo();
    await until(async () => (await kinds(setup)).includes("segment"));
    await pushLine(setup, 3);
    expect(await readRows(setup.ingester, "t")).toHaveLength(2);
    await setup.ingester.stop();
  });

  it("tries again until a segment is written, and loses nothing meanwhile", async () => {
    const { seal, state, letGo } = heldSeal();
    letGo();
    state.failures = 5;
    const sleep = () => new Promise<void>((resolve) => setImmediate(resolve));
    const setup = await setUp({ seal, sleep, changes: { head_target_size: 10 } });
    await setup.ingester.start();
    await setup.ingester.replayed;
    await pushLine(setup, 1, "0123456789");
    await until(async () => (await kinds(setup)).includes("segment"));
    expect(state.calls).toBe(6);
    expect(await metric(setup, "chunks_flush_failures_total")).toBe(5);
    expect(await readRows(setup.ingester, "t")).toHaveLength(1);
    await setup.ingester.stop();
  });

  it("leaves the memory of a head alone that a query has seen", async () => {
    const setup = await started({ changes: { head_target_size: 100_000 } });
    await pushLine(setup, 1, "seen");
    const { sources } = await setup.ingester.select({ ...everything, tenant: "t" });
    const [head] = await localRefs(setup.ingester, sources);
    if (head?.kind !== "head") throw new Error("not a head");
    await setup.ingester.flush();
    for (let i = 2; i < 20; i++) {
      await pushLine(setup, i, "over");
      await setup.ingester.flush();
    }
    const block = openHeadBlock(head.blocks[0]!);
    expect(Buffer.from(block.lines().bytes.slice(0, 4)).toString()).toBe("seen");
    await setup.ingester.stop();
  });

  it("uses the memory of other heads again", async () => {
    const setup = await started();
    for (let i = 0; i < 5; i++) {
      await pushLine(setup, i);
      await setup.ingester.flush();
      expect(await metric(setup, "head_memory_bytes")).toBe(0);
    }
    expect(await readRows(setup.ingester, "t")).toHaveLength(5);
    await setup.ingester.stop();
  });
});

describe("uploading", () => {
  it("uploads by age, and drops the local copy later", async () => {
    const setup = await started({
      changes: { chunk_idle_period: 6000, bounds: { localRetainMs: 5000 } },
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
      bounds: { localRetainMs: 5000 },
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
    const setup = await started({ changes: { bounds: { localRetainMs: 0 } } });
    const { ingester } = setup;
    const completeFrom = async () =>
      (await ingester.select({ ...everything, tenant: "t" })).completeFromNs as bigint;
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
