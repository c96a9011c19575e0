// Many streams: pushes lines over N streams to a running process, then asks what dashboards and label browsers ask,
// and prints a table. Every answer is checked against what was pushed. Two cores, 2 M lines, 15 segments, warm medians:
// see the table in bench/README.md.
//
//   node bench/streams.mjs --url http://127.0.0.1:3100 --streams 100000 --lines 2000000 [--tenant many] [--pid 123]
//
//   --streams, --lines   what to push; lines go around the streams, so that every segment has nearly all of them
//   --hours 1            time that the lines span; it ends at --end (ms since the epoch, default: now)
//   --seed 1             of values and lines
//   --tenant name        X-Scope-OrgID
//   --only push,query    phases; `query` alone needs --end of the push, which prints it
//   --no-flush           leave the lines in the ingester's heads
//   --runs 5             warm runs of each query
//   --match text         only queries whose name contains the text
//   --pid n              prints memory of the process as well

import { execFileSync } from "node:child_process";
import { parseArgs } from "node:util";

const { values: options } = parseArgs({
  options: {
    url: { type: "string", default: "http://127.0.0.1:3100" },
    streams: { type: "string", default: "100000" },
    lines: { type: "string", default: "2000000" },
    hours: { type: "string", default: "1" },
    end: { type: "string" },
    seed: { type: "string", default: "1" },
    tenant: { type: "string", default: "fake" },
    only: { type: "string", default: "push,query" },
    "no-flush": { type: "boolean", default: false },
    runs: { type: "string", default: "5" },
    match: { type: "string", default: "" },
    pid: { type: "string" },
  },
});

const streamCount = Number(options.streams);
const lineCount = Number(options.lines);
const spanMs = Number(options.hours) * 3_600_000;
const endMs = Number(options.end ?? Date.now());
const startMs = endMs - spanMs;
const linesPerPush = 4000;
const pushesAtOnce = 4;
const levels = ["info", "info", "info", "info", "info", "info", "warn", "error", "debug", "info"];
const headers = { "x-scope-orgid": options.tenant };

/** A permutation of the numbers below a power of two, so that neighbours in time are not neighbours in name. */
const spread = nextCoprime(Math.floor(streamCount * 0.618), streamCount);
const namespaceCount = Math.min(30, streamCount);
const appCount = Math.min(200, streamCount);

