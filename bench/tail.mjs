// What tails cost those who push: `node bench/tail.mjs [--tails 200] [--mb 20] [--seconds 20] [--args=...]`. Starts the built program,
// pushes so many MB/s of lines without and with tails open, and prints the time of a push, the processor time of the server and
// what the tails got. A tail wants one stream (`stream`), one word of all streams (`word`), or parses all streams (`parse`); `--kinds`
// names those that take turns, by default all three, which is more than two cores can do: rows are dropped then, and told.
// `--queries 4` measures once more while four metric queries run all the time. One more tail has a stream of its own: a line goes
// there ten times a second, and the time until it comes is the latency of tails.
// 2 cores, client included, see bench/README.md for figures.
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { WebSocket } from "ws";
import { builtRuntime } from "../scripts/runtime.mjs";

const { values: args } = parseArgs({
  options: {
    tails: { type: "string", default: "200" },
    mb: { type: "string", default: "20" },
    seconds: { type: "string", default: "20" },
    port: { type: "string", default: "3178" },
    kinds: { type: "string", default: "stream,word,parse" },
    queries: { type: "string", default: "0" },
    args: { type: "string", default: "" },
  },
});
const kinds = args.kinds.split(",");
const root = new URL("..", import.meta.url).pathname;
const dir = mkdtempSync(join(tmpdir(), "skald-tail-"));
const url = `http://127.0.0.1:${args.port}`;
const streams = 200;
const pushMb = 1;
const lineBytes = 200;
const lines = (pushMb * 1e6) / lineBytes;
const timedPeriodMs = 100;
/** Times from the push of a line to its arrival at the timed tail, ms. */
const latencies = [];
const server = spawn(
  builtRuntime() ?? process.execPath,
  [
    "packages/skald/bundle/main.js",
    "-config.file=bench/skald.yaml",
    `-common.path-prefix=${dir}`,
    `-server.http-listen-port=${args.port}`,
    "-server.grpc-listen-port=0",
    "-querier.max-concurrent-tail-requests=0",
    ...args.args.split(" ").filter((arg) => arg !== ""),
  ],
  { cwd: root, stdio: "ignore" },
);
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
try {
  while (
    !(await fetch(`${url}/ready`).then(
      ({ ok }) => ok,
      () => false,
    ))
  )
    await pause(100);
  await measure(3);
  await openTimedTail();
  const without = await measure(Number(args.seconds));
  const got = { messages: 0, bytes: 0, dropped: 0 };
  const tails = Array.from({ length: Number(args.tails) }, (_, i) => openTail(i, got));
  await Promise.all(tails.map((tail) => new Promise((resolve) => tail.once("open", resolve))));
  const withTails = await measure(Number(args.seconds));
  const rows = { without, [`${tails.length} tails`]: withTails };
  if (Number(args.queries) > 0) {
    const over = new AbortController();
    const queries = Array.from({ length: Number(args.queries) }, () => askUntil(over.signal));
    rows[`${tails.length} tails, ${queries.length} queries`] = await measure(Number(args.seconds));
    over.abort();
    await Promise.all(queries);
  }
  console.table(rows);
  console.log(got);
  for (const tail of tails) tail.terminate();
} finally {
  server.kill("SIGKILL");
  rmSync(dir, { recursive: true, force: true });
}

function openTail(i, got) {
  const stream = `{app="a${i % streams}"} |= "status=500"`;
  const queries = {
    stream,
    word: `{app=~"a.+"} |= "needle${i} "`,
    parse: `{app=~"a1.+"} |= "status=500" | logfmt | n="${i}"`,
  };
  const query = queries[kinds[i % kinds.length]];
  // No history: that is a query like others.
  const start = `${Date.now()}000000`;
  const params = new URLSearchParams({ query, limit: "1", start });
  const socket = new WebSocket(`${url.replace("http", "ws")}/loki/api/v1/tail?${params}`);
  socket.on("error", () => undefined);
  socket.on("message", (data) => {
    got.messages++;
    got.bytes += data.length;
    if (data.includes("dropped_entries")) got.dropped++;
  });
  return socket;
}

