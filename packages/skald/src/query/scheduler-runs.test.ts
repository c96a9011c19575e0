import { afterEach, describe, expect, it } from "@jest/globals";
import { answerScheduled, type Scheduler as Contract, scheduledQuerier } from "@skald/contracts";
import { errorCodeOf, SkaldError } from "@skald/model";
import { Metrics } from "@skald/runtime/metrics";
import { LaneWidth, Scheduler, takeCalls } from "@skald/scheduler";

import {
  ask,
  endAll,
  endLater,
  labelQuerier,
  makeScheduler,
  never,
  overSocket,
  until,
} from "./testing/schedulers.js";

afterEach(endAll);

describe("calls that are asked at the same time, over gRPC", () => {
  /** Answers of labels are the label; those of "stuck" wait until they are cancelled, and are then in `cancelled`. */
  async function openWarm() {
    const { connect, scheduler } = await overSocket(3);
    const cancelled: string[] = [];
    const stop = new AbortController();
    endLater(() => stop.abort(new SkaldError("unavailable", "cut off")));
    const querier = labelQuerier(async (tenant, label, signal) => {
      if (label === "bad") throw new SkaldError("invalid_argument", "bad label");
      if (label !== "stuck") return label;
      return new Promise((_, reject) => {
        signal.addEventListener("abort", () => {
          cancelled.push(tenant);
          reject(signal.reason);
        });
      });
    });
    void takeCalls({
      ...{ scheduler: connect(), width: new LaneWidth(4), signal: stop.signal },
      answer: (call, options) => answerScheduled(querier, call, options),
      sleep: () => new Promise(() => {}),
    });
    const contract = connect();
    const frontend = scheduledQuerier(() => contract);
    // What the scheduler knows is known by its first answer.
    expect(await ask(frontend, "t")).toBe("x");
    return { cancelled, frontend, scheduler, stop };
  }

  it("are answered each, errors too", async () => {
    const { frontend } = await openWarm();
    const labels = Array.from({ length: 300 }, (_, i) => `label${i}`);
    const asked = labels.map((label, i) => ask(frontend, `t${i % 150}`, { label }));
    const bad = ask(frontend, "u", { label: "bad" });
    await expect(bad).rejects.toMatchObject({ code: "invalid_argument", message: "bad label" });
    expect(await Promise.all(asked)).toEqual(labels);
  });

  it("are limited each", async () => {
    const { frontend, stop, scheduler } = await openWarm();
    stop.abort(new SkaldError("unavailable", "cut off"));
    await until(() => scheduler.queriers === 0);
    const end = new AbortController();
    const asked = Array.from({ length: 5 }, () => ask(frontend, "t", { signal: end.signal }));
    const codes = asked.map((one) => one.catch((error: unknown) => errorCodeOf(error)));
    expect(await Promise.all(codes.slice(3))).toEqual(["rate_limited", "rate_limited"]);
    end.abort(new SkaldError("cancelled", "nobody waits"));
    expect(await Promise.all(codes.slice(0, 3))).toEqual(["cancelled", "cancelled", "cancelled"]);
    await until(() => scheduler.waiting === 0);
  });

  it("are cancelled one by one", async () => {
    const { cancelled, frontend } = await openWarm();
    const given = [new AbortController(), new AbortController()] as const;
    const [first, second] = given.map(({ signal }, i) =>
      ask(frontend, `stuck${i}`, { label: "stuck", signal }).catch(errorCodeOf),
    );
    const well = ask(frontend, "t", { label: "well" });
    expect(await well).toBe("well");
    given[0].abort(new SkaldError("cancelled", "nobody waits"));
    expect(await first).toBe("cancelled");
    await until(() => cancelled.length === 1);
    given[1].abort(new SkaldError("cancelled", "nobody waits"));
    expect(await second).toBe("cancelled");
    await until(() => cancelled.length === 2);
    expect(cancelled).toEqual(["stuck0", "stuck1"]);
  });

  it("may be given up before the scheduler hears of them", async () => {
    const { cancelled, frontend, scheduler } = await openWarm();
    const given = new AbortController();
    const { signal } = given;
    const gone = ask(frontend, "t", { label: "stuck", signal }).catch(errorCodeOf);
    const kept = [ask(frontend, "u", { label: "a" }), ask(frontend, "v", { label: "b" })];
    setImmediate(() => given.abort(new SkaldError("cancelled", "nobody waits")));
    expect(await gone).toBe("cancelled");
    expect(await Promise.all(kept)).toEqual(["a", "b"]);
    await until(() => scheduler.waiting === 0 && cancelled.length <= 1);
    expect(await ask(frontend, "t", { label: "c" })).toBe("c");
  });
});

