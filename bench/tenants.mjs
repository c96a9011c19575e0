// Many tenants on one node: `node bench/tenants.mjs [flood|stop|quiet|kill] [--tenants 10000] [--pushes 60000] [--lines 10]
// [--connections 32] [--busy-mb 1500] [--dir DIR] [--args="-ingester.max-head-memory=64MB"]`. Starts the built program on a
// directory of its own, sends pushes over sockets kept open, and prints one table.
//   flood  small pushes of all tenants in turn, then a flush: pushes per second, how many segments were made of them, and objects
//          (200 tenants, 12,000 pushes of 20 lines, max-head-memory=8MB: 850 segments are 1.00 objects a tenant instead of 4.26, the flush 2.8 CPU s instead of 1.6)
//   stop   the same with one push per tenant, then SIGTERM with everything to be sealed and uploaded: seconds until it has ended
//   kill   a log of --log-mb 1000 with nothing of it sealed (100 tenants), SIGKILL, and a start with the usual settings: seconds
//          until it is ready, until a query has counted every line, and the delay of pushes meanwhile
//   quiet  one busy tenant beside many that push a row now and then (500 unless --tenants says else): what their segments hold
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";

const { values: args, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    tenants: { type: "string" },
    pushes: { type: "string" },
    lines: { type: "string", default: "10" },
    connections: { type: "string", default: "32" },
    "busy-mb": { type: "string", default: "1500" },
    "log-mb": { type: "string", default: "1000" },
    dir: { type: "string", default: tmpdir() },
    args: { type: "string", default: "" },
    port: { type: "string", default: "3177" },
  },
});
const mode = positionals[0] ?? "flood";
const lineBytes = 100;
const row = "x".repeat(lineBytes - 12);
const root = new URL("..", import.meta.url).pathname;
const dir = mkdtempSync(join(args.dir, "skald-tenants-"));
/** Heads that nothing freezes. */
const keepAll = ["-ingester.head-target-size=8GB", "-ingester.max-head-memory=8GB"];
let server = startServer(mode === "kill" ? keepAll : []);
let clockNs = BigInt(Date.now()) * 1_000_000n;
try {
  await until(async () => (await get("/ready")).ok);
  if (mode === "flood") await flood(Number(args.tenants ?? 10_000), Number(args.pushes ?? 60_000));
  else if (mode === "stop") await stop(Number(args.tenants ?? 10_000));
  else if (mode === "quiet") await quiet(Number(args.tenants ?? 500), Number(args["busy-mb"]));
  else if (mode === "kill") await kill(Number(args.tenants ?? 100), Number(args["log-mb"]));
  else throw new Error(`unknown mode ${mode}: flood, stop, quiet or kill`);
} finally {
  await endServer();
  rmSync(dir, { recursive: true });
}

async function flood(tenants, pushes) {
  const { seconds, refused } = await pushInTurn(tenants, pushes);
  const { sealed, reasons } = await segments();
  const cpuBefore = cpuSeconds();
  await fetch(`http://127.0.0.1:${args.port}/flush`, { method: "POST" });
  const flushed = cpuSeconds() - cpuBefore;
  print({
    tenants,
    pushes,
    "pushes/s": Math.round(pushes / seconds),
    refused,
    segments: sealed,
    "segments/tenant": (sealed / tenants).toFixed(2),
    "objects/tenant": ((await stored()) / tenants).toFixed(2),
    "flush CPU s": flushed.toFixed(1),
    reasons,
    "peak MiB": peakMiB(),
  });
}

async function stop(tenants) {
  await pushInTurn(tenants, Number(args.pushes ?? tenants));
  const cpuBefore = cpuSeconds();
  const start = performance.now();
  await endServer(() => (stop.cpu = cpuSeconds() - cpuBefore));
  print({
    tenants,
    "SIGTERM s": ((performance.now() - start) / 1000).toFixed(1),
    "CPU s (at least)": stop.cpu?.toFixed(1),
  });
}

