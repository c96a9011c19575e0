import { afterEach, describe, expect, it } from "@jest/globals";
import {
  answerScheduled,
  type Scheduler as Contract,
  type Querier,
  type ScheduledCall,
  scheduledCall,
  scheduledQuerier,
} from "@skald/contracts";
import { remoteScheduler, serveScheduler } from "@skald/contracts/grpc";
import { errorCodeOf, SkaldError } from "@skald/model";
import { Metrics } from "@skald/runtime/metrics";
import { LaneWidth, Scheduler, takeCalls } from "@skald/scheduler";
import { GrpcConnection, GrpcServer } from "@skald/transport/grpc";
import { encodeMessage } from "@skald/transport/protobuf";

const MiB = 1024 * 1024;
const ends: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

interface Carried {
  readonly scheduler: Scheduler;
  /** The scheduler as another process sees it; each has a connection of its own. */
  connect(): Contract;
}

function makeScheduler(maxOutstandingPerTenant: number): Scheduler {
  const scheduler = new Scheduler({
    ...{ maxOutstandingPerTenant, maxLevels: 3, metrics: new Metrics() },
    sleep: () => new Promise(() => {}),
  });
  ends.push(() => scheduler.stop());
  return scheduler;
}

async function byMethodCall(max: number): Promise<Carried> {
  const scheduler = makeScheduler(max);
  const connect = () => scheduler;
  return { scheduler, connect };
}

async function serveOne(max = 0): Promise<{ scheduler: Scheduler; address: string }> {
  const scheduler = makeScheduler(max);
  const server = new GrpcServer({
    ...{ address: "127.0.0.1", port: 0, maxConnections: 0, maxConcurrentStreams: 0 },
    ...{ maxReceiveBytes: MiB, maxSendBytes: MiB, gracefulShutdownMs: 0 },
    ...{ keepaliveMs: 60_000, keepaliveTimeoutMs: 20_000 },
  });
  serveScheduler(server, scheduler);
  const address = `127.0.0.1:${await server.start()}`;
  ends.push(() => server.kill());
  return { scheduler, address };
}

function connectTo(address: string): GrpcConnection {
  const connection = new GrpcConnection({
    ...{ address, maxReceiveBytes: MiB, maxSendBytes: MiB, connectTimeoutMs: 60_000 },
    ...{ minReconnectMs: 10, maxReconnectMs: 100 },
    ...{ keepaliveMs: 60_000, keepaliveTimeoutMs: 20_000 },
  });
  ends.push(() => connection.close());
  return connection;
}

async function overSocket(max: number): Promise<Carried> {
  const { scheduler, address } = await serveOne(max);
  return { scheduler, connect: () => remoteScheduler(connectTo(address)) };
}

/** A querier whose lists of labels are what `answer` makes of the tenant and the label. */
function labelQuerier(
  answer: (tenant: string, label: string, signal: AbortSignal) => Promise<string>,
): Querier {
  const unused = () => Promise.reject(new Error("not asked for"));
  return {
    ...{ query: unused, streams: unused, volumes: unused },
    labels: async ({ tenants, label = "" }, { signal }) => {
      const tenant = tenants[0] as string;
      return [{ tenant, texts: [await answer(tenant, label, signal)] }];
    },
  };
}

/** Gives what cuts the querier off. */
function startTaking(scheduler: Contract, querier: Querier): () => void {
  const stop = new AbortController();
  const done = takeCalls({
    ...{ scheduler, width: new LaneWidth(1), signal: stop.signal },
    answer: (call, options) => answerScheduled(querier, call, options),
    sleep: () => new Promise(() => {}),
  });
  void done;
  const cut = () => stop.abort(new SkaldError("unavailable", "cut off"));
  ends.push(cut);
  return cut;
}

const never = new AbortController().signal;
const range = { selectors: [], fromNs: 0n, toNs: 1n };

async function ask(
  querier: Querier,
  tenant: string,
  { label = "x", actors = [] as string[], signal = never } = {},
): Promise<string> {
  const found = await querier.labels({ tenants: [tenant], label, actors, ...range }, { signal });
  return found[0]?.texts[0] as string;
}

