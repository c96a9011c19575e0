// Many small segments of one day, not yet merged: builds a store of them, starts the built program over it, and prints what
// queries take, the first time and warm. "apart": one after the other in time; "overlapping": all over the same hour.
//
//   node bench/segments.mjs [--apart 10000] [--overlapping 1000] [--streams 2000] [--each 20] [--runs 7] [--index yes|no]
//
//   --streams, --each   streams of the day, and how many of them a segment has, ten lines each
//   --index             whether a compactor has written the day index (it merges nothing here)
//
// Last figures (2 cores shared with other work, warm): one stream in 100 of 10,000 segments 18 ms, all of them counted 72 ms (52 ms of processor
// time) and 160 ms the first time, as the day index counts streams; before that 2,090 (1,663) and 7,600 ms. 1,000 overlapping ones: 49 ms
// (60) the first time that they are counted and 13 ms (20) warm, as the day index proves by marks of their rows that they share none; without
// marks 2,789 (1,350) and 155 ms (107). The index of 10,000 segments apart takes 367 kB, that of 1,000 overlapping ones 867.
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { parseArgs } from "node:util";
import {
  dayIndexKey,
  editDay,
  FsStore,
  HeadBlock,
  openHeadBlock,
  sealSegment,
  segmentKey,
} from "../packages/storage/dist/index.js";
import { startServer } from "../packages/test/dist/testing/server.js";
import { makeBatch } from "../packages/testkit/dist/index.js";

const { values: options } = parseArgs({
  options: {
    apart: { type: "string", default: "10000" },
    overlapping: { type: "string", default: "1000" },
    streams: { type: "string", default: "2000" },
    each: { type: "string", default: "20" },
    runs: { type: "string", default: "7" },
    index: { type: "string", default: "yes" },
  },
});
const dayNs = 86_400_000_000_000n;
const tenant = "fake";
const rowsEach = 10;
const capacity = {
  ...{ rows: rowsEach, runs: rowsEach, pairs: 1, lineBytes: 100 * rowsEach, valueBytes: 1 },
};
const baseNs = ((BigInt(Date.now()) * 1_000_000n) / dayNs) * dayNs - dayNs;
const table = {};
for (const kind of ["apart", "overlapping"]) {
  const count = Number(options[kind]);
  if (count > 0) await measure(kind, count);
}
console.table(table);

async function measure(kind, count) {
  const folder = mkdtempSync(join(tmpdir(), "skald-segments-"));
  try {
    await build(folder, kind, count);
    const server = await startServer(folder, [
      "-compactor.compaction-interval=1h",
      "-server.worker-threads=2",
      "-querier.max-query-series=100000",
    ]);
    for (const [name, query] of [
      ["one stream", 'count_over_time({stream="s7"}[1d])'],
      ["a stream that is not there", 'count_over_time({stream="none"}[1d])'],
      ["count", 'sum(count_over_time({app=~".+"}[1d]))'],
      ["count by app", 'sum by (app) (count_over_time({app=~".+"}[1d]))'],
    ]) {
      const times = [];
      let answer;
      const before = cpuMs(server.process.pid);
      let cpu = before;
      for (let run = 0; run < Number(options.runs); run++) {
        const start = performance.now();
        if (run === 1) cpu = cpuMs(server.process.pid);
        answer = await ask(server.url, query);
        times.push(performance.now() - start);
      }
      const [first, ...warm] = times;
      const firstCpu = cpu - before;
      cpu = cpuMs(server.process.pid) - cpu;
      warm.sort((a, b) => a - b);
      table[`${count} ${kind}: ${name}`] = {
        "first ms": +first.toFixed(1),
        "first CPU ms": firstCpu,
        "warm ms": +warm[warm.length >> 1].toFixed(1),
        "warm CPU ms": Math.round(cpu / warm.length),
        counted: answer,
      };
    }
    await server.kill("SIGTERM");
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** CPU time of a process so far; 0 where the system does not tell. */
function cpuMs(pid) {
  const stat = existsSync("/proc") ? readFileSync(`/proc/${pid}/stat`, "utf8").split(" ") : [];
  return 10 * (Number(stat[13] ?? 0) + Number(stat[14] ?? 0));
}

async function ask(url, query) {
  const params = new URLSearchParams({ query, time: String(baseNs + dayNs) });
  const reply = await fetch(`${url}/loki/api/v1/query?${params}`);
  const body = await reply.text();
  if (!reply.ok) throw new Error(body);
  return JSON.parse(body).data.result.reduce((sum, { value }) => sum + Number(value[1]), 0);
}

async function build(folder, kind, count) {
  const chunks = join(folder, "chunks");
  const store = new FsStore(chunks, { rememberIn: join(folder, "store.json") });
  await store.open();
  const add = [];
  for (let i = 0; i < count; i++) {
    const path = join(folder, "sealed.parquet");
    const from = kind === "apart" ? (Number(dayNs) / count) * i : 3_600_000_000_000;
    const span = kind === "apart" ? Number(dayNs) / count : 3_600_000_000_000;
    const id = `s${i}`;
    const sealed = sealSegment({ tenant, id, path, heads: [headOf(i, from, span)], sync: false });
    const key = segmentKey({ tenant, id, ...sealed });
    const at = join(chunks, key);
    mkdirSync(dirname(at), { recursive: true });
    renameSync(path, at);
    const ref = { kind: "segment", id, tenant, ...sealed, location: { kind: "file", path: at } };
    add.push({ ref, level: 0 });
  }
  if (options.index === "yes") {
    const start = performance.now();
    const { bytes } = editDay({
      ...{ tenant, baseNs, base: undefined, add, remove: [], forget: [] },
      ...{ generation: 1, writtenMs: Date.now() },
    });
    const name = `${count} ${kind}: day index`;
    table[name] = { "first ms": Math.round(performance.now() - start), counted: bytes.length };
    writeFileSync(join(chunks, dayIndexKey({ tenant, baseNs, generation: 1 })), bytes);
  }
  await store.close();
}

function headOf(segment, from, span) {
  const numbers = Array.from({ length: Number(options.each) }, (_, i) => segment * 7 + i * 97);
  const streams = [...new Set(numbers.map((n) => n % Number(options.streams)))];
  const streamTexts = streams.map((n) => `{app="app-${n % 13}", stream="s${n}"}`);
  const blocks = streams.map((n, stream) => {
    const rows = Array.from({ length: rowsEach }, (_, row) => ({
      ns:
        baseNs +
        BigInt(Math.floor(from + (span * (row + ((segment * 31 + n) % 97) / 97)) / rowsEach)),
      line: `segment=${segment} row=${row} of a stream with few lines status=${(n * row) % 500}`,
    }));
    const head = new HeadBlock(baseNs, capacity);
    head.append(makeBatch([{ labels: {}, rows }]), 0, rowsEach, stream);
    head.publish(rowsEach);
    return openHeadBlock(head.view());
  });
  return { blocks, streamTexts };
}
