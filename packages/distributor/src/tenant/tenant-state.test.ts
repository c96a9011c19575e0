import { expect, it } from "@jest/globals";
import { makeHarness } from "../testing/harness.js";
import { TenantStates } from "./tenant-state.js";

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
