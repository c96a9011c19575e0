import { describe, expect, it } from "@jest/globals";
import type { Sleep } from "@skald/runtime";
import { nodeWalDisk, type WalDisk } from "@skald/storage";
import { makeBatch } from "@skald/testkit";
import {
  copyFiles,
  everything,
  newDir,
  readRows,
  readUnion,
  type Setup,
  type SetupOptions,
  selectOnce,
  setUp,
} from "../testing/ingester.js";

const day = 20_400n * 86_400_000_000_000n;

/** Only the wait for the replay ever ends. */
const sleep: Sleep = (ms, signal) =>
  new Promise((resolve, reject) => {
    if (ms === 1) resolve();
    signal?.addEventListener("abort", () => reject(signal.reason), { once: true });
  });

async function push({ ingester }: Setup, tenant: string, ...numbers: number[]): Promise<void> {
  const rows = numbers.map((number) => ({ ns: day + BigInt(number), line: `line ${number}` }));
  await ingester.push({ tenant, batch: makeBatch([{ labels: { app: "a" }, rows }]) });
}

async function sourcesOf({ ingester }: Setup, tenant: string) {
  const { sources } = await selectOnce(ingester, { ...everything, tenant });
  return sources.map(({ kind, id }) => ({ kind, id }));
}

/** A directory with a log of two tenants, of three rows each, and the heads that they are in. */
async function logOfTwo() {
  const before = await setUp();
  await before.ingester.start();
  for (const tenant of ["t", "u"]) await push(before, tenant, 1, 2, 3);
  const heads = { t: await sourcesOf(before, "t"), u: await sourcesOf(before, "u") };
  await before.ingester.stop({ flush: false });
  return { dir: before.dir, heads };
}

/** An ingester whose log cannot be read until it is let go, started. */
async function startHeld(options: SetupOptions) {
  let letGo = (): void => undefined;
  const held = new Promise<void>((resolve) => {
    letGo = resolve;
  });
  const disk: WalDisk = {
    ...nodeWalDisk,
    read: async (path) => {
      await held;
      return nodeWalDisk.read(path);
    },
  };
  const setup = await setUp({ ...options, disk });
  await setup.ingester.start();
  return { setup, letGo };
}

describe("while the log is replayed", () => {
  it("pushes are taken, and queries see all when they are answered", async () => {
    const { dir, heads } = await logOfTwo();
    const { setup, letGo } = await startHeld({ dir });
    await push(setup, "t", 3, 4);
    let answered = 0;
    const queries = ["t", "u"].map(async (tenant) => {
      await sourcesOf(setup, tenant);
      answered++;
    });
    await setup.ingester.sweep();
    expect(answered).toBe(0);
    letGo();
    await Promise.all(queries);
    // A tenant that was pushed to has another head by now; the one of the log is sealed.
    expect(await sourcesOf(setup, "u")).toEqual(heads.u);
    const ids = (await sourcesOf(setup, "t")).map(({ id }) => id);
    expect(ids).toHaveLength(2);
    expect(ids).toContain(heads.t[0]?.id);
    expect(new Set(await readUnion(setup, "t")).size).toBe(4);
    // Rows that both heads have are found by queries; what comes now is compared with the head of the tenant.
    await push(setup, "u", 3, 4);
    await push(setup, "t", 4, 5);
    expect(await readRows(setup.ingester, "u")).toHaveLength(4);
    expect(await readUnion(setup, "t")).toHaveLength(6);
    expect(new Set(await readUnion(setup, "t")).size).toBe(5);
    await setup.ingester.stop();
  });

  it("a kill loses neither what was pushed meanwhile nor what was not replayed", async () => {
    const { dir } = await logOfTwo();
    const { setup, letGo } = await startHeld({ dir });
    await push(setup, "t", 4);
    const copy = await newDir();
    await copyFiles(setup, copy);
    letGo();
    await setup.ingester.stop({ flush: false });
    const again = await setUp({ dir: copy });
    await again.ingester.start();
    expect(await readUnion(again, "t")).toHaveLength(4);
    expect(await readUnion(again, "u")).toHaveLength(3);
    await again.ingester.stop();
  });

  it("a stop with a flush seals what was pushed, and leaves the rest in the log", async () => {
    const { dir } = await logOfTwo();
    const { setup, letGo } = await startHeld({ dir });
    await push(setup, "t", 4);
    const stopped = setup.ingester.stop({ flush: true });
    letGo();
    await stopped;
    expect(setup.store.objects.size).toBe(1);
    const again = await setUp({ dir });
    await again.ingester.start();
    expect(await readUnion(again, "t")).toHaveLength(4);
    expect(await readUnion(again, "u")).toHaveLength(3);
    await again.ingester.stop();
  });

  it("a query that has waited long enough is told to come again, one that is cancelled ends", async () => {
    const { dir } = await logOfTwo();
    const changes = { bounds: { maxReplayWaitMs: 1 } };
    const { setup, letGo } = await startHeld({ dir, changes, sleep });
    await expect(sourcesOf(setup, "u")).rejects.toMatchObject({
      code: "unavailable",
      message: "the write-ahead log of an earlier process is not replayed yet; try again",
      retryAfterSeconds: 2,
    });
    const { ingester } = setup;
    const signal = AbortSignal.abort(new Error("cancelled"));
    await expect(ingester.select({ ...everything, tenant: "u" }, { signal })).rejects.toThrow(
      "cancelled",
    );
    letGo();
    await ingester.replayed;
    expect(await readRows(ingester, "u")).toHaveLength(3);
    await ingester.stop();
  });

  it("a log that cannot be read ends it", async () => {
    const { dir } = await logOfTwo();
    const disk: WalDisk = { ...nodeWalDisk, read: () => Promise.reject(new Error("unreadable")) };
    const { ingester } = await setUp({ dir, disk });
    await ingester.start();
    await expect(ingester.runUntil(new AbortController().signal)).rejects.toThrow("unreadable");
    await expect(ingester.select({ ...everything, tenant: "u" })).rejects.toMatchObject({
      code: "unavailable",
    });
    await ingester.stop();
  });
});
