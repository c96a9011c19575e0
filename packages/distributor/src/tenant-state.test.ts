import { expect, it } from "@jest/globals";
import { TenantStates, TokenBucket } from "./tenant-state.js";
import { makeHarness } from "./testing/harness.js";

const { limits } = makeHarness();

/** States in memory for so many tenants with names of four characters. */
function statesFor(tenants: number): TenantStates {
  return new TenantStates(
    () => limits,
    () => 1,
    tenants * (1024 + 8),
  );
}

it("keeps the rate limits of ten thousand tenants", () => {
  const states = new TenantStates(
    () => limits,
    () => 1,
  );
  states.get("busy", 0).bucket.take(1000, 0);
  for (let i = 0; i < 10_000; i++) states.get(`t${i}`, 0);
  expect(states.size).toBe(10_001);
  expect(states.get("busy", 0).bucket.isFull(0)).toBe(false);
});

it("forgets first who pushed longest ago and has nothing to be limited by", () => {
  const states = statesFor(3);
  const take = (tenant: string) => states.get(tenant, 0).bucket.take(1000, 0);
  take("hot1");
  states.get("idl1", 0);
  states.get("idl2", 0);
  const idle2 = states.get("idl2", 0);
  take("hot2");
  expect(states.size).toBe(3);
  expect(states.get("idl2", 0)).toBe(idle2);
  expect(states.get("hot1", 0).bucket.isFull(0)).toBe(false);
  expect(states.get("hot2", 0).bucket.isFull(0)).toBe(false);
});

it("forgets who pushed longest ago when all are limited", () => {
  const states = statesFor(2);
  for (const tenant of ["hot1", "hot2", "hot3"]) states.get(tenant, 0).bucket.take(1000, 0);
  expect(states.size).toBe(2);
  expect(states.get("hot3", 0).bucket.isFull(0)).toBe(false);
  expect(states.get("hot2", 0).bucket.isFull(0)).toBe(false);
});

it("starts full, takes all or nothing, refills with time up to the burst", () => {
  const bucket = new TokenBucket(100, 250, 0);
  expect(bucket.take(251, 0)).toBe(false);
  expect(bucket.take(250, 0)).toBe(true);
  expect(bucket.take(1, 0)).toBe(false);
  expect(bucket.secondsUntil(50)).toBe(0.5);
  expect(bucket.take(51, 500)).toBe(false);
  expect(bucket.take(50, 500)).toBe(true);
  expect(bucket.take(250, 60_000)).toBe(true);
  expect(bucket.take(1, 60_000)).toBe(false);
});

it("never gives tokens back when the clock steps back", () => {
  const bucket = new TokenBucket(100, 100, 10_000);
  expect(bucket.take(100, 10_000)).toBe(true);
  expect(bucket.take(1, 5_000)).toBe(false);
  expect(bucket.take(100, 6_000)).toBe(true);
});

it("takes over other limits, and says when a push can never pass", () => {
  const bucket = new TokenBucket(100, 100, 0);
  bucket.configure(10, 50, 0);
  expect(bucket.ratePerSecond).toBe(10);
  expect(bucket.take(51, 0)).toBe(false);
  expect(bucket.secondsUntil(51)).toBe(Number.POSITIVE_INFINITY);
  expect(bucket.take(50, 0)).toBe(true);
});
