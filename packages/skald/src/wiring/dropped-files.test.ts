import { mkdtempSync, readdirSync, readlinkSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, it } from "@jest/globals";
import { decodeTexts } from "@skald/contracts";
import { Ingester, type SegmentStore } from "@skald/ingester";
import { type Batch, formatLabels, labelsFromObject } from "@skald/model";
import { assembleBatch, decodeBody } from "@skald/push";
import { WorkerPool } from "@skald/runtime";
import { silentLogger } from "@skald/runtime/log";
import { Metrics } from "@skald/runtime/metrics";
import { ScanPool, sourcesOf } from "@skald/scan";
import type { SealedSegment } from "@skald/storage";
import { loadConfig } from "../config/load-config.js";
import { ingesterOptionsOf } from "./modules/ingester.js";

const dir = mkdtempSync(join(tmpdir(), "skald-dropped-"));
const pool = new WorkerPool({
  url: new URL("../worker.js", import.meta.url),
  size: 2,
  maxQueued: 100,
});
let ingester: Ingester | undefined;
afterAll(async () => {
  await ingester?.stop();
  await pool.close();
  rmSync(dir, { recursive: true });
});

function lineBatch(): Batch {
  const body = Buffer.from(
    '{"streams":[{"stream":{"app":"a"},"values":[["1760000000000000000","x"]]}]}',
  );
  const labels = labelsFromObject({ app: "a" });
  return assembleBatch(decodeBody({ format: "json", encoding: "identity", body }), {
    streams: [{ ordinal: 0, text: formatLabels(labels) }],
    dropped: new Uint32Array(0),
    levels: new Uint8Array(1),
  });
}

/** Files below the directory that some thread of this process has open. */
function openSegments(): string[] {
  return readdirSync("/proc/self/fd")
    .map((fd) => {
      try {
        return readlinkSync(`/proc/self/fd/${fd}`);
      } catch {
        return "";
      }
    })
    .filter((path) => path.startsWith(dir) && path.includes(".parquet"));
}

/** Runs a job that looks at nothing; as many of them at once as there are threads run on a thread each. */
function nextJob(signal: AbortSignal): Promise<unknown> {
  const nothing = { sources: [], selectors: [], fromNs: 0n, toNs: 1n };
  return pool.run("streams", nothing, { lane: "query", signal });
}

it("a local segment that is dropped is closed by every thread that had it open", async () => {
  const clock = { ms: 0, elapsedMs: () => clock.ms };
  const scanner = new ScanPool(pool);
  const store: SegmentStore = { put: async () => undefined, has: async () => true };
  const loaded = loadConfig([`-common.path-prefix=${dir}`], {});
  if ("exit" in loaded) throw new Error(loaded.exit.text);
  const { options } = ingesterOptionsOf(loaded.config, "i");
  const running = new Ingester({
    options: { ...options, config: { ...options.config, chunk_retain_period: 1000 } },
    limitsOf: () => loaded.config.limits_config,
    store,
    scanner,
    runTails: async () => ({ found: [], workMs: 0 }),
    onDropped: (path) => scanner.forget(path),
    merge: () => Promise.reject(new Error("one segment is not merged")),
    seal: (job) => pool.run<SealedSegment>("seal", job, { lane: "background" }),
    steadyClock: clock,
    log: silentLogger(),
    metrics: new Metrics(),
  });
  ingester = running;
  await running.start();
  await running.push({ tenant: "t", batch: lineBatch() });
  await running.flush();
  const range = { fromNs: 0n, toNs: 1n << 62n };
  const { view = "", sources } = await running.select({ tenant: "t", matchers: [], ...range });
  const { signal } = new AbortController();
  const share = { tenant: "t", actors: [], cost: 0 };
  const task = { sources: sourcesOf(sources), selectors: [], ...range, label: "app" };
  const ask = async () => decodeTexts(await running.run("labels", task, { signal, share }));
  expect(await Promise.all([ask(), ask(), ask()])).toEqual(Array(3).fill(["a"]));
  expect(openSegments().length).toBeGreaterThan(0);
  clock.ms += 1000;
  await running.sweep();
  // It is in use.
  expect(openSegments().length).toBeGreaterThan(0);
  await running.release(view);
  await running.sweep();
  // A thread closes the file between two jobs: once each has run another one it has done so.
  await Promise.all(Array.from({ length: pool.size }, () => nextJob(signal)));
  expect(openSegments()).toEqual([]);
});
