// Pushes decoded batches as fast as the ingester takes them, with 8 pushes in flight: 1 GB in batches of 1 MB and 199
// streams, and 100 MB in batches of 10 KB and 10 streams; with sealing by two workers, and without any.
//   node packages/ingester/bench/append.mjs [share of that, 1]
// Prints CPU of the main thread and of the process, the rates, and the peak of resident memory.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isMainThread, parentPort, Worker } from "node:worker_threads";

const self = new URL(import.meta.url);
const large = { megabytes: 1000, streamCount: 199, rowsPerStream: 19 };
const small = { megabytes: 100, streamCount: 10, rowsPerStream: 4 };
if (isMainThread) await main(Number(process.argv[2] ?? 1));
else await serve();

async function main(share) {
  const figures = {};
  figures["1 MB"] = await measure(large, { share, sealing: false });
  figures["1 MB, sealed"] = await measure(large, { share, sealing: true });
  figures["10 KB"] = await measure(small, { share, sealing: false });
  figures["10 KB, sealed"] = await measure(small, { share, sealing: true });
  console.table(figures);
  process.exit(0);
}

async function serve() {
  const { openHeadBlock, sealSegment } = await import("@skald/storage");
  parentPort.on("message", (job) => {
    const heads = job.heads.map((head) => ({ ...head, blocks: head.blocks.map(openHeadBlock) }));
    parentPort.postMessage(sealSegment({ ...job, heads }));
  });
}

async function measure(shape, { share, sealing }) {
  const { defaultBounds, Ingester } = await import("../dist/index.js");
  const { ingesterConfig } = await import("../dist/settings/config.js");
  const { defaultLimits, defaultsOf, readSchema } = await import("@skald/runtime/config");
  const { silentLogger } = await import("@skald/runtime/log");
  const { Metrics } = await import("@skald/runtime/metrics");
  const dir = mkdtempSync(join(tmpdir(), "skald-bench-"));
  const defaults = defaultsOf(readSchema(ingesterConfig));
  const limits = {
    ...defaultLimits,
    per_stream_rate_limit: 1e12,
    per_stream_rate_limit_burst: 1e12,
  };
  const ingester = new Ingester({
    options: {
      instanceId: "bench",
      dataDir: dir,
      config: { ...defaults, wal: { ...defaults.wal, dir: join(dir, "wal") } },
      bounds: defaultBounds,
    },
    limitsOf: () => limits,
    seal: sealing ? workers(2) : dropHead,
    store: { put: async () => undefined, has: async () => true },
    log: silentLogger(),
    metrics: new Metrics(),
  });
  await ingester.start();
  const make = batchMaker(shape);
  const batches = Array.from({ length: 12 }, () => make());
  const lineBytes = batches[0].lineBytes;
  const count = Math.round((share * shape.megabytes * 1e6) / lineBytes);
  let next = 0;
  let peak = 0;
  const before = {
    cpu: process.cpuUsage(),
    main: process.threadCpuUsage?.(),
    at: performance.now(),
  };
  const client = async () => {
    while (next < count) {
      const at = next++;
      await ingester.push({ tenant: "bench", batch: later(batches[at % batches.length], at) });
      if (at % 50 === 0) peak = Math.max(peak, process.memoryUsage.rss());
    }
  };
  await Promise.all(Array.from({ length: 8 }, client));
  const wallMs = performance.now() - before.at;
  const cpu = process.cpuUsage(before.cpu);
  const main = before.main === undefined ? undefined : process.threadCpuUsage(before.main);
  const gigabytes = (count * lineBytes) / 1e9;
  const seconds = (usage) => ((usage.user + usage.system) / 1e6 / gigabytes).toFixed(2);
  await ingester.stop();
  rmSync(dir, { recursive: true });
  return {
    "MB/s": ((gigabytes * 1e6) / wallMs).toFixed(0),
    "pushes/s": ((1000 * count) / wallMs).toFixed(0),
    "CPU s/GB": seconds(cpu),
    "CPU s/GB, main thread": main === undefined ? "" : seconds(main),
    "peak RSS, MiB": (peak / 1048576).toFixed(0),
  };
}

/** Batches whose streams ascend by 1 ms; later() moves them on in time. */
function batchMaker({ streamCount, rowsPerStream }) {
  const lineLength = 270;
  const rowCount = streamCount * rowsPerStream;
  const step = lineLength + 14;
  let seed = 1;
  return () => {
    const bytes = new Uint8Array(rowCount * step + 64);
    for (let i = 0; i < bytes.length; i++) {
      seed = (Math.imul(seed, 1103515245) + 12345) >>> 0;
      bytes[i] = i % step < 200 ? 97 + (i % 23) : 48 + ((seed >>> 16) % 10);
    }
    const streams = Array.from({ length: streamCount }, (_, ordinal) => {
      const labels = { names: ["app", "pod"], values: [`app-${ordinal % 13}`, `pod-${ordinal}`] };
      const text = `{app="app-${ordinal % 13}", pod="pod-${ordinal}"}`;
      const rowStart = ordinal * rowsPerStream;
      return { labels, text, ordinal, rowStart, rowEnd: rowStart + rowsPerStream };
    });
    return {
      rowCount,
      streams,
      seconds: new Float64Array(rowCount),
      nanos: Uint32Array.from({ length: rowCount }, (_, row) => (row % rowsPerStream) * 1e6),
      bytes,
      lineStart: Uint32Array.from({ length: rowCount }, (_, row) => row * step + 14),
      lineLength: new Uint32Array(rowCount).fill(lineLength),
      metaStart: new Uint32Array(rowCount + 1),
      metaName: new Uint32Array(0),
      metaValueStart: new Uint32Array(0),
      metaValueLength: new Uint32Array(0),
      metaNames: [],
      levels: new Uint8Array(rowCount).fill(4),
      lineBytes: rowCount * lineLength,
    };
  };
}

function later(batch, second) {
  const start = Date.UTC(2026, 10, 20) / 1000;
  return {
    ...batch,
    seconds: new Float64Array(batch.rowCount).fill(start + second),
    source: {
      format: "protobuf",
      encoding: "identity",
      body: Buffer.from(batch.bytes.buffer, 0, Math.round(batch.lineBytes * 0.36)),
      dropped: new Uint32Array(0),
    },
  };
}

function workers(count) {
  const idle = Array.from({ length: count }, () => new Worker(self));
  const waiting = [];
  return (job) =>
    new Promise((resolve, reject) => {
      const run = (worker) => {
        worker.once("error", reject);
        worker.once("message", (sealed) => {
          worker.off("error", reject);
          resolve(sealed);
          const next = waiting.shift();
          if (next === undefined) idle.push(worker);
          else next(worker);
        });
        worker.postMessage(job);
      };
      const worker = idle.pop();
      if (worker === undefined) waiting.push(run);
      else run(worker);
    });
}

async function dropHead(job) {
  const rows = job.heads[0].blocks.reduce((sum, block) => sum + block.rowCount, 0);
  return { rows, bytes: rows * 270, minNs: 0n, maxNs: 0n, sizeBytes: 1 };
}
