import { describe, expect, it } from "@jest/globals";
import { MemoryBudget, MemoryShare } from "./memory-budget.js";

const mib = 1024 * 1024;
const page = 64 * 1024;
const waiting = { mayWait: true, tenant: "a" };
const hurried = { mayWait: false, tenant: "a" };
const refused = expect.objectContaining({ code: "rate_limited", retryAfterSeconds: 5 });

describe("MemoryBudget", () => {
  it("counts what shares hold, in pages", () => {
    const budget = new MemoryBudget(4 * mib);
    const share = new MemoryShare(budget.open(hurried));
    share.take(1);
    share.take(10);
    expect(budget.bytes).toBe(page);
    share.take(mib);
    expect([budget.bytes, budget.isScarce]).toEqual([mib + page, false]);
    new MemoryShare(budget.open(hurried)).take(mib);
    expect([budget.bytes, budget.isScarce]).toEqual([2 * mib + page, true]);
    share.give(mib);
    expect([budget.bytes, budget.isScarce]).toEqual([mib + page, false]);
  });

  it("refuses what goes beyond it to those that may not wait, whoever has the rest", () => {
    const budget = new MemoryBudget(4 * mib);
    const refs = [budget.open(hurried), budget.open(hurried)] as const;
    new MemoryShare(refs[0]).take(3 * mib);
    const second = new MemoryShare(refs[1]);
    second.take(mib);
    expect(() => second.take(1)).toThrow(refused);
    expect(budget.bytes).toBe(4 * mib);
    budget.close(refs[1]);
    budget.close(refs[1]);
    expect(budget.bytes).toBe(3 * mib);
    budget.close(refs[0]);
    expect(budget.bytes).toBe(0);
  });

  it("lets one go on beyond it, and the next when that has ended", () => {
    const budget = new MemoryBudget(4 * mib);
    const refs = [budget.open(waiting), budget.open(waiting)] as const;
    const [first, second] = refs.map((ref) => new MemoryShare(ref)) as [MemoryShare, MemoryShare];
    for (const share of [first, second]) share.take(2 * mib);
    first.take(2 * mib);
    first.take(2 * mib);
    expect(budget.bytes).toBe(8 * mib);
    let asked = 0;
    const stopped = new MemoryShare(budget.open(waiting), () => ++asked === 3);
    expect(() => stopped.take(1)).toThrow(expect.objectContaining({ code: "cancelled" }));
    // Ends while the second one waits: that looks at it again and again.
    const ending = new MemoryShare(refs[1], () => {
      budget.close(refs[0]);
      return false;
    });
    ending.take(3 * mib);
    expect(budget.bytes).toBe(5 * mib);
  });

  it("leaves half of it to the others while several tenants have jobs", () => {
    const budget = new MemoryBudget(4 * mib);
    const greedy = [budget.open(waiting), budget.open(waiting), budget.open(waiting)] as const;
    const [first, second] = greedy.map((ref) => new MemoryShare(ref)) as [MemoryShare, MemoryShare];
    // Nobody else is there.
    first.take(mib);
    second.take(2 * mib);
    second.give(mib + page);
    const other = budget.open({ mayWait: true, tenant: "b" });
    // One of the tenant goes on, but not another beside it.
    first.take(mib);
    let asked = 0;
    const third = new MemoryShare(greedy[2], () => ++asked === 3);
    expect(() => third.take(page)).toThrow(expect.objectContaining({ code: "cancelled" }));
    new MemoryShare(other).take(mib);
    expect([...budget.holdings()]).toEqual([
      { tenant: "a", value: 3 * mib - page },
      { tenant: "b", value: mib },
    ]);
    for (const ref of [...greedy, other]) budget.close(ref);
    expect([budget.bytes, [...budget.holdings()]]).toEqual([0, []]);
  });

  it("names its limit when it refuses", () => {
    const budget = new MemoryBudget(mib);
    const share = new MemoryShare(budget.open(hurried));
    expect(() => share.take(2 * mib)).toThrow(/1048576 bytes .*querier\.max_query_memory/);
  });
});
