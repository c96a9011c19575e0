// Skald beside anything that speaks the same API, with the same logs and the same queries, in turns on one machine:
//   node bench/compare.mjs                                            Skald alone, started on a directory of its own
//   node bench/compare.mjs --with loki=http://127.0.0.1:3200,PID      Skald and a server that runs already
// [--mb 1000] [--runs 7] [--seed 1] [--skald http://127.0.0.1:3100,PID] for a Skald that runs already, [--tenant T].
// Servers need room for 10 MB/s and more of pushes: ingestion and per-stream limits. Every answer is checked against what the
// generator counted; where two servers answer the same query, they have to agree. Ends with 1 if anything was wrong.
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { Agent, request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { makeLogs } from "./compare/logs.mjs";
import { queries } from "./compare/queries.mjs";

const connections = 4;
const ticksPerSecond = 100;
const { values: args } = parseArgs({
  options: {
    with: { type: "string", multiple: true, default: [] },
    skald: { type: "string" },
    mb: { type: "string", default: "1000" },
    runs: { type: "string", default: "7" },
    seed: { type: "string", default: "1" },
    tenant: { type: "string" },
  },
});
const agent = new Agent({ keepAlive: true, maxSockets: connections });
const own = args.skald === undefined ? await startSkald() : undefined;
let failures = 0;
try {
  const servers = [own ?? serverOf(`skald=${args.skald}`), ...args.with.map(serverOf)];
  const counts = await push(servers);
  await Promise.all(servers.map(({ url }) => call({ url, path: "/flush", method: "POST" })));
  console.log(
    `\n${counts.lines} lines, ${Math.round(counts.bytes / 1e6)} MB, ${counts.streams} streams\n`,
  );
  await ask(servers, counts);
} finally {
  own?.stop();
  agent.destroy();
}
process.exitCode = failures === 0 ? 0 : 1;

/** `NAME=URL[,PID...]`: the CPU of the processes is counted where they are named. */
function serverOf(text) {
  const [, name, url, pids] = /^(\w+)=([^,]+)((?:,\d+)*)$/.exec(text) ?? [];
  if (url === undefined) throw new Error(`${text} is not NAME=URL,PID`);
  return { name, url, pids: pids.split(",").filter((pid) => pid !== "") };
}

async function startSkald() {
  const dir = mkdtempSync(join(tmpdir(), "skald-compare-"));
  const config = readFileSync(new URL("skald.yaml", import.meta.url), "utf8");
  writeFileSync(join(dir, "skald.yaml"), config.replaceAll("./data-bench", join(dir, "data")));
  const port = "3199";
  const program = new URL("../bin/skald", import.meta.url).pathname;
  const child = spawn(
    program,
    [`-config.file=${join(dir, "skald.yaml")}`, `-server.http-listen-port=${port}`],
    {
      stdio: ["ignore", "ignore", "inherit"],
    },
  );
  const server = {
    name: "skald",
    url: `http://127.0.0.1:${port}`,
    pids: [String(child.pid)],
    stop: () => {
      child.once("exit", () => rmSync(dir, { recursive: true, force: true }));
      child.kill();
    },
  };
  for (;;) {
    const { status } = await call({ ...server, path: "/ready" });
    if (status === 200) return server;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

/** Sends each body to one server after the other, so that what disturbs one disturbs all. */
async function push(servers) {
  const tallies = servers.map((server) => ({ ms: 0, cpu: 0, peak: 0, server }));
  let waiting = [];
  const send = async () => {
    const bodies = waiting;
    waiting = [];
    for (const tally of tallies) {
      const [startMs, startCpu] = [performance.now(), cpuOf(tally.server)];
      await Promise.all(bodies.map((body) => pushBody(tally.server, body)));
      tally.ms += performance.now() - startMs;
      tally.cpu += cpuOf(tally.server) - startCpu;
    }
  };
  const counts = await makeLogs({
    ...{ megabytes: Number(args.mb), seed: Number(args.seed) },
    endNs: BigInt(Date.now()) * 1_000_000n,
    take: async ({ body }) => {
      waiting.push(body);
      if (waiting.length === connections) await send();
    },
  });
  await send();
  const megabytes = counts.bytes / 1e6;
  console.log(
    "| ingest | MB/s | MB per CPU second | memory at its peak, MiB |\n| --- | ---: | ---: | ---: |",
  );
  for (const { server, ms, cpu } of tallies) {
    const perCpu = server.pids.length === 0 ? "" : (megabytes / cpu).toFixed(1);
    console.log(
      `| ${server.name} | ${((megabytes * 1000) / ms).toFixed(1)} | ${perCpu} | ${peakOf(server)} |`,
    );
  }
  return counts;
}

async function pushBody(server, body) {
  for (;;) {
    const { status, text } = await call({
      ...server,
      ...{ path: "/loki/api/v1/push", method: "POST", type: "application/x-protobuf", body },
    });
    if (status < 300) return;
    // Servers that lag behind say so.
    if (status !== 429 && status < 500) throw new Error(`${server.name}: ${status} ${text}`);
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
}

async function ask(servers, counts) {
  const heads = servers.map(({ name }) => `${name}, ms (min-max) | CPU ms`);
  console.log(
    `| query | ${heads.join(" | ")} |\n| --- |${" ---: | ---: |".repeat(servers.length)}`,
  );
  for (const query of queries) {
    const runs = servers.map(() => ({ ms: [], cpu: 0, result: undefined }));
    // The first run is not counted.
    for (let run = 0; run <= Number(args.runs); run++) {
      for (const [i, server] of servers.entries()) {
        const startCpu = cpuOf(server);
        const { ms, status, text } = await call({ ...server, ...requestOf(query, counts) });
        runs[i].result = status === 200 ? resultOf(JSON.parse(text)) : undefined;
        if (run === 0) continue;
        runs[i].ms.push(ms);
        runs[i].cpu += cpuOf(server) - startCpu;
      }
    }
    const cells = runs.map(({ ms, cpu, result }, i) => {
      const isRight =
        result !== undefined &&
        (query.check?.(result, counts) ?? true) &&
        agree(result, runs[0].result);
      if (!isRight) failures++;
      const sorted = ms.toSorted((a, b) => a - b);
      const [least, median, most] = [sorted[0], sorted[sorted.length >> 1], sorted.at(-1)].map(
        digits,
      );
      const cpuMs = servers[i].pids.length === 0 ? "" : digits((cpu * 1000) / ms.length);
      return `${median} (${least}-${most})${isRight ? "" : " WRONG"} | ${cpuMs}`;
    });
    console.log(`| ${query.name} | ${cells.join(" | ")} |`);
  }
}

function requestOf({ kind, query, limit = 1000 }, { startNs, endNs }) {
  const window = { start: String(startNs), end: String(endNs + 1n) };
  const path = (name, params) => ({ path: `/loki/api/v1/${name}?${new URLSearchParams(params)}` });
  if (kind === "values") return path(`label/${query}/values`, window);
  if (kind === "instant") return path("query", { query, time: String(endNs) });
  if (kind === "range") return path("query_range", { query, ...window, step: "60" });
  return path("query_range", { query, ...window, limit: String(limit) });
}

function resultOf({ data }) {
  return Array.isArray(data) ? data : data.result;
}

/** Whether two servers say the same: as many series or streams, and as many points or lines in all. */
function agree(a, b) {
  const sizeOf = (result) => result.reduce((sum, one) => sum + (one.values?.length ?? 1), 0);
  return b === undefined || (a.length === b.length && sizeOf(a) === sizeOf(b));
}

function digits(ms) {
  return ms < 10 ? ms.toFixed(1) : String(Math.round(ms));
}

/** CPU seconds of the processes of a server so far. */
function cpuOf({ pids }) {
  return pids.reduce((sum, pid) => {
    const fields = readFileSync(`/proc/${pid}/stat`, "utf8")
      .replace(/^.*\) /, "")
      .split(" ");
    return sum + (Number(fields[11]) + Number(fields[12])) / ticksPerSecond;
  }, 0);
}

function peakOf({ pids }) {
  if (pids.length === 0) return "";
  const peaks = pids.map((pid) =>
    Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))[1]),
  );
  return Math.round(peaks.reduce((sum, kib) => sum + kib, 0) / 1024);
}

/** Calls and resolves with `{ status, ms, text }`; a server that does not answer has the status 0. */
function call({ url, path, method = "GET", type, body }) {
  const startMs = performance.now();
  const headers = {
    ...(args.tenant === undefined ? {} : { "x-scope-orgid": args.tenant }),
    ...(type === undefined ? {} : { "content-type": type, "content-length": body.length }),
  };
  return new Promise((resolve) => {
    const sent = request(url + path, { method, agent, headers }, async (answer) => {
      const parts = [];
      for await (const part of answer) parts.push(part);
      const text = Buffer.concat(parts).toString();
      resolve({ status: answer.statusCode, ms: performance.now() - startMs, text });
    });
    sent.on("error", (error) => resolve({ status: 0, ms: 0, text: error.message }));
    sent.end(body);
  });
}