it("takes several calls and sends several answers at a time, as many as there is room for", async () => {
  const scheduler = makeScheduler(0);
  const asks: { readonly max: number; readonly finished: number }[] = [];
  const watched: Contract = {
    run: (call, options) => scheduler.run(call, options),
    take: (request, options) => {
      const { max = 1, finished, others } = request;
      asks.push({ max, finished: finished === undefined ? 0 : 1 + others.length });
      return scheduler.take(request, options);
    },
    finish: (request) => scheduler.finish(request),
    watch: (request, options) => scheduler.watch(request, options),
  };
  const stop = new AbortController();
  endLater(() => stop.abort(new SkaldError("unavailable", "cut off")));
  const querier = labelQuerier(async (_, label) => label);
  void takeCalls({
    ...{ scheduler: watched, width: new LaneWidth(3), signal: stop.signal },
    answer: (call, options) => answerScheduled(querier, call, options),
    sleep: () => new Promise(() => {}),
  });
  const frontend = scheduledQuerier(() => scheduler);
  const labels = Array.from({ length: 20 }, (_, i) => `label${i}`);
  const answers = await Promise.all(labels.map((label) => ask(frontend, "t", { label })));
  expect(answers).toEqual(labels);
  expect(asks.length).toBeLessThan(20);
  expect(asks[0]).toEqual({ max: 3, finished: 0 });
  expect(asks.every(({ max, finished }) => max <= 3 && finished <= 3)).toBe(true);
  expect(asks.some(({ finished }) => finished > 1)).toBe(true);
});

it("tells how long a call waited", async () => {
  let nowMs = 1000;
  const scheduler = new Scheduler({
    ...{ maxOutstandingPerTenant: 0, maxLevels: 0, metrics: new Metrics() },
    ...{ clock: { elapsedMs: () => nowMs }, sleep: () => new Promise(() => {}) },
  });
  const body = new Uint8Array(0);
  const call = { method: "query" as const, tenant: "t", actors: [], body, avoid: [] };
  const asked = scheduler.run(call, { signal: never });
  nowMs = 3500;
  await scheduler.watch({ querier: "q" }, { signal: never });
  const { id } = await scheduler.take({ querier: "q", others: [] }, { signal: never });
  await scheduler.finish({ querier: "q", id, body: Uint8Array.of(1) });
  expect(await asked).toEqual({ body: Uint8Array.of(1), queueSeconds: 2.5 });
  scheduler.stop();
});

it("gives and takes several calls at once, no more than a querier's share", async () => {
  const scheduler = makeScheduler(0);
  const body = new Uint8Array(0);
  const asks = Array.from({ length: 7 }, (_, i) =>
    scheduler.run(
      { method: "query", tenant: `t${i}`, actors: [], body, avoid: [] },
      { signal: never },
    ),
  );
  for (const asked of asks.slice(4)) asked.catch(() => undefined);
  for (const querier of ["a", "b"]) await scheduler.watch({ querier }, { signal: never });
  const take = async (querier: string, max: number, done: readonly number[] = []) => {
    const answers = done.map((id) => ({ id, body: Uint8Array.of(id) }));
    const [finished, ...others] = answers;
    const told = { others, ...(finished === undefined ? {} : { finished }) };
    const taken = await scheduler.take({ querier, max, ...told }, { signal: never });
    return [taken, ...taken.others].map(({ id }) => id);
  };
  const first = await take("a", 10);
  expect(first).toHaveLength(4);
  expect(await take("b", 1)).toHaveLength(1);
  expect(await take("a", 10, first)).toHaveLength(1);
  const answers = await Promise.all(asks.slice(0, 4));
  expect(answers.map((answer) => answer.body?.[0])).toEqual(first);
});
