import { describe, expect, it } from "@jest/globals";
import type { RingInstance } from "./member.js";
import { Circle, RingView, type WritePlan } from "./ring-view.js";
import { fakeMember, fakeMembers } from "./testing/fake-members.js";

const keys = Uint32Array.from({ length: 3000 }, (_, i) => Math.imul(i, 0x9e3779b1));
const zones = ["a", "b", "c"];
const byInstance = { replicas: 3, isZoneAware: false };
const byZone = { replicas: 3, isZoneAware: true };

/** Members of which some are changed. */
function change(
  members: readonly RingInstance[],
  changes: Readonly<Record<string, Partial<RingInstance>>>,
): RingInstance[] {
  return members.map((member) => ({ ...member, ...changes[member.id] }));
}

/** For each key the instances that get it. */
function placesOf(plan: WritePlan): RingInstance[][] {
  const places = Array.from(keys, (): RingInstance[] => []);
  for (const { instance, keys: own } of plan.targets)
    for (const key of own) places[key]?.push(instance);
  return places;
}

describe("the circle", () => {
  it.each([
    ["before the first token", 5, 0],
    ["at a token, which is the next one's", 10, 1],
    ["between tokens", 15, 1],
    ["at the last token", 4_000_000_000, 0],
    ["behind the last token", 4_294_967_295, 0],
  ])("finds a key %s", (_, key, position) => {
    const circle = new Circle([Uint32Array.of(10, 4_000_000_000), Uint32Array.of(20)]);
    expect(circle.find(key)).toBe(position === 0 ? 0 : 1);
  });

  it("finds what a search of all tokens finds", () => {
    const circle = new Circle(fakeMembers(7).map(({ tokens }) => tokens));
    for (const key of keys) {
      const slow = circle.tokens.findIndex((token) => token > key >>> 0);
      expect(circle.find(key >>> 0)).toBe(Math.max(0, slow));
    }
  });
});

describe("writes", () => {
  it("go to as many different instances as there are copies, with a quorum", () => {
    const plan = new RingView(fakeMembers(10), byInstance).planWrites(keys);
    expect([plan.copies, plan.quorum]).toEqual([3, 2]);
    for (const places of placesOf(plan)) expect(new Set(places.map(({ id }) => id)).size).toBe(3);
  });

  it.each([
    ["unhealthy", { isHealthy: false }],
    ["leaving", { state: "LEAVING" as const }],
    ["not there yet", { state: "PENDING" as const }],
    ["joining", { state: "JOINING" as const }],
  ])("pass over an instance that is %s; another one takes its place", (_, state) => {
    const members = fakeMembers(5);
    const before = placesOf(new RingView(members, byInstance).planWrites(keys));
    const plan = new RingView(change(members, { i2: state }), byInstance).planWrites(keys);
    for (const [i, places] of placesOf(plan).entries()) {
      const ids = places.map(({ id }) => id);
      expect(ids).toHaveLength(3);
      expect(ids).not.toContain("i2");
      for (const { id } of before[i] ?? []) if (id !== "i2") expect(ids).toContain(id);
    }
  });

  it("go on with a quorum and end below it", () => {
    const members = fakeMembers(3);
    const one = new RingView(change(members, { i1: { isHealthy: false } }), byInstance);
    expect(one.planWrites(keys).copies).toBe(2);
    const dead = { isHealthy: false };
    const two = new RingView(change(members, { i1: dead, i2: dead }), byInstance);
    expect(() => two.planWrites(keys)).toThrow(
      "at least 2 live replicas required, could only find 1 - unhealthy instances: i1,i2",
    );
    expect(() => new RingView([], byInstance).planWrites(keys)).toThrow("could only find 0");
  });

  it("of one copy go to the owner", () => {
    const view = new RingView(fakeMembers(4), { replicas: 1, isZoneAware: false });
    for (const [i, places] of placesOf(view.planWrites(keys)).entries())
      expect(places).toEqual([view.ownerOf(keys[i]!)]);
  });

  it("go to different zones, and within a zone to another instance when one is lost", () => {
    const members = fakeMembers(9, { zones });
    const dead = change(members, { i0: { isHealthy: false } });
    for (const places of placesOf(new RingView(dead, byZone).planWrites(keys))) {
      expect(places.map(({ zone }) => zone).sort()).toEqual(zones);
      expect(places.map(({ id }) => id)).not.toContain("i0");
    }
  });

  it("go on when a zone is lost, never twice into one zone", () => {
    const members = fakeMembers(9, { zones });
    const lost = members.map((one) => ({ ...one, isHealthy: one.zone !== "b" }));
    const plan = new RingView(lost, byZone).planWrites(keys);
    expect(plan.copies).toBe(2);
    for (const places of placesOf(plan))
      expect(places.map(({ zone }) => zone).sort()).toEqual(["a", "c"]);
    const two = members.map((one) => ({ ...one, isHealthy: one.zone === "a" }));
    expect(() => new RingView(two, byZone).planWrites(keys)).toThrow("could only find 1");
  });
});

