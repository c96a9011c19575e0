import { describe, expect, it } from "@jest/globals";
import type { WaitingJob } from "@skald/runtime";
import { FairQueue } from "./fair-queue.js";

const job = (name: string, tenant: string, actors: string[] = [], cost = 0): WaitingJob => ({
  name,
  options: { lane: "query", share: { tenant, actors, cost } },
});

function drain(queue: FairQueue): string[] {
  const names: string[] = [];
  for (let next = queue.take(); next !== undefined; next = queue.take()) names.push(next.name);
  return names;
}

describe("FairQueue", () => {
  it("serves tenants in turn, however many jobs each has", () => {
    const queue = new FairQueue({ maxLevels: 3 });
    for (let i = 0; i < 4; i++) queue.push(job(`a${i}`, "a"));
    queue.push(job("b0", "b"));
    queue.push(job("c0", "c"));
    queue.push(job("b1", "b"));
    expect(drain(queue)).toEqual(["a0", "b0", "c0", "a1", "b1", "a2", "a3"]);
    expect(queue.size).toBe(0);
  });

  it("serves the actors of a tenant in turn, and the tenant itself as one of them", () => {
    const queue = new FairQueue({ maxLevels: 3 });
    for (let i = 0; i < 2; i++) queue.push(job(`x${i}`, "a", ["x"]));
    for (let i = 0; i < 2; i++) queue.push(job(`y${i}`, "a", ["y"]));
    for (let i = 0; i < 3; i++) queue.push(job(`own${i}`, "a"));
    expect(drain(queue)).toEqual(["own0", "x0", "own1", "y0", "own2", "x1", "y1"]);
  });

  it("puts actors beyond the last level together", () => {
    const queue = new FairQueue({ maxLevels: 1 });
    queue.push(job("1", "a", ["x", "p"]));
    queue.push(job("2", "a", ["x", "q"]));
    queue.push(job("3", "a", ["y", "p"]));
    expect(drain(queue)).toEqual(["1", "3", "2"]);
  });

  it("takes the cheap ones of a place first, and the oldest now and then", () => {
    const queue = new FairQueue({ maxLevels: 0 });
    queue.push(job("big", "a", [], 1000));
    for (let i = 0; i < 6; i++) queue.push(job(`s${i}`, "a", ["ignored"], 1));
    expect(drain(queue)).toEqual(["s0", "s1", "s2", "big", "s3", "s4", "s5"]);
  });

  it("refuses what is too much for one tenant, and only for that", () => {
    const queue = new FairQueue({ maxLevels: 3, maxOutstandingPerTenant: 2 });
    queue.push(job("1", "a", ["x"]));
    queue.push(job("2", "a"));
    expect(() => queue.push(job("3", "a", ["y"]))).toThrow(
      "too many outstanding requests (limit: 2, query_scheduler.max_outstanding_requests_per_tenant)",
    );
    queue.push(job("4", "b"));
    expect(queue.size).toBe(3);
    queue.take();
    queue.push(job("5", "a"));
    expect(queue.size).toBe(3);
  });

  it("forgets jobs that were given up", () => {
    const queue = new FairQueue({ maxLevels: 3 });
    const jobs = ["1", "2", "3"].map((name) => job(name, "a", name === "2" ? ["x"] : []));
    for (const one of jobs) queue.push(one);
    expect(queue.delete(jobs[1]!)).toBe(true);
    expect(queue.delete(jobs[1]!)).toBe(false);
    expect(drain(queue)).toEqual(["1", "3"]);
    expect(queue.delete(jobs[0]!)).toBe(false);
  });

  it("gives out nothing while it is held", () => {
    let isHeld = true;
    const queue = new FairQueue({ maxLevels: 0, isHeld: () => isHeld });
    queue.push(job("a", "a"));
    expect([queue.take(), queue.size]).toEqual([undefined, 1]);
    isHeld = false;
    expect(drain(queue)).toEqual(["a"]);
  });
});
