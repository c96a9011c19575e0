import { setTimeout as pause } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "@jest/globals";
import { errorCodeOf, SkaldError } from "@skald/model";
import { WorkerPool, type WorkerPoolOptions } from "./pool.js";
import type { JobOptions, JobQueue, WaitingJob } from "./waiting-jobs.js";

const pools: WorkerPool[] = [];
afterEach(async () => {
  await Promise.all(pools.splice(0).map((pool) => pool.close()));
});

function newPool(options: Partial<WorkerPoolOptions> = {}): WorkerPool {
  const url = new URL("./testing/jobs.js", import.meta.url);
  return new WorkerPool({ url, size: 1, maxQueued: 100, ...options });
}

/** A pool that is closed after the test. */
function makePool(options: Partial<WorkerPoolOptions> = {}): WorkerPool {
  const pool = newPool(options);
  pools.push(pool);
  return pool;
}

const now: JobOptions = { lane: "query" };
const background: JobOptions = { lane: "background" };

/** A job that runs until it is released. */
function hold(pool: WorkerPool, options: JobOptions = now) {
  const flag = new Int32Array(new SharedArrayBuffer(8));
  const result = pool.run<string>("wait", { flag }, options);
  const release = () => {
    Atomics.store(flag, 1, 1);
    Atomics.notify(flag, 1);
  };
  return { result, release, started: until(() => Atomics.load(flag, 0) === 1) };
}

/** Leaves the processor to the threads that it waits for. */
async function until(isTrue: () => boolean): Promise<void> {
  while (!isTrue()) await pause(1);
}

function failureOf(promise: Promise<unknown>): Promise<SkaldError> {
  return promise.then(
    () => {
      throw new Error("it did not fail");
    },
    (error: SkaldError) => error,
  );
}

