import { describe, expect, it } from "@jest/globals";
import type { RingInstance } from "./member.js";
import { planTokens } from "./plan-tokens.js";
import { Circle, findReplicas } from "./ring-view.js";
import { fakeMember, fakeMembers } from "./testing/fake-members.js";

/** The part of the keys that each instance has, divided by an equal part: as the smallest and the largest. */
function spread(instances: readonly RingInstance[], width: number): { min: number; max: number } {
  const parts = loads(instances, width).map((load) => (load * instances.length) / width);
  return { min: Math.min(...parts), max: Math.max(...parts) };
}

/** The part of the keys, from 0 to 1, of which each instance is a replica. */
function loads(instances: readonly RingInstance[], width: number): number[] {
  const circle = new Circle(instances.map(({ tokens }) => tokens));
  const replicas = findReplicas(circle, width);
  const load = instances.map(() => 0);
  for (const [i, token] of circle.tokens.entries()) {
    const before = circle.tokens.at(i - 1) as number;
    const size = (token - before + (i === 0 ? 2 ** 32 : 0)) / 2 ** 32;
    for (const owner of replicas.subarray(i * width, (i + 1) * width))
      load[owner] = load[owner]! + size;
  }
  return load;
}

function expectWithin(found: { min: number; max: number }, part: number): void {
  expect(found.min).toBeGreaterThan(1 - part);
  expect(found.max).toBeLessThan(1 + part);
}

describe("the spread of tokens", () => {
  // With RUNS set a thousand, which take a few seconds to join.
  const many = fakeMembers(process.env.RUNS === undefined ? 250 : 1000);

  it("gives hundreds of instances equal parts within 5 %, first hand and with replicas", () => {
    expectWithin(spread(many, 1), 0.05);
    expectWithin(spread(many, 3), 0.05);
  });

  it.each([3, 4, 5, 6, 7, 8, 10, 15, 20, 30, 50, 100])("is even with %i instances", (count) => {
    const some = many.slice(0, count);
    expectWithin(spread(some, 1), 0.03);
    expectWithin(spread(some, 3), count === 4 ? 0.07 : 0.03);
  });

  it("is even within each zone", () => {
    const zones = ["a", "b", "c"];
    const all = fakeMembers(30, { zones });
    for (const zone of zones)
      expectWithin(
        spread(
          all.filter((one) => one.zone === zone),
          1,
        ),
        0.03,
      );
    expect(new Set(all.flatMap(({ tokens }) => [...tokens])).size).toBe(30 * 128);
  });

  it("stays even when instances come in place of others", () => {
    const ring = many.slice(0, 50);
    for (let i = 0; i < 25; i++) {
      ring.splice((i * 7) % ring.length, 1);
      const others = ring.map(({ tokens }) => tokens);
      const tokens = planTokens(others, { count: 128, replicas: 3, seed: "" });
      ring.push(fakeMember(`new${i}`, { tokens }));
    }
    expectWithin(spread(ring, 1), 0.1);
    expectWithin(spread(ring, 3), 0.1);
  });
});

describe("moving", () => {
  const before = fakeMembers(100);
  const keys = Uint32Array.from({ length: 20_000 }, (_, i) => Math.imul(i, 0x9e3779b1));
  const placesOf = (instances: readonly RingInstance[]) => {
    const circle = new Circle(instances.map(({ tokens }) => tokens));
    const replicas = findReplicas(circle, 3);
    return Array.from(keys, (key) => {
      const start = circle.find(key) * 3;
      return [...replicas.subarray(start, start + 3)].map((i) => instances[i]?.id as string);
    });
  };

  it("a joining instance takes its share and nothing else moves", () => {
    const tokens = planTokens(
      before.map((one) => one.tokens),
      { count: 128, replicas: 3, seed: "" },
    );
    const old = placesOf(before);
    let moved = 0;
    for (const [i, now] of placesOf([...before, fakeMember("new", { tokens })]).entries()) {
      const gone = old[i]?.filter((id) => !now.includes(id)) as string[];
      const come = now.filter((id) => !old[i]?.includes(id));
      expect([gone.length, come]).toEqual(come.length === 0 ? [0, []] : [1, ["new"]]);
      moved += come.length;
    }
    expect(moved / keys.length / 3).toBeCloseTo(1 / 101, 2);
  });

  it("a leaving instance's share goes to others and nothing else moves", () => {
    const old = placesOf(before);
    let moved = 0;
    for (const [i, now] of placesOf(before.slice(0, -1)).entries()) {
      const gone = old[i]?.filter((id) => !now.includes(id)) as string[];
      expect(gone.every((id) => id === "i99")).toBe(true);
      moved += gone.length;
    }
    expect(moved / keys.length / 3).toBeCloseTo(1 / 100, 2);
  });
});

it("chooses the same tokens from the same ring, and others for another zone", () => {
  const first = planTokens([], { count: 128, replicas: 1, seed: "ring/a" });
  expect(planTokens([], { count: 128, replicas: 1, seed: "ring/a" })).toEqual(first);
  expect(first).toHaveLength(128);
  expect([...first]).toEqual([...first].sort((a, b) => a - b));
  const other = planTokens([], { count: 128, replicas: 1, seed: "ring/b", taken: [first] });
  expect(first.filter((token) => other.includes(token))).toHaveLength(0);
  const same = planTokens([], { count: 128, replicas: 1, seed: "ring/a", taken: [first] });
  expect(first.filter((token) => same.includes(token))).toHaveLength(0);
});