async function kill(tenants, logMb) {
  const lines = 2500;
  const pushes = Math.ceil((logMb * 1e6) / (lines * (lineBytes + 27)));
  await pushInTurn(tenants, pushes, lines);
  const size = await gauge("loki_ingester_wal_disk_bytes");
  await endServer(undefined, "SIGKILL");
  const start = performance.now();
  const seconds = () => ((performance.now() - start) / 1000).toFixed(2);
  server = startServer();
  await until(async () => (await get("/ready")).ok, 5);
  const ready = seconds();
  const readyCpu = cpuSeconds();
  const delays = [];
  let counted;
  const probing = (async () => {
    const probe = requestOf("probe", 1);
    while (counted === undefined) {
      const from = performance.now();
      await sendAll(1, () => probe());
      delays.push(performance.now() - from);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  })();
  const query = "sum(count_over_time({app=%22a%22}[1h]))";
  const all = Array.from({ length: tenants }, (_, i) => `tenant-${i}`).join("|");
  let text = "";
  await until(async () => {
    const answer = await get(`/loki/api/v1/query?query=${query}`, { "x-scope-orgid": all });
    text = answer.text;
    return answer.ok;
  });
  counted = seconds();
  await probing;
  const count = /"(\d+)"\]\}\]/.exec(text)?.[1] ?? text;
  delays.sort((a, b) => a - b);
  print({
    tenants,
    "log MB": (size / 1e6).toFixed(0),
    "ready s": ready,
    "CPU s until then": readyCpu.toFixed(2),
    "counted s": counted,
    lines: `${count} of ${pushes * lines}`,
    pushes: delays.length,
    "push p50 ms": delays[delays.length >> 1].toFixed(1),
    "push max ms": delays.at(-1).toFixed(1),
    "peak MiB": peakMiB(),
  });
}

async function quiet(tenants, busyMb) {
  const bodyBytes = 1024 * 1024;
  const big = requestOf("busy", Math.floor(bodyBytes / lineBytes));
  const share = Math.ceil(busyMb / 8);
  const start = performance.now();
  for (let sent = 0; sent < busyMb; sent += share) {
    await sendAll(share, () => big());
    await pushInTurn(tenants, tenants, 1);
  }
  const seconds = (performance.now() - start) / 1000;
  await until(async () => (await gauge("loki_ingester_flush_queue_length")) === 0);
  const { sealed, reasons } = await segments();
  const logMb = (await gauge("loki_ingester_wal_disk_bytes")) / 1024 / 1024;
  print({
    "quiet tenants": tenants,
    "busy MB": busyMb,
    "busy MB/s": (busyMb / seconds).toFixed(0),
    segments: sealed,
    reasons,
    "log MB": logMb.toFixed(0),
    "peak MiB": peakMiB(),
  });
}

function pushInTurn(tenants, pushes, lines = Number(args.lines)) {
  const makers = Array.from({ length: tenants }, (_, i) => requestOf(`tenant-${i}`, lines));
  return sendAll(pushes, (i) => makers[i % tenants]());
}