async function until(isTrue: () => boolean): Promise<void> {
  while (!isTrue()) await new Promise(setImmediate);
}

describe.each([
  ["method call", byMethodCall],
  ["gRPC", overSocket],
])("a scheduler by %s", (_, open) => {
  it("gives calls to queriers, and their answers back", async () => {
    const { connect } = await open(0);
    const frontend = scheduledQuerier(() => connect());
    const asked = ask(frontend, "t");
    startTaking(
      connect(),
      labelQuerier(async (tenant, label) => `${tenant} ${label}`),
    );
    expect(await asked).toBe("t x");
    expect(await ask(frontend, "u", { label: "y" })).toBe("u y");
  });

  it("gives errors back as they were thrown", async () => {
    const { connect } = await open(0);
    const contract = connect();
    const options = { retryAfterSeconds: 3, detail: { limit: 5 } };
    startTaking(
      contract,
      labelQuerier(() => Promise.reject(new SkaldError("rate_limited", "too much", options))),
    );
    const error = await ask(
      scheduledQuerier(() => contract),
      "t",
    ).catch((reason) => reason);
    const { code, message, status, retryAfterSeconds, detail } = error as SkaldError;
    expect({ code, message, status, retryAfterSeconds, detail }).toEqual({
      ...{ code: "rate_limited", message: "too much", status: 429 },
      ...options,
    });
  });

  it("serves tenants, and actors of a tenant, in turn", async () => {
    const { connect, scheduler } = await open(0);
    const contract = connect();
    const frontend = scheduledQuerier(() => contract);
    const order: string[] = [];
    const asks = [
      ...Array.from({ length: 6 }, () => ask(frontend, "loud", { label: "a", actors: ["a"] })),
      ...Array.from({ length: 3 }, () => ask(frontend, "loud", { label: "b", actors: ["b"] })),
      ...Array.from({ length: 2 }, () => ask(frontend, "calm", { label: "c" })),
    ];
    const { length } = asks;
    await until(() => scheduler.waiting === length);
    startTaking(
      contract,
      labelQuerier(async (_tenant, label) => {
        order.push(label);
        return label;
      }),
    );
    await Promise.all(asks);
    expect(order.join("")).toBe("acbcababaaa");
  });

  it("ends a call that nobody waits for, where it runs", async () => {
    const { connect } = await open(0);
    const contract = connect();
    const seen: string[] = [];
    startTaking(
      connect(),
      labelQuerier(async (_tenant, label, signal) => {
        if (label === "next") return "done";
        seen.push("runs");
        await new Promise((resolve) => signal.addEventListener("abort", resolve));
        seen.push("ended");
        throw signal.reason;
      }),
    );
    const stop = new AbortController();
    const asked = ask(
      scheduledQuerier(() => contract),
      "t",
      { signal: stop.signal },
    );
    asked.catch(() => undefined);
    await until(() => seen.includes("runs"));
    stop.abort(new SkaldError("cancelled", "the client went"));
    await expect(asked).rejects.toMatchObject({ code: "cancelled" });
    await until(() => seen.includes("ended"));
    expect(
      await ask(
        scheduledQuerier(() => contract),
        "t",
        { label: "next" },
      ),
    ).toBe("done");
  });

  it("runs what a lost querier had elsewhere", async () => {
    const { connect, scheduler } = await open(0);
    const seen: string[] = [];
    const cut = startTaking(
      connect(),
      labelQuerier(async () => {
        seen.push("runs");
        return new Promise(() => {});
      }),
    );
    const asked = ask(
      scheduledQuerier(() => connect()),
      "t",
    );
    await until(() => seen.length > 0);
    startTaking(
      connect(),
      labelQuerier(async () => "elsewhere"),
    );
    await until(() => scheduler.queriers === 2);
    cut();
    expect(await asked).toBe("elsewhere");
  });

  it("refuses what is too much of one tenant", async () => {
    const { connect, scheduler } = await open(2);
    const contract = connect();
    const frontend = scheduledQuerier(() => contract);
    const asks = [ask(frontend, "t"), ask(frontend, "t")];
    await until(() => scheduler.waiting === 2);
    const error = await ask(frontend, "t").catch((reason) => reason);
    expect([errorCodeOf(error), error.message]).toEqual([
      "rate_limited",
      "too many outstanding requests",
    ]);
    startTaking(
      contract,
      labelQuerier(async () => "done"),
    );
    expect(await Promise.all([...asks, ask(frontend, "u")])).toEqual(["done", "done", "done"]);
  });
});

