// What a dashboard costs that refreshes: `node bench/dashboard.mjs [--mb 200] [--hours 6] [--refreshes 5] [--args=...]`. Starts the
// built program twice, without and with cached results, pushes so many MB of lines of the last hours and flushes them, loads 20
// panels over six connections, and then, as often as told, pushes a few new lines and loads them again one step later. Prints the
// time and the processor time of the server; answers with the cache must be those without. See docs/decisions/015-results-cache.md
// for figures.
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";

const { values: args } = parseArgs({
  options: {
    mb: { type: "string", default: "200" },
    hours: { type: "string", default: "6" },
    refreshes: { type: "string", default: "5" },
    step: { type: "string", default: "30" },
    port: { type: "string", default: "3177" },
    args: { type: "string", default: "" },
  },
});
const root = new URL("..", import.meta.url).pathname;
const url = `http://127.0.0.1:${args.port}`;
const stepSeconds = Number(args.step);
const spanSeconds = Number(args.hours) * 3600;
const apps = ["api", "web", "auth", "cart", "mail"];
const pods = 8;
const lineBytes = 220;
const endSeconds = Math.floor(Date.now() / 1000 / stepSeconds) * stepSeconds;
const beginSeconds = endSeconds - spanSeconds;
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

const panels = [
  ...apps.map((app) => `sum(rate({app="${app}"}[5m]))`),
  ...apps.map((app) => `sum by (pod) (count_over_time({app="${app}"} |= "error" [5m]))`),
  "sum by (app) (rate({app=~`.+`}[1m]))",
  "sum by (app) (bytes_rate({app=~`.+`}[5m]))",
  "topk(5, sum by (pod, app) (rate({app=~`.+`}[5m])))",
  'sum by (status) (count_over_time({app="api"} | logfmt [1m]))',
  'sum(rate({app="api"} | logfmt | status >= 500 [5m])) / sum(rate({app="api"}[5m]))',
  'quantile_over_time(0.99, {app="web"} | logfmt | unwrap ms [5m]) by (app)',
  'avg_over_time({app="cart"} | logfmt | unwrap ms [5m]) by (pod)',
  'max by (app) (max_over_time({app=~"api|web"} | logfmt | unwrap ms [5m]))',
  'sum(count_over_time({app="auth"} |~ "time.?out" [5m]))',
  'sum by (app) (rate({app=~`.+`} |= "GET" [5m]))',
];

let seed = 1;
const random = (n) => {
  seed = (seed * 1103515245 + 12345) % 2147483648;
  return Math.floor((seed / 2147483648) * n);
};

/** The body of a push with so many lines of each stream, between two times in seconds. */
function body(from, to, count) {
  const streams = apps.flatMap((app) =>
    Array.from({ length: pods }, (_, pod) => {
      const values = Array.from({ length: count }, (_, i) => {
        const ns = BigInt(Math.floor((from + ((to - from) * (i + 0.5)) / count) * 1e6)) * 1000n;
        const status = [200, 200, 200, 404, 500][random(5)];
        const what = status === 500 ? "error: timeout of the store" : "request done";
        const line = `method=${random(3) === 0 ? "POST" : "GET"} status=${status} ms=${random(900)} msg="${what}" id=${random(1e9)} `;
        return [String(ns), line.padEnd(lineBytes, "x")];
      });
      return { stream: { app, pod: `${app}-${pod}` }, values };
    }),
  );
  return JSON.stringify({ streams });
}

async function push(text) {
  const headers = { "content-type": "application/json" };
  const { status } = await fetch(`${url}/loki/api/v1/push`, {
    method: "POST",
    headers,
    body: text,
  });
  if (status !== 204) throw new Error(`a push was answered with ${status}`);
}

/** Processor time of the server in ms. */
function cpuMs(pid) {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1].split(" ");
  return (Number(fields[11]) + Number(fields[12])) * 10;
}

