// The server under attack: what /proc and its metrics say of it, and a process of our own for each case.
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

const root = new URL("../..", import.meta.url).pathname;
const startTimeoutMs = 60_000;
/** Longest wait for the server to be calm again. */
const calmTimeoutMs = 120_000;
const stretchLine = /^\w+_main_thread_stretch_seconds_bucket\{.*le="([^"]+)".*\} (\d+)$/gm;

export function sleep(forMs) {
  return new Promise((resolve) => setTimeout(resolve, forMs));
}

/** A server that runs already. */
export function attach(url, pid) {
  return { ...watch(url, pid), stop: async () => undefined };
}

/** Starts the built program with `bench/hostile.yaml` and an empty folder; resolves when it is ready. */
export async function start() {
  const folder = mkdtempSync(join(tmpdir(), "skald-hostile-"));
  const port = await freePort();
  const child = spawn(
    join(root, "bin/skald"),
    [
      "-config.file=bench/hostile.yaml",
      `-common.path-prefix=${folder}`,
      `-common.storage.filesystem.chunk-directory=${join(folder, "chunks")}`,
      `-server.http-listen-port=${port}`,
      "-server.grpc-listen-port=0",
    ],
    { cwd: root, stdio: "ignore" },
  );
  const ended = new Promise((resolve) => child.once("exit", resolve));
  const server = watch(`http://127.0.0.1:${port}`, child.pid, () => child.exitCode === null);
  const stop = async () => {
    child.kill("SIGKILL");
    await ended;
    rmSync(folder, { recursive: true, force: true });
  };
  const until = performance.now() + startTimeoutMs;
  const isReady = () =>
    fetch(`${server.url}/ready`).then(
      ({ ok }) => ok,
      () => false,
    );
  while (!(await isReady())) {
    if (!server.isRunning() || performance.now() > until) {
      await stop();
      throw new Error("the server does not start: run `npm run build`, and see bench/hostile.yaml");
    }
    await sleep(100);
  }
  return { ...server, stop };
}

function watch(url, pid, isRunning = () => hasProcess(pid)) {
  const proc = (file) => readFileSync(`/proc/${pid}/${file}`, "utf8");
  const memoryMiB = (name) =>
    Math.round(Number(new RegExp(`${name}:\\s*(\\d+) kB`).exec(proc("status"))?.[1] ?? 0) / 1024);
  const cpuTicks = () => {
    const fields = proc("stat").split(") ")[1].split(" ");
    return Number(fields[11]) + Number(fields[12]);
  };
  return {
    url,
    isRunning,
    /** CPU time of the main thread so far, which other load does not change, and how long it waited for a core. */
    mainThreadMs: () => {
      const [cpu, waited] = proc(`task/${pid}/schedstat`).split(" ");
      return { cpu: Number(cpu) / 1e6, waited: Number(waited) / 1e6 };
    },
    residentMiB: () => memoryMiB("VmRSS"),
    peakMiB: () => memoryMiB("VmHWM"),
    /** Makes the peak what is in memory now, where the system lets us. */
    resetPeak: () => {
      try {
        writeFileSync(`/proc/${pid}/clear_refs`, "5");
      } catch {
        console.error("the peak of memory cannot be reset: it is that of all cases so far");
      }
    },
    /** Resolves when the process takes less than a fifth of a core for a second. */
    calm: async () => {
      const until = performance.now() + calmTimeoutMs;
      while (isRunning() && performance.now() < until) {
        const before = cpuTicks();
        await sleep(1000);
        if (!isRunning() || cpuTicks() - before < 20) return;
      }
    },
    /** Stretches of the main thread so far: how many were longer than each bound, in seconds. */
    stretches: async () => {
      const text = await fetch(`${url}/metrics`).then((answer) => answer.text());
      const shorter = new Map();
      for (const [, le, count] of text.matchAll(stretchLine))
        shorter.set(le, (shorter.get(le) ?? 0) + Number(count));
      const all = shorter.get("+Inf") ?? 0;
      return new Map([...shorter].map(([le, count]) => [Number(le), all - count]));
    },
  };
}

/** The largest bound that a stretch since `before` was longer than, ms; 0 where there was none. */
export function longestStretchMs(before, now) {
  const passed = [...now].filter(([bound, count]) => count > (before.get(bound) ?? 0));
  return passed.reduce((most, [bound]) => Math.max(most, bound * 1000), 0);
}

function hasProcess(pid) {
  try {
    process.kill(Number(pid), 0);
    return true;
  } catch {
    return false;
  }
}

async function freePort() {
  const server = createServer().listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  return port;
}
