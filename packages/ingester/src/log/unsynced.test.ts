import { execFile, spawn } from "node:child_process";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { promisify } from "node:util";
import { expect, it } from "@jest/globals";
import { sleep as realSleep, type Sleep } from "@skald/runtime";
import { createLogger } from "@skald/runtime/log";
import { nodeWalDisk, type WalDisk } from "@skald/storage";
import { makeBatch } from "@skald/testkit";
import { everything, newDir, readRows, selectOnce, setUp, until } from "../testing/ingester.js";

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

it("answers pushes fast on a disk whose syncs occupy a thread for a second", async () => {
  const dir = await newDir();
  const pipes = Array.from({ length: 30 }, (_, i) => join(dir, String(i)));
  await promisify(execFile)("mkfifo", pipes);
  // Each pipe is closed by its writer a second after the reader has opened it.
  const script = 'for pipe in "$@"; do (exec 3> "$pipe"; sleep 1) & done; wait';
  const writers = spawn("sh", ["-c", script, "sh", ...pipes], { detached: true, stdio: "ignore" });
  let syncs = 0;
  const occupyThread = async () => {
    await readFile(pipes[syncs++]!);
  };
  const disk: WalDisk = {
    ...nodeWalDisk,
    create: async (path) => {
      return { ...(await nodeWalDisk.create(path)), datasync: occupyThread };
    },
    syncDir: occupyThread,
  };
  const { ingester } = await setUp({ disk, sleep: realSleep });
  await ingester.start();
  const times: number[] = [];
  for (let i = 1; i <= 150; i++) {
    const rows = [{ ns: day + BigInt(i), line: "line" }];
    const startMs = performance.now();
    await ingester.push({ tenant: "a", batch: makeBatch([{ labels: { app: "a" }, rows }]) });
    times.push(performance.now() - startMs);
    await setTimeout(20);
  }
  times.sort((a, b) => a - b);
  expect(syncs).toBeGreaterThan(2);
  expect(times[142]).toBeLessThan(50);
  expect(times[149]).toBeLessThan(500);
  await ingester.stop();
  process.kill(-writers.pid!);
}, 30_000);
