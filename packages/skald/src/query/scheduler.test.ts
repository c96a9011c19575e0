import { afterEach, describe, expect, it } from "@jest/globals";
import { scheduledQuerier } from "@skald/contracts";
import { errorCodeOf, SkaldError } from "@skald/model";

import {
  ask,
  byMethodCall,
  endAll,
  labelQuerier,
  overSocket,
  startTaking,
  until,
} from "./testing/schedulers.js";

afterEach(endAll);

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
      expect.stringMatching(/^too many outstanding requests \(limit: 2, /),
    ]);
    startTaking(
      contract,
      labelQuerier(async () => "done"),
    );
    expect(await Promise.all([...asks, ask(frontend, "u")])).toEqual(["done", "done", "done"]);
  });
});
