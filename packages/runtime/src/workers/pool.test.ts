import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { readdirSync, readFileSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import { afterEach, describe, expect, it } from "@jest/globals";
import { errorCodeOf, SkaldError } from "@skald/model";
import { helpersYield, jobNiceness } from "./jobs.js";
import type { JobOptions, JobQueue, WaitingJob } from "./seat.js";
import { background, closePools, failureOf, hold, makePool, now, until } from "./testing/pool.js";

afterEach(closePools);

describe("WorkerPool", () => {
  it("runs jobs, synchronous or not", async () => {
    const pool = makePool({ size: 2 });
    const doubles = Array.from({ length: 20 }, (_, n) => pool.run<number>("double", { n }, now));
    expect(await Promise.all(doubles)).toEqual(Array.from({ length: 20 }, (_, n) => n * 2));
    expect(await pool.run("later", { n: 7 }, background)).toBe(7);
    expect(pool.size).toBe(2);
  });

  it("starts a thread of urgent jobs and one of all lanes ahead when it is asked to", async () => {
    const started: unknown[] = [];
    const count = (message: unknown) => started.push(message);
    subscribe("worker_threads", count);
    const pool = makePool({ size: 2, urgentJobs: 4, ownThreads: ["decode"], lazy: true });
    expect([started.length, pool.warm(), pool.warm(), pool.warm()]).toEqual([0, true, true, false]);
    await pool.run("double", { n: 1 }, { lane: "urgent" });
    await pool.run("double", { n: 1 }, now);
    expect(started.length).toBe(2);
    await pool.close();
    expect(pool.warm()).toBe(false);
    unsubscribe("worker_threads", count);
  });

  const linux = process.platform === "linux" ? it : it.skip;
  const niceness = (name = "") =>
    readdirSync("/proc/self/task").flatMap((task) => {
      const stat = readFileSync(`/proc/self/task/${task}/stat`, "utf8");
      // The name of a thread may have blanks; its niceness is the 17th number behind it.
      const nice = Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[16]);
      return stat.includes(name) ? [nice] : [];
    });

  linux("has threads that leave a busy core to the main thread", async () => {
    const nice = () => niceness().filter((one) => one === jobNiceness).length;
    const before = nice();
    const pool = makePool({ size: 2 });
    await Promise.all(Array.from({ length: 8 }, (_, n) => pool.run("double", { n }, now)));
    expect(nice() - before).toBe(2);
    expect(niceness()).toContain(0);
  });

  linux("leaves a busy core to the main thread by the helpers of V8, too", () => {
    helpersYield();
    const helpers = niceness("(V8Worker)");
    expect(helpers.length).toBeGreaterThan(0);
    expect(new Set(helpers)).toEqual(new Set([jobNiceness]));
  });

  it("has threads that give back what a large job left at once, and what small ones left later", async () => {
    const pool = makePool();
    const litter = (mib: number) => pool.run<number>("litter", { mib }, now);
    await litter(100);
    await pause(300);
    expect(await litter(20)).toBe(1);
    // One that has another job before that does not.
    expect(await litter(0)).toBe(1);
    await pause(1500);
    expect(await litter(0)).toBe(2);
  });

  it("starts what a queue held back when it is told to go on", async () => {
    const jobs: WaitingJob[] = [];
    let isHeld = true;
    const query: JobQueue = {
      get size() {
        return jobs.length;
      },
      push: (job) => jobs.push(job),
      take: () => (isHeld ? undefined : jobs.shift()),
      delete: () => false,
    };
    const pool = makePool({ queues: { query } });
    const double = pool.run<number>("double", { n: 4 }, now);
    await pool.run("double", { n: 1 }, background);
    expect(jobs).toHaveLength(1);
    isHeld = false;
    pool.resume();
    expect(await double).toBe(8);
  });

  it("runs a tail next, however many queries wait", async () => {
    const pool = makePool();
    const first = hold(pool);
    await first.started;
    const ended: string[] = [];
    const queries = Array.from({ length: 20 }, (_, n) =>
      pool.run("double", { n }, now).then(() => ended.push("query")),
    );
    const tails = Array.from({ length: 3 }, (_, n) =>
      pool.run("double", { n }, { lane: "tail" }).then(() => ended.push("tail")),
    );
    first.release();
    await Promise.all([...queries, ...tails]);
    expect(ended.slice(0, 6).filter((kind) => kind === "tail")).toHaveLength(3);
  });

  it("gives its first thread a job of a spare lane only while no query came lately", async () => {
    const lanes = { longLanes: ["background"], spareLanes: ["seal"] } as const;
    const quiet = makePool({ size: 2, ...lanes });
    const long = hold(quiet, background);
    const spare = hold(quiet, { lane: "seal" });
    await Promise.all([long.started, spare.started]);
    for (const { release } of [long, spare]) release();

    const asked = makePool({ size: 2, ...lanes });
    const other = hold(asked, background);
    await other.started;
    await asked.run("double", { n: 1 }, now);
    let isSealed = false;
    const sealed = asked.run("double", { n: 2 }, { lane: "seal" }).then(() => (isSealed = true));
    await asked.run("double", { n: 3 }, now);
    expect(isSealed).toBe(false);
    other.release();
    await sealed;
  });

  it("runs as many jobs at a time as it has threads", async () => {
    const pool = makePool({ size: 2 });
    const holds = [hold(pool), hold(pool)];
    await Promise.all(holds.map(({ started }) => started));
    let isDone = false;
    const third = pool.run("double", { n: 1 }, now).then(() => {
      isDone = true;
    });
    await new Promise((resolve) => setImmediate(resolve));
    expect(isDone).toBe(false);
    for (const { release } of holds) release();
    await third;
    expect(await Promise.all(holds.map(({ result }) => result))).toEqual(["done", "done"]);
  });

  it("moves buffers there and back", async () => {
    const pool = makePool();
    const bytes = Uint8Array.of(1, 2, 3);
    const back = await pool.run<Uint8Array>(
      "move",
      { bytes },
      { ...now, transfer: [bytes.buffer] },
    );
    expect(bytes.length).toBe(0);
    expect([...back]).toEqual([1, 2, 3]);
  });
});