/** Loads all panels up to a time; gives the results. */
async function load(end) {
  const answers = new Array(panels.length);
  let next = 0;
  const lane = async () => {
    while (next < panels.length) {
      const i = next++;
      const params = new URLSearchParams({
        query: panels[i],
        start: String(end - spanSeconds),
        end: String(end),
        step: String(stepSeconds),
      });
      const response = await fetch(`${url}/loki/api/v1/query_range?${params}`);
      if (!response.ok) throw new Error(`${panels[i]}: ${await response.text()}`);
      answers[i] = (await response.json()).data.result;
    }
  };
  await Promise.all(Array.from({ length: 6 }, lane));
  return answers;
}

async function measure(pid, end) {
  const cpu = cpuMs(pid);
  const started = performance.now();
  const answers = await load(end);
  return { ms: performance.now() - started, cpuMs: cpuMs(pid) - cpu, answers };
}

async function run(isCached) {
  const dir = mkdtempSync(join(tmpdir(), "skald-dashboard-"));
  seed = 1;
  const flags = [
    "-config.file=bench/skald.yaml",
    `-common.path-prefix=${dir}`,
    `-server.http-listen-port=${args.port}`,
    "-server.grpc-listen-port=0",
    `-common.storage.filesystem.chunk-directory=${dir}/chunks`,
    ...(isCached ? ["-querier.cache-results"] : []),
    ...args.args.split(" ").filter((arg) => arg !== ""),
  ];
  const server = spawn(process.execPath, ["packages/skald/dist/main.js", ...flags], {
    cwd: root,
    stdio: "ignore",
  });
  const isReady = () =>
    fetch(`${url}/ready`).then(
      ({ ok }) => ok,
      () => false,
    );
  try {
    while (!(await isReady())) await pause(100);
    const bodies = Math.ceil((Number(args.mb) * 1e6) / (apps.length * pods * 100 * lineBytes));
    const width = spanSeconds / bodies;
    for (let i = 0; i < bodies; i++) {
      await push(body(beginSeconds + i * width, beginSeconds + (i + 1) * width, 100));
    }
    await fetch(`${url}/flush`, { method: "POST" });
    await load(beginSeconds + 600);
    const first = await measure(server.pid, endSeconds);
    const refreshes = [];
    for (let i = 0; i < Number(args.refreshes); i++) {
      const end = endSeconds + i * stepSeconds;
      await push(body(end, end + stepSeconds, 3));
      refreshes.push(await measure(server.pid, end + stepSeconds));
    }
    return { first, refreshes };
  } finally {
    server.kill("SIGKILL");
    await new Promise((resolve) => server.once("exit", resolve));
    rmSync(dir, { recursive: true, force: true });
  }
}

const median = (numbers) => [...numbers].sort((a, b) => a - b)[Math.floor(numbers.length / 2)];
const row = ({ first, refreshes }) => ({
  "first ms": Math.round(first.ms),
  "first CPU ms": first.cpuMs,
  "refresh ms": Math.round(median(refreshes.map(({ ms }) => ms))),
  "refresh CPU ms": median(refreshes.map((one) => one.cpuMs)),
});
const without = await run(false);
const cached = await run(true);
console.table({ "without cache": row(without), "with cache": row(cached) });

/** Answers as texts; sums of fractions may differ in their last digits. */
const texts = ({ first, refreshes }) =>
  [first, ...refreshes].map(({ answers }) =>
    answers.map((series) =>
      JSON.stringify(series, (key, value) =>
        key === "1" && typeof value === "string" ? Number(value).toPrecision(12) : value,
      ),
    ),
  );
const [a, b] = [texts(without), texts(cached)];
const differ = a.flatMap((load, i) =>
  load.flatMap((text, j) => (text === b[i][j] ? [] : [`load ${i}: ${panels[j]}`])),
);
console.log(differ.length === 0 ? "all answers are equal" : differ);
process.exitCode = differ.length === 0 ? 0 : 1;