/** Makes requests of a tenant; each has newer rows than the last. */
function requestOf(tenant, lines) {
  return () => {
    const values = Array.from(
      { length: lines },
      () => `["${clockNs++}","${clockNs % 1000000n} ${row}"]`,
    );
    const body = `{"streams":[{"stream":{"app":"a"},"values":[${values.join(",")}]}]}`;
    return Buffer.from(
      `POST /loki/api/v1/push HTTP/1.1\r\nhost: s\r\nx-scope-orgid: ${tenant}\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
    );
  };
}

/** Sends so many requests, one at a time on each connection. */
async function sendAll(count, make) {
  let next = 0;
  let refused = 0;
  const start = performance.now();
  const one = () =>
    new Promise((resolve, reject) => {
      const socket = connect(Number(args.port), "127.0.0.1");
      let text = "";
      const send = () => {
        if (next === count) {
          socket.destroy();
          resolve();
        } else socket.write(make(next++));
      };
      socket.on("connect", send);
      socket.on("error", reject);
      socket.on("data", (bytes) => {
        text += bytes.toString("latin1");
        const end = text.indexOf("\r\n\r\n");
        if (end < 0) return;
        const length = Number(/content-length: (\d+)/i.exec(text)?.[1] ?? 0);
        if (text.length < end + 4 + length) return;
        if (!text.startsWith("HTTP/1.1 204")) refused++;
        text = "";
        send();
      });
    });
  await Promise.all(Array.from({ length: Math.min(count, Number(args.connections)) }, one));
  return { seconds: (performance.now() - start) / 1000, refused };
}

function startServer(more = []) {
  const limits = ["ingestion-rate-limit-mb=1000", "ingestion-burst-size-mb=1000"];
  return spawn(
    process.execPath,
    [
      join(root, "packages/skald/bundle/main.js"),
      `-config.file=${join(root, "bench/skald.yaml")}`,
      "-auth.enabled=true",
      `-common.path-prefix=${join(dir, "data")}`,
      `-server.http-listen-port=${args.port}`,
      ...limits.map((limit) => `-distributor.${limit}`),
      ...(mode === "stop" ? ["-ingester.flush-on-shutdown=true"] : []),
      ...more,
      ...(mode === "kill" ? ["-querier.multi-tenant-queries-enabled=true"] : []),
      ...args.args.split(" ").filter((arg) => arg !== ""),
    ],
    { cwd: dir, stdio: ["ignore", "ignore", process.env.VERBOSE ? "inherit" : "ignore"] },
  );
}

async function endServer(meanwhile = () => undefined, signal = "SIGTERM") {
  if (server.exitCode !== null || server.signalCode !== null) return;
  const ended = new Promise((resolve) => server.once("exit", resolve));
  const timer = setInterval(meanwhile, 100);
  server.kill(signal);
  await ended;
  clearInterval(timer);
}

async function segments() {
  const { text } = await get("/metrics");
  const counts = [
    ...text.matchAll(/^loki_ingester_chunks_flushed_total\{reason="(\w+)"\} (\d+)/gm),
  ];
  const sealed = counts.reduce((sum, [, , count]) => sum + Number(count), 0);
  return { sealed, reasons: counts.map(([, reason, count]) => `${reason} ${count}`).join(", ") };
}

/** Objects of all tenants. */
async function stored() {
  const { text } = await get("/metrics");
  const counts = [...text.matchAll(/^loki_ingester_chunks_stored_total\{.*\} (\d+)/gm)];
  return counts.reduce((sum, [, count]) => sum + Number(count), 0);
}

async function gauge(name) {
  const { text } = await get("/metrics");
  return Number(new RegExp(`^${name} (\\S+)`, "m").exec(text)?.[1] ?? 0);
}

async function get(path, headers = {}) {
  const response = await fetch(`http://127.0.0.1:${args.port}${path}`, { headers }).catch(
    () => undefined,
  );
  return { ok: response?.ok ?? false, text: (await response?.text()) ?? "" };
}

async function until(condition, pauseMs = 50) {
  while (!(await condition())) await new Promise((resolve) => setTimeout(resolve, pauseMs));
}

function peakMiB() {
  const status = readFileSync(`/proc/${server.pid}/status`, "utf8");
  return Math.round(Number(/VmHWM:\s+(\d+)/.exec(status)?.[1]) / 1024);
}

function cpuSeconds() {
  try {
    const fields = readFileSync(`/proc/${server.pid}/stat`, "utf8").split(") ")[1].split(" ");
    return (Number(fields[11]) + Number(fields[12])) / 100;
  } catch {
    return stop.cpu;
  }
}

function print(row) {
  console.log(
    `${mode}: ${Object.entries(row)
      .map(([name, value]) => `${name} ${value}`)
      .join(" | ")}`,
  );
}
