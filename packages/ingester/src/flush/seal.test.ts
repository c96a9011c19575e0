import { describe, expect, it } from "@jest/globals";
import type { Sleep } from "@skald/runtime";
import { openHeadBlock } from "@skald/storage";
import { until } from "@skald/testkit";
import { heldSeal, kinds, metric, minuteMs, pushLine, started } from "../testing/flush.js";
import {
  copyFiles,
  everything,
  localRefs,
  newDir,
  readRows,
  setUp,
  untilAborted,
} from "../testing/ingester.js";

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
    // Each push waits for a sync: heads whose rows are written again too late are sealed.
    const changes = { head_target_size: 3000, bounds, wal: { fsync: "always" } } as const;
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
    await until(async () => {
      await setup.ingester.sweep();
      return (await metric(setup, "wal_disk_bytes")) < 9000;
    });
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

  it("lets a tenant with many frozen heads push only as fast as heads are sealed, and others at once", async () => {
    const { seal, letGo } = heldSeal();
    const line = "x".repeat(256 * 1024);
    const lineMs = line.length / 40_000;
    const paced: number[] = [];
    const sleep: Sleep = (ms, signal) => {
      if (ms % lineMs > 0.001) return untilAborted(ms, signal);
      paced.push(ms);
      return Promise.resolve();
    };
    const bounds = { maxFrozenBytes: 16 * 1024 * 1024 };
    const setup = await started({ seal, sleep, changes: { head_target_size: 10, bounds } });
    let count = 0;
    while (paced.length < 3) await pushLine(setup, ++count, line);
    // The clock of this test stands still, so each waits for all before it.
    expect(paced).toEqual([1, 2, 3].map((i) => expect.closeTo(i * lineMs)));
    await pushLine(setup, 1, "of another", "other");
    expect(paced).toHaveLength(3);
    letGo();
    expect(await readRows(setup.ingester, "t")).toHaveLength(count);
    await setup.ingester.stop();
  });

  it("makes no tenant wait for the frozen heads of another, up to half as much again", async () => {
    const { seal, letGo } = heldSeal();
    const bounds = { maxFrozenBytes: 1024 * 1024 };
    const setup = await started({ seal, changes: { head_target_size: 10, bounds } });
    const line = "x".repeat(1024 * 1024);
    await pushLine(setup, 1, line);
    await pushLine(setup, 1, "of another", "other");
    const [mine, others] = [pushLine(setup, 2), pushLine(setup, 1, line, "third")];
    await others;
    // The heads of the third are too much for all.
    const late = pushLine(setup, 1, "late", "fourth");
    const done: unknown[] = [];
    for (const push of [mine, late]) void push.then(() => done.push(push));
    for (let turn = 0; turn < 50; turn++) await new Promise((resolve) => setImmediate(resolve));
    expect(done).toEqual([]);
    letGo();
    await Promise.all([mine, late]);
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
