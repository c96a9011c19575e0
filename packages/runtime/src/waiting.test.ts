import { describe, expect, it } from "@jest/globals";
import { Semaphore } from "./concurrency.js";
import { deadline, repeat, retry, sleep } from "./waiting.js";

describe("Semaphore", () => {
  it("grants in order of arrival and counts weights", async () => {
    const semaphore = new Semaphore(3);
    const order: string[] = [];
    const first = await semaphore.acquire({ permits: 2 });
    const big = semaphore.acquire({ permits: 3 }).then((release) => {
      order.push("big");
      release();
    });
    const small = semaphore.acquire().then((release) => {
      order.push("small");
      release();
    });
    expect(semaphore.tryAcquire()).toBeUndefined();
    expect(semaphore.waiting).toBe(2);
    first();
    first();
    await Promise.all([big, small]);
    expect(order).toEqual(["big", "small"]);
    expect(semaphore.free).toBe(3);
  });

  it("lets the next one through when the first waiter gives up", async () => {
    const semaphore = new Semaphore(2);
    const held = await semaphore.acquire();
    const abort = new AbortController();
    const big = semaphore.acquire({ permits: 2, signal: abort.signal });
    const small = semaphore.acquire();
    abort.abort(new Error("gave up"));
    await expect(big).rejects.toThrow("gave up");
    (await small)();
    held();
    expect(semaphore.free).toBe(2);
  });

  it("gives the permit back when the task throws", async () => {
    const semaphore = new Semaphore(1);
    await expect(semaphore.run(() => Promise.reject(new Error("boom")))).rejects.toThrow("boom");
    expect(await semaphore.run(async () => semaphore.free)).toBe(0);
    expect(semaphore.free).toBe(1);
  });

  it("refuses more permits than there are", async () => {
    await expect(new Semaphore(1).acquire({ permits: 2 })).rejects.toThrow("2 permits asked");
    expect(() => new Semaphore(0)).toThrow("needs permits");
  });
});

describe("retry", () => {
  const failTimes = (times: number) => async (attempt: number) => {
    if (attempt < times) throw new Error(`try ${attempt}`);
    return attempt;
  };

  it("doubles the pause up to the longest, with jitter", async () => {
    const pauses: number[] = [];
    const record = async (ms: number): Promise<void> => void pauses.push(ms);
    const options = { maxRetries: 9, minBackoffMs: 100, maxBackoffMs: 1000, sleep: record };
    expect(await retry(failTimes(5), { ...options, random: () => 0 })).toBe(5);
    expect(pauses).toEqual([50, 100, 200, 400, 500]);
    pauses.length = 0;
    await retry(failTimes(2), { ...options, random: () => 0.5 });
    expect(pauses).toEqual([75, 150]);
  });

  it("throws the last error when tries are used up or cannot help", async () => {
    const options = { minBackoffMs: 1, maxBackoffMs: 1, sleep: async () => undefined };
    await expect(retry(failTimes(9), { ...options, maxRetries: 2 })).rejects.toThrow("try 2");
    const fatal = retry(failTimes(9), { ...options, maxRetries: 2, isRetriable: () => false });
    await expect(fatal).rejects.toThrow("try 0");
  });

  it("stops waiting when aborted", async () => {
    const abort = new AbortController();
    const options = { maxRetries: 9, minBackoffMs: 1e9, maxBackoffMs: 1e9, signal: abort.signal };
    const running = retry(failTimes(1), { ...options, onRetry: () => abort.abort(new Error("x")) });
    await expect(running).rejects.toThrow("x");
  });
});

describe("repeat", () => {
  it("goes on after an error until it is aborted", async () => {
    const abort = new AbortController();
    const errors: unknown[] = [];
    let runs = 0;
    const task = (): void => {
      if (++runs === 3) abort.abort();
      if (runs === 2) throw new Error("second");
    };
    const onError = (error: unknown): void => void errors.push(error);
    await repeat(task, {
      pauseMs: 1e9,
      signal: abort.signal,
      onError,
      sleep: async () => undefined,
    });
    expect(runs).toBe(3);
    expect(errors).toEqual([new Error("second")]);
  });
});

describe("deadline", () => {
  const whenAborted = (signal: AbortSignal): Promise<unknown> =>
    new Promise((resolve) => {
      signal.addEventListener("abort", () => resolve(signal.reason), { once: true });
    });

  it("aborts with deadline_exceeded", async () => {
    const keepAlive = setInterval(() => undefined, 1000);
    const { signal } = deadline({ timeoutMs: 1, message: "query took longer than 1ms" });
    expect(await whenAborted(signal)).toMatchObject({
      code: "deadline_exceeded",
      message: "query took longer than 1ms",
    });
    clearInterval(keepAlive);
  });

  it("follows its parent until cleared", () => {
    const parent = new AbortController();
    const reason = new Error("client gone");
    const running = deadline({ timeoutMs: 0, message: "", signal: parent.signal });
    const done = deadline({ timeoutMs: 1e9, message: "", signal: parent.signal });
    done.clear();
    parent.abort(reason);
    expect(running.signal.reason).toBe(reason);
    expect(done.signal.aborted).toBe(false);
    const late = deadline({ timeoutMs: 0, message: "", signal: parent.signal });
    expect(late.signal.aborted).toBe(true);
  });
});

describe("sleep", () => {
  it("rejects with the reason of the signal", async () => {
    const abort = new AbortController();
    const sleeping = sleep(1e12, abort.signal);
    abort.abort(new Error("awake"));
    await expect(sleeping).rejects.toThrow("awake");
    await expect(sleep(1e12, abort.signal)).rejects.toThrow("awake");
  });
});
