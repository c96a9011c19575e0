import { execFile, spawn } from "node:child_process";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, it } from "@jest/globals";
import type { Sleep } from "@skald/runtime";
import { createLogger } from "@skald/runtime/log";
import { nodeWalDisk, syncInTurn, type WalDisk } from "@skald/storage";
import { makeBatch, until } from "@skald/testkit";
import { everything, newDir, readRows, selectOnce, setUp } from "../testing/ingester.js";

const day = 20_400n * 86_400_000_000_000n;

/** Only the pause before a sync ever ends. */
const sleep: Sleep = (ms, signal) =>
  new Promise((resolve, reject) => {
    if (ms === 100) setImmediate(resolve);
    signal?.addEventListener("abort", () => reject(signal.reason), { once: true });
  });

it("seals what a failed sync leaves in doubt, and goes on in a new file", async () => {
  const state = { fails: false, syncs: 0 };
  const disk: WalDisk = {
    ...nodeWalDisk,
    create: async (path) => {
      const file = await nodeWalDisk.create(path);
      const datasync = async () => {
        if (state.fails) {
          state.fails = false;
          throw Object.assign(new Error("failed"), { code: "EIO" });
        }
        await file.datasync();
        state.syncs++;
      };
      return { ...file, datasync };
    },
  };
  const { dir, ingester, metrics } = await setUp({ disk, sleep });
  await ingester.start();
  const push = (ns: bigint, tenant: string) => {
    const rows = [{ ns: day + ns, line: `line ${ns}` }];
    return ingester.push({ tenant, batch: makeBatch([{ labels: { app: "a" }, rows }]) });
  };
  const kinds = async (tenant: string) =>
    (await selectOnce(ingester, { ...everything, tenant })).sources.map(({ kind }) => kind);
  await push(1n, "a");
  await until(() => state.syncs === 1);
  state.fails = true;
  await push(2n, "b");
  await until(async () => (await kinds("a"))[0] === "segment");
  await until(async () => (await kinds("b"))[0] === "segment");
  await push(3n, "a");
  expect(await kinds("a")).toEqual(["segment", "head"]);
  expect(await readRows(ingester, "a")).toHaveLength(2);
  expect((await metrics.read()).text).toContain("loki_ingester_wal_write_failures_total 1");
  await ingester.sweep();
  const files = await readdir(join(dir, "wal"));
  expect(files.filter((name) => name.endsWith(".wal"))).toEqual(["00000002.wal"]);
  await ingester.stop();
});

it("takes pushes while a sync takes long, measures it, and tells that once a minute", async () => {
  const held: (() => void)[] = [];
  const disk: WalDisk = {
    ...nodeWalDisk,
    create: async (path) => {
      const datasync = () => new Promise<void>((resolve) => held.push(resolve));
      return { ...(await nodeWalDisk.create(path)), datasync };
    },
  };
  const lines: string[] = [];
  const log = createLogger({ target: { write: (line) => void lines.push(line) } });
  const { ingester, metrics, clock } = await setUp({ disk, sleep, log });
  await ingester.start();
  let ns = 0n;
  const push = () => {
    const rows = [{ ns: day + ++ns, line: "line" }];
    return ingester.push({ tenant: "a", batch: makeBatch([{ labels: { app: "a" }, rows }]) });
  };
  const told = () => lines.filter((line) => line.includes("the disk is slow")).length;
  const syncCount = async () =>
    /loki_ingester_wal_fsync_duration_seconds_count (\d+)/.exec((await metrics.read()).text)?.[1];
  for (const [i, wanted] of [1, 1, 2].entries()) {
    await push();
    await until(() => held.length === 1);
    for (let n = 0; n < 5; n++) await push();
    expect(held).toHaveLength(1);
    if (i === 2) clock.ms += 60_000;
    clock.ms += 2000;
    if (i === 0) expect(ingester.complaint).toMatch(/^disk slow: .* took 2\.0s$/);
    held.pop()?.();
    await until(async () => (await syncCount()) === String(2 * i + 1));
    expect(told()).toBe(wanted);
    expect(ingester.complaint).toMatch(/^disk slow: /);
    // What was pushed meanwhile is synced too.
    await until(() => held.length === 1);
    held.pop()?.();
    await until(async () => (await syncCount()) === String(2 * i + 2));
  }
  clock.ms += 60_000;
  expect(ingester.complaint).toBeUndefined();
  const stopping = ingester.stop();
  await until(() => held.length === 1);
  held.pop()?.();
  await stopping;
});

it("answers pushes while syncs of the log and of directories occupy threads and do not end", async () => {
  const dir = await newDir();
  const pipes = Array.from({ length: 10 }, (_, i) => join(dir, String(i)));
  await promisify(execFile)("mkfifo", pipes);
  // Each pipe stays open until its writer is killed.
  const script = 'for pipe in "$@"; do (exec 3> "$pipe"; exec sleep 600) & done; wait';
  const writers = spawn("sh", ["-c", script, "sh", ...pipes], { detached: true, stdio: "ignore" });
  const state = { isSlow: false, begun: 0, ended: 0 };
  const occupyThread = async () => {
    if (!state.isSlow) return;
    await readFile(pipes[state.begun++]!);
    state.ended++;
  };
  const disk: WalDisk = {
    ...nodeWalDisk,
    create: async (path) => ({ ...(await nodeWalDisk.create(path)), datasync: occupyThread }),
  };
  const { ingester } = await setUp({ disk, sleep });
  await ingester.start();
  let ns = 0n;
  const push = () => {
    const rows = [{ ns: day + ++ns, line: "line" }];
    return ingester.push({ tenant: "a", batch: makeBatch([{ labels: { app: "a" }, rows }]) });
  };
  try {
    state.isSlow = true;
    const others = Array.from({ length: 4 }, () => syncInTurn(occupyThread));
    await push();
    // The sync of the log, and as many of the others as may run at a time.
    await until(() => state.begun === 3);
    for (let i = 0; i < 150; i++) await push();
    expect(state).toMatchObject({ begun: 3, ended: 0 });
    state.isSlow = false;
    process.kill(-writers.pid!);
    await Promise.all(others);
    expect(await readRows(ingester, "a")).toHaveLength(151);
  } finally {
    state.isSlow = false;
    if (state.ended === 0) process.kill(-writers.pid!);
  }
  await ingester.stop();
}, 30_000);