/** Opens the tail whose latency is measured, and pushes to it for as long as it is open. */
async function openTimedTail() {
  const params = new URLSearchParams({ query: '{app="timed"}', start: `${Date.now()}000000` });
  const socket = new WebSocket(`${url.replace("http", "ws")}/loki/api/v1/tail?${params}`);
  await new Promise((resolve) => socket.once("open", resolve));
  socket.on("error", () => undefined);
  socket.on("message", (data) => {
    for (const { values } of JSON.parse(data).streams ?? [])
      for (const [, line] of values) latencies.push(performance.now() - Number(line));
  });
  const timer = setInterval(() => {
    const values = `["${BigInt(Date.now()) * 1_000_000n}","${performance.now()}"]`;
    push(`{"streams":[{"stream":{"app":"timed"},"values":[${values}]}]}`).catch(() => undefined);
  }, timedPeriodMs);
  socket.on("close", () => clearInterval(timer));
  timer.unref();
}

/** Asks queries that read all lines, one after the other. */
async function askUntil(signal) {
  const query = 'sum by (status) (count_over_time({app=~"a.+"} | logfmt [1m]))';
  const params = new URLSearchParams({ query, since: "10m", step: "10s" });
  while (!signal.aborted)
    await fetch(`${url}/loki/api/v1/query_range?${params}`, { signal }).then(
      (answer) => answer.arrayBuffer(),
      () => undefined,
    );
}

/** Pushes for so many seconds; gives the times of pushes in ms and the processor time of the server in seconds. */
async function measure(seconds) {
  const times = [];
  latencies.length = 0;
  const count = Number(args.mb) * seconds;
  const bodies = Array.from({ length: count }, (_, i) => Buffer.from(makeBody(i)));
  const periodMs = (1000 * pushMb) / Number(args.mb);
  const cpuBefore = cpuSeconds();
  const mainBefore = cpuSeconds(`task/${server.pid}/`);
  const start = performance.now();
  const running = [];
  for (const [i, body] of bodies.entries()) {
    await pause(Math.max(0, start + i * periodMs - performance.now()));
    running.push(push(body).then((ms) => times.push(ms)));
  }
  await Promise.all(running);
  const took = (performance.now() - start) / 1000;
  times.sort((a, b) => a - b);
  const at = (part) => Number(times[Math.floor(part * (times.length - 1))].toFixed(1));
  const mean = times.reduce((sum, ms) => sum + ms, 0) / times.length;
  return {
    "MB/s": Number(((times.length * pushMb) / took).toFixed(1)),
    "mean ms": Number(mean.toFixed(1)),
    "p50 ms": at(0.5),
    "p99 ms": at(0.99),
    "tail p99 ms": Math.round(latencies.sort((a, b) => a - b)[Math.floor(latencies.length * 0.99)]),
    "cpu s": Number((cpuSeconds() - cpuBefore).toFixed(1)),
    "of it main thread": Number((cpuSeconds(`task/${server.pid}/`) - mainBefore).toFixed(2)),
  };
}

function makeBody(number) {
  const base = BigInt(Date.now()) * 1_000_000n;
  const perStream = lines / streams;
  const parts = Array.from({ length: streams }, (_, s) => {
    const values = Array.from({ length: perStream }, (_, l) => {
      const n = s * perStream + l;
      const text = `n=${n} push=${number} status=${n % 50 === 0 ? 500 : 200} needle${n} `;
      return `["${base + BigInt(n)}","${text.padEnd(lineBytes, "x")}"]`;
    });
    return `{"stream":{"app":"a${s}"},"values":[${values}]}`;
  });
  return `{"streams":[${parts}]}`;
}

async function push(body) {
  const start = performance.now();
  const headers = { "content-type": "application/json" };
  const response = await fetch(`${url}/loki/api/v1/push`, { method: "POST", headers, body });
  if (response.status !== 204) throw new Error(`${response.status} ${await response.text()}`);
  return performance.now() - start;
}

function cpuSeconds(thread = "") {
  const fields = readFileSync(`/proc/${server.pid}/${thread}stat`, "utf8")
    .split(") ")[1]
    .split(" ");
  return (Number(fields[11]) + Number(fields[12])) / 100;
}