/** 32 random bits of a number. */
function mix(n) {
  let h = Math.imul(n ^ (Number(options.seed) * 0x9e3779b1), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return (h ^ (h >>> 16)) >>> 0;
}

function nextCoprime(from, n) {
  const gcd = (a, b) => (b === 0 ? a : gcd(b, a % b));
  let candidate = Math.max(1, from);
  while (gcd(candidate, n) !== 1) candidate++;
  return candidate;
}

function podOf(stream) {
  return `app-${stream % appCount}-${mix(stream).toString(16).padStart(8, "0")}-${stream}`;
}

function labelsOf(stream) {
  const app = stream % appCount;
  return `{app="app-${app}", cluster="main", container="c${app % 3}", namespace="ns-${app % namespaceCount}", node="node-${mix(stream) % 250}", pod="${podOf(stream)}"}`;
}

function lineOf(i) {
  const level = levels[i % levels.length];
  const bits = mix(i);
  return `{"level":"${level}","msg":"request served","path":"/api/v1/items/${bits % 1000}","status":${200 + (bits % 5)},"duration_ms":${(bits >>> 8) % 900},"request":"${bits.toString(16)}"}`;
}

/** Ends of answers are checked: times that lines have, ns since the epoch. */
const timeOf = (i) => BigInt(Math.round(startMs * 1000 + (i / lineCount) * spanMs * 1000)) * 1000n;

class Proto {
  bytes = Buffer.alloc(4 * 1024 * 1024);
  at = 0;
  varint(n) {
    let left = n;
    while (left > 127) {
      this.bytes[this.at++] = (left % 128) | 128;
      left = Math.floor(left / 128);
    }
    this.bytes[this.at++] = left;
  }
  text(field, text) {
    this.varint(field * 8 + 2);
    this.varint(Buffer.byteLength(text));
    this.at += this.bytes.write(text, this.at);
  }
  message(field, bytes) {
    this.varint(field * 8 + 2);
    this.varint(bytes.length);
    this.at += bytes.copy(this.bytes, this.at);
  }
  number(field, n) {
    this.varint(field * 8);
    this.varint(n);
  }
  take() {
    const taken = Buffer.from(this.bytes.subarray(0, this.at));
    this.at = 0;
    return taken;
  }
}

/** The lines [from, to) as one push: uncompressed Snappy of protobuf. */
function bodyOf(from, to) {
  const [push, stream, entry, time] = [new Proto(), new Proto(), new Proto(), new Proto()];
  const byStream = new Map();
  for (let i = from; i < to; i++) {
    const number = Number((BigInt(i % streamCount) * BigInt(spread)) % BigInt(streamCount));
    const lines = byStream.get(number);
    if (lines === undefined) byStream.set(number, [i]);
    else lines.push(i);
  }
  for (const [number, lines] of byStream) {
    stream.text(1, labelsOf(number));
    for (const i of lines) {
      const ns = timeOf(i);
      time.number(1, Number(ns / 1_000_000_000n));
      time.number(2, Number(ns % 1_000_000_000n));
      entry.message(1, time.take());
      entry.text(2, lineOf(i));
      stream.message(2, entry.take());
    }
    push.message(1, stream.take());
  }
  const raw = push.take();
  const out = new Proto();
  out.varint(raw.length);
  const size = raw.length - 1;
  const head = Buffer.from([0xfc, size & 255, (size >> 8) & 255, (size >> 16) & 255, size >>> 24]);
  return Buffer.concat([out.take(), head, raw]);
}

async function push() {
  const started = performance.now();
  let next = 0;
  const lane = async () => {
    while (next < lineCount) {
      const from = next;
      next = Math.min(lineCount, from + linesPerPush);
      const response = await fetch(`${options.url}/loki/api/v1/push`, {
        method: "POST",
        headers: { ...headers, "content-type": "application/x-protobuf" },
        body: bodyOf(from, next),
      });
      if (response.status !== 204) throw new Error(`${response.status} ${await response.text()}`);
    }
  };
  await Promise.all(Array.from({ length: pushesAtOnce }, lane));
  const seconds = (performance.now() - started) / 1000;
  console.log(
    `pushed ${lineCount} lines of ${streamCount} streams in ${seconds.toFixed(1)} s; --end ${endMs}`,
  );
  await describe("after the push");
  if (options["no-flush"]) return;
  const flushed = performance.now();
  const response = await fetch(`${options.url}/flush`, { method: "POST" });
  if (!response.ok) throw new Error(`flush: ${response.status}`);
  console.log(`flushed in ${((performance.now() - flushed) / 1000).toFixed(1)} s`);
  await describe("after the flush");
}

/** Memory of the process and the longest pause of its main thread since this was asked last. */
async function describe(when) {
  const metrics = await (await fetch(`${options.url}/metrics`)).text();
  const lag = /^nodejs_eventloop_lag_max_seconds (\S+)/m.exec(metrics)?.[1];
  const parts = [`longest pause ${(Number(lag) * 1000).toFixed(0)} ms`];
  if (options.pid !== undefined) {
    const kib = execFileSync("ps", ["-o", "rss=", "-p", options.pid]).toString();
    parts.push(`memory ${(Number(kib) / 1024).toFixed(0)} MiB`);
  }
  console.log(`${when}: ${parts.join(", ")}`);
}

async function get(path, params) {
  const response = await fetch(
    `${options.url}/loki/api/v1/${path}?${new URLSearchParams(params)}`,
    {
      headers,
    },
  );
  const text = await response.text();
  if (!response.ok) throw new Error(`${response.status} ${text.slice(0, 200)}`);
  return JSON.parse(text);
}

const range = { start: String(timeOf(0)), end: String(timeOf(lineCount)) };
const day = { start: String(BigInt(endMs - 86_400_000) * 1_000_000n), end: range.end };
const all = '{cluster="main"}';
const pod = podOf(Math.floor(streamCount / 2));
const ofPod = `{pod="${pod}"}`;

/** An instant query whose range is all the time of the lines. */
function total(query) {
  const seconds = Math.ceil(spanMs / 1000) + 1;
  return get("query", { query: query.replaceAll("$all", `${seconds}s`), time: range.end });
}

function graph(query) {
  return get("query_range", { query, ...range, step: String(Math.ceil(spanMs / 60_000)) });
}

const countOf = (answer) =>
  answer.data.result.reduce((sum, { value }) => sum + Number(value[1]), 0);
const podsOf = (name, value) => {
  let count = 0;
  for (let stream = 0; stream < Math.min(streamCount, lineCount); stream++) {
    if (labelsOf(stream).includes(`${name}="${value}"`)) count++;
  }
  return count;
};

const panels = [
  "sum(count_over_time($s[$r]))",
  "sum by (detected_level) (count_over_time($s[$r]))",
  "sum by (namespace) (rate($s[$r]))",
  "topk(5, sum by (app) (rate($s[$r])))",
  'sum(rate($s |= "error" [$r]))',
];

async function panelsOfDashboard() {
  const selectors = [
    all,
    '{namespace="ns-1"}',
    '{app=~"app-1.*"}',
    '{cluster="main", container="c1"}',
  ];
  const queries = selectors.flatMap((selector) =>
    panels.map((panel) => panel.replaceAll("$s", selector).replaceAll("$r", "5m")),
  );
  const answers = await Promise.all(
    queries.map((query) => get("query_range", { query, ...day, step: "300" })),
  );
  return answers.filter(({ status }) => status === "success").length;
}

/** Name, what to ask, what of the answer is checked, and what it must be. */
const namespacePods = () => podsOf("namespace", "ns-1");
const seen = Math.min(streamCount, lineCount);
const queries = [
  [
    "sum by (level) json, total",
    () => total(`sum by (level) (count_over_time(${all} | json [$all]))`),
    countOf,
    lineCount,
  ],
  [
    "sum by (level) json, graph",
    () => graph(`sum by (level) (count_over_time(${all} | json [1m]))`),
    (a) => a.data.result.length,
    4,
  ],
  [
    "sum by (detected_level), total",
    () => total(`sum by (detected_level) (count_over_time(${all}[$all]))`),
    countOf,
    lineCount,
  ],
  [
    "sum by (detected_level), graph",
    () => graph(`sum by (detected_level) (count_over_time(${all}[1m]))`),
    (a) => a.data.result.length,
    4,
  ],
  ["sum(count), total", () => total(`sum(count_over_time(${all}[$all]))`), countOf, lineCount],
  [
    "sum by (namespace), graph",
    () => graph(`sum by (namespace) (count_over_time(${all}[1m]))`),
    (a) => a.data.result.length,
    namespaceCount,
  ],
  [
    "needle of all streams",
    () => get("query_range", { query: `${all} |= "no such text"`, ...range }),
    (a) => a.data.result.length,
    0,
  ],
  ["labels", () => get("labels", range), (a) => a.data.length, 7],
  [
    "values of namespace",
    () => get("label/namespace/values", range),
    (a) => a.data.length,
    namespaceCount,
  ],
  ["values of pod", () => get("label/pod/values", range), (a) => a.data.length, seen],
  [
    "values of pod in a namespace",
    () => get("label/pod/values", { ...range, query: '{namespace="ns-1"}' }),
    (a) => a.data.length,
    namespacePods,
  ],
  [
    "values of namespace, part of the time",
    () =>
      get("label/namespace/values", {
        ...range,
        start: String(timeOf(Math.floor(lineCount / 2.1))),
      }),
    (a) => a.data.length,
    namespaceCount,
  ],
  ["series of all", () => get("series", { ...range, "match[]": all }), (a) => a.data.length, seen],
  [
    "series of a namespace",
    () => get("series", { ...range, "match[]": '{namespace="ns-1"}' }),
    (a) => a.data.length,
    namespacePods,
  ],
  [
    "series of one pod",
    () => get("series", { ...range, "match[]": ofPod }),
    (a) => a.data.length,
    1,
  ],
  [
    "10 lines of one pod",
    () => get("query_range", { query: ofPod, ...range, limit: "10" }),
    (a) => a.data.result.reduce((sum, { values }) => sum + values.length, 0),
    Math.min(10, Math.floor(lineCount / streamCount)),
  ],
  [
    "10 lines of all",
    () => get("query_range", { query: all, ...range, limit: "10" }),
    (a) => a.data.result.reduce((sum, { values }) => sum + values.length, 0),
    10,
  ],
  ["20 panels over 24 h", panelsOfDashboard, (count) => count, 20, 2],
];

/** What the process has used of its cores, ms. */
async function cpuMs() {
  const metrics = await (await fetch(`${options.url}/metrics`)).text();
  return 1000 * Number(/^process_cpu_seconds_total (\S+)/m.exec(metrics)?.[1]);
}

async function query() {
  console.log(
    "\n| query | first, ms | warm median | min | max | CPU ms each, warm | |\n| --- | --- | --- | --- | --- | --- | --- |",
  );
  for (const [name, ask, measure, wanted, most] of queries) {
    if (!name.includes(options.match)) continue;
    const times = [];
    let verdict = "ok";
    const want = typeof wanted === "function" ? wanted() : wanted;
    let warmFrom = 0;
    for (let run = 0; run <= Math.min(Number(options.runs), most ?? 1000); run++) {
      const started = performance.now();
      try {
        const got = measure(await ask());
        if (got !== want) verdict = `${got}, not ${want}`;
      } catch (error) {
        verdict = error.message;
      }
      times.push(performance.now() - started);
      if (run === 0) warmFrom = await cpuMs();
    }
    const cpu = ((await cpuMs()) - warmFrom) / Math.max(1, times.length - 1);
    const [first, ...warm] = times;
    warm.sort((a, b) => a - b);
    const cells = [first, warm[warm.length >> 1], warm[0], warm.at(-1)].map((ms) =>
      ms?.toFixed(ms < 100 ? 1 : 0),
    );
    console.log(`| ${name} | ${cells.join(" | ")} | ${cpu.toFixed(0)} | ${verdict} |`);
  }
  await describe("after the queries");
}

if (options.only.includes("push")) await push();
if (options.only.includes("query")) await query();
