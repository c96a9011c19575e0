import { describe, expect, it } from "@jest/globals";
import { defaultLimits } from "@skald/runtime/config";
import { makeBatch } from "@skald/testkit";
import { setUp } from "../testing/ingester.js";
import { Tenant } from "./tenant.js";

const count = 40_000;
const limits = { ...defaultLimits, max_global_streams_per_user: 0 };

function manyStreams(streams: number) {
  return makeBatch(
    Array.from({ length: streams }, (_, i) => ({
      labels: { n: String(i) },
      rows: [{ ns: 1n, line: "x" }],
    })),
  );
}

function newTenant(): Tenant {
  const createHead = () => {
    throw new Error("numbering needs no head");
  };
  return new Tenant("a", { createHead, outOfOrderWindowNs: 0 });
}

describe("numbering the streams of a push", () => {
  it("yields after each few of them", () => {
    const tenant = newTenant();
    const numbering = tenant.numberStreams(manyStreams(count), limits, 1);
    let before = 0;
    let most = 0;
    let step = numbering.next();
    for (; step.done !== true; step = numbering.next()) {
      most = Math.max(most, tenant.streams.size - before);
      before = tenant.streams.size;
    }
    expect(most).toBe(64);
    expect(step.value.created).toBe(count);
    expect(tenant.streams.text(step.value.numbers[count - 1]!)).toBe(`{n="${count - 1}"}`);
  });

  it("keeps streams from being removed, and tells when some were", () => {
    const tenant = newTenant();
    const number = (nowMs: number) => {
      const step = tenant.numberStreams(manyStreams(1), limits, nowMs).next();
      if (step.done !== true) throw new Error("one stream takes one step");
      return step.value;
    };
    number(1);
    const { removals } = number(20);
    expect(tenant.streams.removeIdle(10, () => false)).toBe(0);
    expect(tenant.streams.removals).toBe(removals);
    expect(tenant.streams.removeIdle(30, () => false)).toBe(1);
    expect(tenant.streams.removals).not.toBe(removals);
  });

  it("lets a small push of another tenant go first", async () => {
    const { ingester } = await setUp();
    await ingester.start();
    const done: string[] = [];
    await Promise.all([
      ingester.push({ tenant: "large", batch: manyStreams(count) }).then(() => done.push("large")),
      ingester.push({ tenant: "small", batch: manyStreams(1) }).then(() => done.push("small")),
    ]);
    expect(done).toEqual(["small", "large"]);
    await ingester.stop();
  });
});