describe("reads", () => {
  const dead = { isHealthy: false };

  it.each<[string, Record<string, Partial<RingInstance>>, number, number]>([
    ["all well", {}, 5, 1],
    ["one dead", { i1: dead }, 4, 0],
    ["one leaving", { i1: { state: "LEAVING" } }, 5, 1],
    ["one starting again", { i1: { state: "PENDING" } }, 5, 1],
    ["one that never had keys", { i1: { state: "PENDING", tokens: new Uint32Array(0) } }, 4, 1],
  ])("with %s", (_, changes, asked, maxMissing) => {
    const set = new RingView(change(fakeMembers(5), changes), byInstance).readSet();
    expect(set.instances).toHaveLength(asked);
    expect(set).toMatchObject({ maxMissing, byZone: false });
  });

  it("fail when more are dead than a quorum allows, and in an empty ring", () => {
    const view = new RingView(change(fakeMembers(5), { i1: dead, i3: dead }), byInstance);
    expect(() => view.readSet()).toThrow("too many unhealthy instances in the ring: i1,i3");
    expect(() => new RingView([], byInstance).readSet()).toThrow("empty ring");
  });

  it("allow nothing to be missing of a ring that shrank below its copies", () => {
    expect(new RingView(fakeMembers(2), byInstance).readSet().maxMissing).toBe(0);
    expect(() => new RingView(fakeMembers(1), byInstance).readSet()).toThrow("too many unhealthy");
  });

  it("see each write whichever answers are missing", () => {
    const members = fakeMembers(6);
    for (const id of ["i0", "i3"]) {
      const view = new RingView(change(members, { [id]: dead }), byInstance);
      const { instances, maxMissing } = view.readSet();
      const read = new Set(instances.map((one) => one.id));
      const plan = new RingView(members, byInstance).planWrites(keys);
      for (const places of placesOf(plan)) {
        const seen = places.filter((one) => read.has(one.id)).length - maxMissing;
        expect(seen).toBeGreaterThanOrEqual(1 + 3 - plan.quorum);
      }
    }
  });

  it("may lack one zone; with one lost they need the others", () => {
    const members = fakeMembers(9, { zones });
    const well = new RingView(members, byZone).readSet();
    expect([well.instances.length, well.maxMissing, well.byZone]).toEqual([9, 1, true]);
    const lost = members.map((one) => ({ ...one, isHealthy: one.zone !== "b" }));
    const two = new RingView(lost, byZone).readSet();
    expect([two.instances.length, two.maxMissing]).toEqual([6, 0]);
    const worse = change(lost, { i0: dead });
    expect(() => new RingView(worse, byZone).readSet()).toThrow("too many unhealthy");
  });

  it("count instances where there are too few zones to go by", () => {
    const members = change(fakeMembers(3, { zones: ["a"] }), { i1: dead });
    const set = new RingView(members, byZone).readSet();
    expect([set.instances.length, set.maxMissing, set.byZone]).toEqual([2, 0, false]);
  });
});