describe("WorkerPool", () => {
  it("runs jobs, synchronous or not", async () => {
    const pool = makePool({ size: 2 });
    const doubles = Array.from({ length: 20 }, (_, n) => pool.run<number>("double", { n }, now));
    expect(await Promise.all(doubles)).toEqual(Array.from({ length: 20 }, (_, n) => n * 2));
    expect(await pool.run("later", { n: 7 }, background)).toBe(7);
    expect(pool.size).toBe(2);
  });

  it("replaces a thread that keeps too much memory, once it has no job", async () => {
    const pool = makePool({ maxKeptMib: 20 });
    const self = () => pool.run<number>("self", {}, now);
    const first = await self();
    expect(await self()).toBe(first);
    await pool.run("keep", { mib: 100 }, now);
    const second = await self();
    expect(second).not.toBe(first);
    expect(await self()).toBe(second);
  });

  it("replaces one that keeps less only when it has nothing to do", async () => {
    const pool = makePool({ maxKeptMib: 50 });
    const self = () => pool.run<number>("self", {}, now);
    const first = await self();
    await pool.run("keep", { mib: 60 }, now);
    expect(await self()).toBe(first);
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

describe("errors of jobs", () => {
  let pool: WorkerPool;
  beforeAll(() => {
    pool = newPool();
  });
  afterAll(() => pool.close());

  it("keep code, status, text and detail", async () => {
    const error = await failureOf(pool.run("refuse", {}, now));
    expect(error).toMatchObject({
      code: "invalid_argument",
      status: 418,
      message: "no such thing",
      detail: { at: 3 },
    });
    expect(error.cause).toBeUndefined();
  });

  it("that nobody foresaw are internal, with their stack as the cause only", async () => {
    const error = await failureOf(pool.run("fault", {}, now));
    expect(error).toMatchObject({ code: "internal", status: 500, message: "x is undefined" });
    expect(String(error.cause)).toContain("testing/jobs");
    expect(await failureOf(pool.run("text", {}, now))).toMatchObject({
      code: "internal",
      message: "just text",
    });
  });

  it("keep what their causes say", async () => {
    const error = await failureOf(pool.run("caused", {}, now));
    expect(error).toMatchObject({ code: "unavailable", status: 503, message: "not now" });
    expect(error.cause).toMatchObject({ message: "disk: EIO" });
  });

  it("say when there is no such job", async () => {
    const error = await failureOf(pool.run("nothing", {}, now));
    expect(error).toMatchObject({ code: "internal", message: "no handler for job nothing" });
  });

  it("do not stop the thread, even when a result or a detail cannot be sent", async () => {
    expect((await failureOf(pool.run("uncloneable", {}, now))).message).toMatch(
      /could not be cloned/,
    );
    expect((await failureOf(pool.run("refuseOddly", {}, now))).message).toMatch(/cloned/);
    expect(await pool.run("double", { n: 4 }, now)).toBe(8);
  });

  it("of payloads that cannot be sent leave the thread free", async () => {
    const error = await failureOf(pool.run("double", { n: () => 1 }, now));
    expect(error.message).toMatch(/could not be cloned/);
    expect(await pool.run("double", { n: 4 }, now)).toBe(8);
  });
});

describe("cancelling", () => {
  it("drops a job that waits", async () => {
    const pool = makePool();
    const first = hold(pool);
    await first.started;
    const stop = new AbortController();
    const second = failureOf(pool.run("double", { n: 1 }, { ...now, signal: stop.signal }));
    const third = pool.run("double", { n: 2 }, now);
    stop.abort();
    expect(errorCodeOf(await second)).toBe("cancelled");
    first.release();
    expect(await third).toBe(4);
  });

  it("stops a job that runs, and only that one", async () => {
    const pool = makePool();
    const flag = new Int32Array(new SharedArrayBuffer(8));
    const stop = new AbortController();
    const running = failureOf(
      pool.run("untilCancelled", { flag }, { ...now, signal: stop.signal }),
    );
    await until(() => Atomics.load(flag, 0) === 1);
    stop.abort();
    expect(errorCodeOf(await running)).toBe("cancelled");
    expect(await pool.run("double", { n: 3 }, now)).toBe(6);
  });

  it("refuses a job whose caller has gone already", async () => {
    const error = await failureOf(
      makePool().run("double", { n: 1 }, { ...now, signal: AbortSignal.abort() }),
    );
    expect(errorCodeOf(error)).toBe("cancelled");
  });

  it("after the end does nothing", async () => {
    const pool = makePool();
    const stop = new AbortController();
    expect(await pool.run("double", { n: 1 }, { ...now, signal: stop.signal })).toBe(2);
    const next = hold(pool);
    await next.started;
    stop.abort();
    next.release();
    expect(await next.result).toBe("done");
  });
});

describe("a thread that dies", () => {
  it.each([
    ["by an exit", "exit", /a worker thread ended with code 3/],
    ["by an error outside of its job", "crash", /out of the blue/],
  ])("%s fails its job; the pool goes on", async (_name, job, cause) => {
    const lost: unknown[] = [];
    const pool = makePool({ onThreadLost: (error) => lost.push(error) });
    const failing = failureOf(pool.run(job, {}, now));
    const waiting = pool.run("double", { n: 5 }, now);
    const error = await failing;
    expect(error).toMatchObject({ code: "internal", message: `job ${job} lost its thread` });
    expect(String(error.cause)).toMatch(cause);
    expect(await waiting).toBe(10);
    expect(lost).toHaveLength(1);
  });

  it("before its first job is started again after a pause", async () => {
    let losses = 0;
    const url = new URL("./testing/broken.js", import.meta.url);
    const pool = makePool({ url, onThreadLost: () => losses++ });
    const waiting = failureOf(pool.run("double", { n: 1 }, now));
    await until(() => losses > 0);
    expect(errorCodeOf(await waiting)).toBe("internal");
    const next = failureOf(pool.run("double", { n: 1 }, now));
    await until(() => losses > 1);
    expect(errorCodeOf(await next)).toBe("internal");
    expect(losses).toBe(2);
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

describe("closing", () => {
  it("rejects what runs, waits and comes", async () => {
    const pool = makePool();
    const first = hold(pool);
    await first.started;
    const failures = [failureOf(first.result), failureOf(pool.run("double", { n: 1 }, background))];
    await pool.close();
    failures.push(failureOf(pool.run("double", { n: 1 }, now)));
    for (const error of await Promise.all(failures)) {
      expect(error).toMatchObject({ code: "unavailable", message: "the worker pool is closed" });
    }
  });
});