describe("lanes", () => {
  it("take turns, each first in first out", async () => {
    const pool = makePool();
    const first = hold(pool);
    await first.started;
    const order: string[] = [];
    const add = (name: string, options: JobOptions) =>
      pool.run("double", { n: 1 }, options).then(() => order.push(name));
    const jobs = [
      add("q1", now),
      add("q2", now),
      add("q3", now),
      add("b1", background),
      add("b2", background),
    ];
    first.release();
    await Promise.all(jobs);
    expect(order).toEqual(["b1", "q1", "b2", "q2", "q3"]);
  });

  it("are bounded, each on its own", async () => {
    const pool = makePool({ maxQueued: 2 });
    const first = hold(pool);
    await first.started;
    const waiting = [pool.run("double", { n: 1 }, now), pool.run("double", { n: 2 }, now)];
    const refused = await failureOf(pool.run("double", { n: 3 }, now));
    expect(refused).toMatchObject({ code: "unavailable", message: "more than 2 jobs are waiting" });
    const other = pool.run("double", { n: 4 }, background);
    first.release();
    expect(await Promise.all([...waiting, other])).toEqual([2, 4, 8]);
  });
});

describe("calls of a job", () => {
  const host = {
    twice: (n: number) => ({ value: n * 2 }),
    bytes: (bytes: Uint8Array<ArrayBuffer>) => ({ value: bytes, transfer: [bytes.buffer] }),
    refuse: () => {
      throw new SkaldError("rate_limited", "slow down", { retryAfterSeconds: 3 });
    },
  };

  it("are answered by the functions given with it", async () => {
    const pool = makePool();
    const ask = (name: string, value: unknown) =>
      pool.run<unknown>("ask", { name, value }, { ...now, host });
    expect(await ask("twice", 21)).toBe(42);
    expect(await ask("bytes", Uint8Array.of(7))).toEqual(Uint8Array.of(7));
    expect(await failureOf(ask("refuse", 0))).toMatchObject({
      code: "rate_limited",
      message: "slow down",
      retryAfterSeconds: 3,
    });
    expect((await failureOf(ask("other", 0))).message).toBe("job ask may not call other");
  });

  it("can be given up one by one; the function hears of it", async () => {
    let aborted = 0;
    const never = (_n: number, { signal }: { signal: AbortSignal }) =>
      new Promise<{ value: number }>(() => signal.addEventListener("abort", () => aborted++));
    const answer = makePool().run("askTwice", {}, { ...now, host: { ...host, never } });
    expect(await answer).toEqual(["Error: given up", 4]);
    expect(aborted).toBe(1);
  });

  it("end with the job", async () => {
    const pool = makePool();
    const stop = new AbortController();
    let ended = false;
    const waits = (_n: number, { signal }: { signal: AbortSignal }) =>
      new Promise<{ value: number }>(() => {
        signal.addEventListener("abort", () => {
          ended = true;
        });
        void pool.close();
      });
    const options = { ...now, signal: stop.signal, host: { waits } };
    await failureOf(pool.run("ask", { name: "waits", value: 1 }, options));
    expect(ended).toBe(true);
  });
});

describe("a job that waits", () => {
  it("is told by its signal that its caller has gone", async () => {
    const pool = makePool();
    const flag = new Int32Array(new SharedArrayBuffer(8));
    const stop = new AbortController();
    const running = failureOf(pool.run("untilSignal", { flag }, { ...now, signal: stop.signal }));
    await until(() => Atomics.load(flag, 0) === 1);
    stop.abort();
    expect(errorCodeOf(await running)).toBe("cancelled");
  });
});

describe("urgent jobs", () => {
  it("have a thread of their own, which takes several at a time", async () => {
    const pool = makePool({ urgentJobs: 2 });
    const held = hold(pool);
    await held.started;
    const urgent: JobOptions = { lane: "urgent" };
    const flag = new Int32Array(new SharedArrayBuffer(8));
    const stop = new AbortController();
    const waiting = failureOf(
      pool.run("untilSignal", { flag }, { ...urgent, signal: stop.signal }),
    );
    await until(() => Atomics.load(flag, 0) === 1);
    expect(await pool.run("double", { n: 2 }, urgent)).toBe(4);
    stop.abort();
    expect(errorCodeOf(await waiting)).toBe("cancelled");
    held.release();
    await held.result;
  });
});

describe("a lazy pool", () => {
  it("starts a thread when there is a job that no other can take", async () => {
    const pool = makePool({ size: 2, lazy: true });
    const first = hold(pool);
    await first.started;
    expect(await pool.run("double", { n: 2 }, now)).toBe(4);
    first.release();
    await first.result;
    expect(await pool.run("double", { n: 3 }, background)).toBe(6);
  });
});
