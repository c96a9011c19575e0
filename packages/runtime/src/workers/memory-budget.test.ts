import { describe, expect, it } from "@jest/globals";
import { SkaldError } from "@skald/model";
import { MemoryBudget, MemoryShare } from "./memory-budget.js";

const mib = 1024 * 1024;

describe("MemoryBudget", () => {
  it("counts what shares hold, in pages", () => {
    const budget = new MemoryBudget(4 * mib);
    const ref = budget.open();
    const share = new MemoryShare(ref);
    share.take(1);
    share.take(10);
    expect(budget.bytes).toBe(64 * 1024);
    share.take(mib);
    expect([budget.bytes, budget.isScarce]).toEqual([mib + 64 * 1024, false]);
    new MemoryShare(budget.open()).take(mib);
    expect([budget.bytes, budget.isScarce]).toEqual([2 * mib + 64 * 1024, true]);
    share.give(mib);
    expect([budget.bytes, budget.isScarce]).toEqual([mib + 64 * 1024, false]);
  });

  it("refuses what goes beyond it, whoever has the rest", () => {
    const budget = new MemoryBudget(4 * mib);
    const refs = [budget.open(), budget.open()] as const;
    const [first, second] = refs.map((ref) => new MemoryShare(ref)) as [MemoryShare, MemoryShare];
    first.take(3 * mib);
    second.take(mib);
    let error: unknown;
    try {
      second.take(1);
    } catch (thrown) {
      error = thrown;
    }
    expect(error).toBeInstanceOf(SkaldError);
    expect(error).toMatchObject({ code: "rate_limited", retryAfterSeconds: 5 });
    // What was refused counts until its share is closed: nobody says how much of it was made.
    expect(budget.bytes).toBe(4 * mib + 64 * 1024);
    budget.close(refs[1]);
    budget.close(refs[1]);
    expect(budget.bytes).toBe(3 * mib);
    budget.close(refs[0]);
    expect(budget.bytes).toBe(0);
  });
});
