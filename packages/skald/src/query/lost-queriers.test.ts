import { afterEach, describe, expect, it } from "@jest/globals";
import { SkaldError } from "@skald/model";
import { Metrics } from "@skald/runtime/metrics";
import { Scheduler } from "@skald/scheduler";

import {
  byMethodCall,
  endAll,
  endLater,
  makeScheduler,
  never,
  overSocket,
  until,
} from "./testing/schedulers.js";

afterEach(endAll);

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

it("runs elsewhere what a querier had that says nothing any more, though its connection stays", async () => {
  const pauses: (() => void)[] = [];
  const scheduler = new Scheduler({
    ...{ maxOutstandingPerTenant: 0, maxLevels: 0, metrics: new Metrics() },
    sleep: () => new Promise((resolve) => pauses.push(resolve)),
  });
  endLater(() => scheduler.stop());
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
