import { afterAll, afterEach, beforeAll, describe, expect, it } from "@jest/globals";
import { errorCodeOf } from "@skald/model";
import type { WorkerPool } from "./pool.js";
import {
  background,
  closePools,
  failureOf,
  hold,
  makePool,
  newPool,
  now,
  until,
} from "./testing/pool.js";

const urgent = { lane: "urgent" } as const;

afterEach(closePools);

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

  it("leaves out a job that its thread has, but has not begun", async () => {
    const pool = makePool({ urgentJobs: 3 });
    const first = hold(pool, urgent);
    await first.started;
    const stop = new AbortController();
    const flag = new Int32Array(new SharedArrayBuffer(8));
    // It would not wait.
    flag[1] = 1;
    const second = failureOf(pool.run("wait", { flag }, { ...urgent, signal: stop.signal }));
    const third = pool.run("double", { n: 2 }, urgent);
    stop.abort();
    first.release();
    expect(errorCodeOf(await second)).toBe("cancelled");
    expect(await third).toBe(4);
    expect(flag[0]).toBe(0);
  });

  it("runs a job that is sent to every thread, which nobody can cancel", async () => {
    const pool = makePool();
    await pool.run("double", { n: 1 }, now);
    const flag = new Int32Array(new SharedArrayBuffer(8));
    flag[1] = 1;
    pool.broadcast("wait", { flag });
    await until(() => Atomics.load(flag, 0) === 1);
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
