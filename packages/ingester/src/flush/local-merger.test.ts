import { readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "@jest/globals";
import { until } from "@skald/testkit";
import { heldSeal, kinds, metric, minuteMs, pushLine, started } from "../testing/flush.js";
import {
  copyFiles,
  mergeHere,
  newDir,
  readRows,
  readUnion,
  type Setup,
} from "../testing/ingester.js";

/** Each push is a segment. */
const small = { head_target_size: 1 };
const dayNs = 86_400_000_000_000;

/** A pause of a turn. */
const soon = () => new Promise<void>((resolve) => setImmediate(resolve));

/** Pushes rows that are segments when it resolves. */
async function sealed(setup: Setup, count: number, tenant = "t"): Promise<void> {
  for (let i = 0; i < count; i++) await pushLine(setup, i, `line ${i}`, tenant);
  await until(async () => (await metric(setup, "flush_queue_length")) === 0);
}

async function swept(setup: Setup): Promise<void> {
  setup.clock.ms += 31 * minuteMs;
  await setup.ingester.sweep();
}

describe("small local segments", () => {
  it("are one object of a tenant and day when they are due", async () => {
    const setup = await started({ changes: small });
    for (const tenant of ["a", "b"]) await sealed(setup, 5, tenant);
    await pushLine(setup, dayNs, "of another day", "b");
    await until(async () => (await metric(setup, "flush_queue_length")) === 0);
    expect(await kinds(setup, "a")).toHaveLength(5);
    await swept(setup);
    await until(() => setup.store.objects.size === 3);
    expect(await kinds(setup, "a")).toEqual(["segment"]);
    expect(await kinds(setup, "b")).toEqual(["segment", "segment"]);
    for (const [tenant, rows] of [["a", 5] as const, ["b", 6] as const]) {
      expect(await readRows(setup.ingester, tenant)).toHaveLength(rows);
      expect(await readUnion(setup, tenant)).toHaveLength(rows);
    }
    await setup.ingester.stop();
  });

  it("are one object when all is flushed, with what has to be sealed first", async () => {
    const { seal, state, letGo } = heldSeal();
    state.held = false;
    const changes = { head_target_size: 5 };
    const setup = await started({ seal, changes, sleep: soon });
    await sealed(setup, 4);
    state.held = true;
    await pushLine(setup, 5, "more");
    const flushing = setup.ingester.flush({});
    for (let turn = 0; turn < 50; turn++) await soon();
    expect(setup.store.objects.size).toBe(0);
    letGo();
    await flushing;
    expect(setup.store.objects.size).toBe(1);
    expect(await readUnion(setup, "t")).toHaveLength(5);
    await setup.ingester.stop();
  });

  it("are uploaded as they are where they are large, or cannot be merged", async () => {
    for (const [maxMergeBytes, merge] of [
      [1, mergeHere],
      [1e6, () => Promise.reject(new Error("no space"))],
    ] as const) {
      const setup = await started({ merge, changes: { ...small, bounds: { maxMergeBytes } } });
      await sealed(setup, 3);
      await swept(setup);
      await until(() => setup.store.objects.size === 3);
      await setup.ingester.stop();
    }
  });

  it("are there once, and uploaded once, whenever the process ends", async () => {
    const setup = await started({ changes: small });
    await sealed(setup, 4);
    const rows = await readRows(setup.ingester, "t");
    setup.store.isDown = true;
    await swept(setup);
    await until(async () => (await kinds(setup)).length === 1);
    const dir = await newDir();
    await copyFiles(setup, dir);
    await setup.ingester.stop();
    setup.store.isDown = false;
    const changes = { ...small, chunk_retain_period: minuteMs };
    const again = await started({ dir, store: setup.store, changes });
    expect(await kinds(again)).toEqual(["segment"]);
    expect(await readRows(again.ingester, "t")).toEqual(rows);
    await again.ingester.flush({});
    expect(setup.store.objects.size).toBe(1);
    expect(await readUnion(again, "t")).toEqual(rows);
    // The inputs first, then what names them.
    again.clock.ms += 2 * minuteMs;
    for (let sweeps = 0; sweeps < 2; sweeps++) await again.ingester.sweep();
    expect(await kinds(again)).toEqual([]);
    const left = await readdir(join(dir, "segments"), { recursive: true });
    expect(left.filter((name) => name.includes("."))).toEqual(["uploads.marked"]);
    expect(await readUnion(again, "t")).toEqual(rows);
    await again.ingester.stop();
  });

  describe("of an earlier process", () => {
    const rowCount = 4;

    /** What is on the disk of a process that sealed some and ended, before or while it uploaded them. */
    async function left({ isUploading = false } = {}): Promise<Pick<Setup, "dir" | "store">> {
      const bounds = { maxMergeBytes: 1 };
      const setup = await started({ changes: isUploading ? { ...small, bounds } : small });
      await sealed(setup, rowCount);
      if (isUploading) {
        setup.store.isDown = true;
        await swept(setup);
        await until(async () => (await metric(setup, "chunks_flush_failures_total")) > 0);
      }
      const dir = await newDir();
      await copyFiles(setup, dir);
      setup.store.isDown = false;
      await setup.ingester.stop();
      setup.store.objects.clear();
      return { dir, store: setup.store };
    }

    async function uploaded(options: Pick<Setup, "dir" | "store">): Promise<number> {
      const again = await started({ ...options, changes: small });
      expect(await kinds(again)).toHaveLength(rowCount);
      await again.ingester.flush({});
      expect(await readUnion(again, "t")).toHaveLength(rowCount);
      await again.ingester.stop();
      return options.store.objects.size;
    }

    it("are merged where nobody had begun to upload them", async () => {
      expect(await uploaded(await left())).toBe(1);
    });

    it("are uploaded as they are where the store may have them", async () => {
      expect(await uploaded(await left({ isUploading: true }))).toBe(rowCount);
    });

    it("are uploaded as they are where it is not known whether the store has them", async () => {
      const { dir, store } = await left();
      await rm(join(dir, "segments", "uploads.marked"));
      const again = await started({ dir, store, changes: small });
      const next = await newDir();
      await copyFiles(again, next);
      await again.ingester.stop();
      store.objects.clear();
      expect(await uploaded({ dir: next, store })).toBe(rowCount);
    });
  });
});