describe("calls that are asked at the same time, over gRPC", () => {
  /** Answers of labels are the label; those of "stuck" wait until they are cancelled, and are then in `cancelled`. */
  async function openWarm() {
    const { connect, scheduler } = await overSocket(3);
    const cancelled: string[] = [];
    const stop = new AbortController();
    ends.push(() => stop.abort(new SkaldError("unavailable", "cut off")));
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

it("gives one call at a time where the scheduler is an older one", async () => {
  const scheduler = makeScheduler(0);
  const asks: unknown[] = [];
  const older: Contract = {
    run: (call, options) => scheduler.run(call, options),
    take: (request, options) => {
      const { max, others } = request;
      asks.push({ max, others });
      return scheduler.take(request, options);
    },
    finish: (request) => scheduler.finish(request),
    watch: async (request, options) => ({ ids: (await scheduler.watch(request, options)).ids }),
  };
  const stop = new AbortController();
  ends.push(() => stop.abort(new SkaldError("unavailable", "cut off")));
  const querier = labelQuerier(async (_, label) => label);
  void takeCalls({
    ...{ scheduler: older, width: new LaneWidth(3), signal: stop.signal },
    answer: (call, options) => answerScheduled(querier, call, options),
    sleep: () => new Promise(() => {}),
  });
  const frontend = scheduledQuerier(() => scheduler);
  const labels = Array.from({ length: 20 }, (_, i) => `label${i}`);
  const answers = await Promise.all(labels.map((label) => ask(frontend, "t", { label })));
  expect(answers).toEqual(labels);
  expect(asks.length).toBeGreaterThanOrEqual(20);
  expect(asks).toEqual(asks.map(() => ({ max: undefined, others: [] })));
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

it("gives up on a call that queriers are lost with", async () => {
  const scheduler = makeScheduler(0);
  const body = new Uint8Array(0);
  const call = { method: "query" as const, tenant: "t", actors: [], body, avoid: [] };
  const asked = scheduler.run(call, { signal: never });
  for (const querier of ["a", "b", "c"]) {
    const gone = new AbortController();
    await scheduler.watch({ querier }, { signal: gone.signal });
    const watch = scheduler.watch({ querier }, { signal: gone.signal });
    await scheduler.take({ querier, others: [] }, { signal: gone.signal });
    gone.abort();
    await watch.catch(() => undefined);
  }
  const message = "3 queriers were lost while they ran the query";
  const error = { code: "unavailable", message, isFinal: true };
  expect(await asked).toMatchObject({ error, querier: "c" });
});

describe.each([
  ["method call", byMethodCall],
  ["gRPC", overSocket],
])("a call that failed, by %s,", (_, open) => {
  const body = new Uint8Array(0);
  const call = { method: "query" as const, tenant: "t", actors: [], body };
  const error = { code: "unavailable", message: "no way to the store" };

  it("is answered by another querier than it avoids, or by the same when there is no other", async () => {
    const { scheduler, connect } = await open(0);
    const contract = connect();
    for (const querier of ["a", "b"]) await scheduler.watch({ querier }, { signal: never });
    const take = (querier: string) => scheduler.take({ querier, others: [] }, { signal: never });
    const byA = take("a");
    const first = contract.run({ ...call, avoid: [] }, { signal: never });
    await scheduler.finish({ querier: "a", id: (await byA).id, error });
    expect(await first).toMatchObject({ error, querier: "a" });

    const avoiding = [1, 2].map(() => contract.run({ ...call, avoid: ["a"] }, { signal: never }));
    const other = contract.run({ ...call, tenant: "u", avoid: [] }, { signal: never });
    await until(() => scheduler.waiting === 3);
    const { id } = await take("a");
    await scheduler.finish({ querier: "a", id, body: Uint8Array.of(1) });
    expect((await other).body).toEqual(Uint8Array.of(1));
    expect(scheduler.waiting).toBe(2);
    for (const _ of avoiding) {
      const taken = await take("b");
      await scheduler.finish({ querier: "b", id: taken.id, body: Uint8Array.of(2) });
    }
    for (const one of avoiding) expect((await one).body).toEqual(Uint8Array.of(2));

    const last = contract.run({ ...call, avoid: ["a", "b"] }, { signal: never });
    const taken = await take("a");
    await scheduler.finish({ querier: "a", id: taken.id, body: Uint8Array.of(3) });
    expect((await last).body).toEqual(Uint8Array.of(3));
  });

  it("goes to those it avoids once the others are gone", async () => {
    const { scheduler, connect } = await open(0);
    const gone = new AbortController();
    await scheduler.watch({ querier: "a" }, { signal: never });
    await scheduler.watch({ querier: "b" }, { signal: gone.signal });
    const watch = scheduler.watch({ querier: "b" }, { signal: gone.signal });
    const taken = scheduler.take({ querier: "a", others: [] }, { signal: never });
    const asked = connect().run({ ...call, avoid: ["a"] }, { signal: never });
    await until(() => scheduler.waiting === 1);
    gone.abort();
    await watch.catch(() => undefined);
    const { id } = await taken;
    await scheduler.finish({ querier: "a", id, body: Uint8Array.of(1) });
    expect((await asked).body).toEqual(Uint8Array.of(1));
  });

  it("may be given up while it waits for another", async () => {
    const { scheduler, connect } = await open(0);
    for (const querier of ["a", "b"]) await scheduler.watch({ querier }, { signal: never });
    const take = scheduler.take({ querier: "a", others: [] }, { signal: never });
    take.catch(() => undefined);
    const query = new AbortController();
    const asked = connect().run({ ...call, avoid: ["a"] }, { signal: query.signal });
    await until(() => scheduler.waiting === 1);
    query.abort(new SkaldError("cancelled", "the client is gone"));
    await expect(asked).rejects.toMatchObject({ code: "cancelled" });
    await until(() => scheduler.waiting === 0);
  });
});

it("throws what a querier threw where the frontend is an older one", async () => {
  const { scheduler, address } = await serveOne();
  const connection = connectTo(address);
  startTaking(
    scheduler,
    labelQuerier(() => Promise.reject(new SkaldError("unavailable", "no way to the store"))),
  );
  const call = { method: "labels", tenant: "t", actors: [], body: new Uint8Array(0), avoid: [] };
  const asked = encodeMessage(scheduledCall, call as ScheduledCall);
  const path = "/skald.v1.Scheduler/Run";
  const options = { signal: never, deadlineMs: undefined };
  await expect(connection.call(path, [asked], options)).rejects.toMatchObject({
    code: "unavailable",
  });
});

it("runs elsewhere what a querier had that says nothing any more, though its connection stays", async () => {
  const pauses: (() => void)[] = [];
  const scheduler = new Scheduler({
    ...{ maxOutstandingPerTenant: 0, maxLevels: 0, metrics: new Metrics() },
    sleep: () => new Promise((resolve) => pauses.push(resolve)),
  });
  ends.push(() => scheduler.stop());
  const body = new Uint8Array(0);
  const call = { method: "query" as const, tenant: "t", actors: [], body, avoid: [] };
  const asked = scheduler.run(call, { signal: never });
  await scheduler.watch({ querier: "a" }, { signal: never });
  const watch = scheduler.watch({ querier: "a" }, { signal: never });
  const { id } = await scheduler.take({ querier: "a", others: [] }, { signal: never });
  let isOver = false;
  void watch.finally(() => {
    isOver = true;
  });
  while (!isOver) {
    for (const end of pauses.splice(0)) end();
    await new Promise(setImmediate);
  }
  expect(await watch).toEqual({ ids: [] });
  while (scheduler.queriers > 0) {
    for (const end of pauses.splice(0)) end();
    await new Promise(setImmediate);
  }
  await scheduler.watch({ querier: "b" }, { signal: never });
  expect((await scheduler.take({ querier: "b", others: [] }, { signal: never })).id).toBe(id);
  await scheduler.finish({ querier: "b", id, body: Uint8Array.of(1) });
  expect((await asked).body).toEqual(Uint8Array.of(1));
});
