// What others feel while a case runs, asked for at a fixed pace from a thread of its own. A delay counts from when the call
// was due, whether or not the one before it was answered.
import { Agent } from "node:http";
import { isMainThread, parentPort, Worker, workerData } from "node:worker_threads";
import { WebSocket } from "ws";
import { call } from "./client.mjs";

/** Calls of one kind that may be without an answer; further ones are left out. */
const maxWaiting = 200;

/** A tail that was ended is opened again after this time. */
const reopenMs = 1000;

/** Starts asking; `stop` waits for what is on its way, and resolves with p50, p99 and max of each kind, ms. The small pushes are tailed. */
export function startProbes(url, tenant) {
  const worker = new Worker(new URL(import.meta.url), { workerData: { url, tenant } });
  return {
    stop: () =>
      new Promise((resolve, reject) => {
        worker.once("message", (found) => {
          resolve(found);
          void worker.terminate();
        });
        worker.once("error", reject);
        worker.postMessage("stop");
      }),
  };
}

if (!isMainThread && workerData?.url !== undefined) {
  const { url, tenant } = workerData;
  const kinds = {
    ready: startKind(url, 25, () => ({ path: "/ready" })),
    tiny: startKind(url, 100, () => ({ path: tinyPath(), tenant })),
    push: startKind(url, 100, () => ({ ...smallPush(), tenant })),
    tail: startTail(url, tenant),
  };
  parentPort.once("message", async () => {
    const found = await Promise.all(
      Object.entries(kinds).map(async ([name, kind]) => [name, await kind.stop()]),
    );
    parentPort.postMessage(Object.fromEntries(found));
  });
}

function startKind(url, everyMs, make) {
  const agent = new Agent({ keepAlive: true, maxSockets: maxWaiting });
  const times = [];
  let failed = 0;
  let dueMs = performance.now();
  const waiting = new Set();
  const ask = () => {
    const wasDueMs = dueMs;
    if (waiting.size >= maxWaiting) return;
    const asked = call(url, agent, { ...make(), signal: AbortSignal.timeout(120_000) }).then(
      ({ status }) => {
        waiting.delete(asked);
        times.push(performance.now() - wasDueMs);
        if (!(status >= 200 && status < 300)) failed++;
      },
    );
    waiting.add(asked);
  };
  const timer = setInterval(() => {
    for (; dueMs <= performance.now(); dueMs += everyMs) ask();
  }, 5);
  return {
    stop: async () => {
      timer.close();
      await Promise.all(waiting);
      agent.destroy();
      return { ...summaryOf(times), failed };
    },
  };
}

/** Tails the small pushes: how long after its push a line comes, and how often the tail was ended. */
function startTail(url, tenant) {
  const times = [];
  let failed = 0;
  let socket;
  let isOver = false;
  const open = () => {
    if (isOver) return;
    const path = `/loki/api/v1/tail?${new URLSearchParams({ query: '{app="small"}', start: `${Date.now()}000000` })}`;
    const headers = tenant === undefined ? {} : { "x-scope-orgid": tenant };
    socket = new WebSocket(url.replace("http", "ws") + path, { headers });
    socket.on("error", () => undefined);
    socket.on("message", (data) => {
      for (const { values } of JSON.parse(data).streams ?? [])
        for (const [ns] of values) times.push(Date.now() - Number(ns.slice(0, -6)));
    });
    socket.once("close", () => {
      if (!isOver) failed++;
      setTimeout(open, reopenMs);
    });
  };
  open();
  return {
    stop: async () => {
      isOver = true;
      socket.terminate();
      return { ...summaryOf(times), failed };
    },
  };
}

function summaryOf(times) {
  times.sort((a, b) => a - b);
  const at = (q) => times[Math.min(times.length - 1, Math.floor(times.length * q))];
  return { p50: at(0.5), p99: at(0.99), max: at(1), calls: times.length };
}

function tinyPath() {
  const params = new URLSearchParams({
    query: '{app="tiny"} |= "line 7"',
    limit: "10",
    since: "2h",
  });
  return `/loki/api/v1/query_range?${params}`;
}

function smallPush() {
  const values = [[`${BigInt(Date.now()) * 1_000_000n}`, `a small push ${Math.random()}`]];
  const body = JSON.stringify({ streams: [{ stream: { app: "small" }, values }] });
  return { method: "POST", path: "/loki/api/v1/push", type: "application/json", body };
}