describe("shards of tenants", () => {
  const members = fakeMembers(30, { zones, tokens: 8 });
  const tenants = Array.from({ length: 200 }, (_, i) => `tenant-${i}`);
  const idsOf = (view: RingView) => view.instances.map(({ id }) => id);

  it("have as many instances as wanted, the same ones each time, spread over tenants", () => {
    const view = new RingView(members, byInstance);
    const uses = new Map<string, number>();
    for (const tenant of tenants) {
      const ids = idsOf(view.shard(tenant, 6));
      expect(ids).toHaveLength(6);
      expect(idsOf(new RingView(members, byInstance).shard(tenant, 6))).toEqual(ids);
      for (const id of ids) uses.set(id, (uses.get(id) ?? 0) + 1);
    }
    // 40 each on average.
    expect(Math.min(...uses.values())).toBeGreaterThan(20);
    expect(Math.max(...uses.values())).toBeLessThan(65);
  });

  it("are the whole ring where none is wanted, or more than there are", () => {
    const view = new RingView(members, byInstance);
    expect(view.shard("a", 0)).toBe(view);
    expect(view.shard("a", 30)).toBe(view);
  });

  it("have as many instances of each zone", () => {
    const view = new RingView(members, byZone);
    for (const tenant of tenants) {
      const found = view.shard(tenant, 6).instances.map(({ zone }) => zone);
      expect(found.sort()).toEqual(["a", "a", "b", "b", "c", "c"]);
    }
  });

  it("change in one place at most when an instance comes or goes", () => {
    const fewer = new RingView(members.slice(0, -1), byInstance);
    const more = new RingView(members, byInstance);
    let changed = 0;
    for (const tenant of tenants) {
      const [before, after] = [idsOf(fewer.shard(tenant, 6)), idsOf(more.shard(tenant, 6))];
      const come = after.filter((id) => !before.includes(id));
      expect(come.length === 0 || (come.length === 1 && come[0] === "i29")).toBe(true);
      changed += come.length;
    }
    // A fifth of the tenants: 6 of 30.
    expect(changed / tenants.length).toBeGreaterThan(0.1);
    expect(changed / tenants.length).toBeLessThan(0.3);
  });

  it("look back: those who had the keys before a newer instance came are asked too", () => {
    const before = new RingView(members.slice(0, -1), byInstance);
    const after = new RingView(change(members, { i29: { registeredMs: 60_000 } }), byInstance);
    for (const tenant of tenants) {
      const old = idsOf(before.shard(tenant, 6));
      const now = idsOf(after.shard(tenant, 6));
      const both = idsOf(after.shard(tenant, 6, 60_000));
      for (const id of [...old, ...now]) expect(both).toContain(id);
      expect(both.length).toBeLessThanOrEqual(7);
      expect(idsOf(after.shard(tenant, 6, 120_000))).toEqual(now);
    }
  });

  it("take writes only on their own instances", () => {
    const shard = new RingView(members, byInstance).shard("a", 4);
    const ids = new Set(idsOf(shard));
    for (const places of placesOf(shard.planWrites(keys)))
      for (const { id } of places) expect(ids.has(id)).toBe(true);
  });
});

it("counts the instances that work, also without tokens", () => {
  const members = ["a", "b", "c", "d"].map((id) => fakeMember(id));
  const changes = { b: { isHealthy: false }, c: { state: "LEAVING" as const } };
  expect(new RingView(change(members, changes), byInstance).activeCount).toBe(2);
});

it("has one owner for a key, another one while that is dead, and none in an empty ring", () => {
  const members = fakeMembers(5, { replicas: 1 });
  const view = new RingView(members, { replicas: 1, isZoneAware: false });
  const owner = view.ownerOf(42)?.id as string;
  const without = change(members, { [owner]: { isHealthy: false } });
  const next = new RingView(without, { replicas: 1, isZoneAware: false }).ownerOf(42)?.id;
  expect([owner, next]).toEqual([owner, expect.not.stringMatching(`^${owner}$`)]);
  expect(new RingView([], { replicas: 1, isZoneAware: false }).ownerOf(42)).toBeUndefined();
});

it("says what part of the keys each has", () => {
  const parts = [...new RingView(fakeMembers(4), byInstance).ownership().values()];
  expect(parts.reduce((a, b) => a + b)).toBeCloseTo(1, 9);
  for (const part of parts) expect(part).toBeCloseTo(0.25, 1);
});
