import { describe, expect, it } from "@jest/globals";
import { OldestHeld } from "./oldest-held.js";

const hourMs = 3_600_000;
const nowMs = 1_700_000_000_000 - (1_700_000_000_000 % hourMs) + hourMs / 2;

/** An ingester whose oldest row a test sets, and what its ring was told. */
function makeOldest() {
  const state = { oldestMs: undefined as number | undefined, fails: false, nowMs };
  const told: (number | undefined)[] = [];
  const oldest: OldestHeld = new OldestHeld({
    oldestNs: () =>
      state.oldestMs === undefined ? undefined : BigInt(state.oldestMs) * 1_000_000n,
    publish: async () => {
      if (state.fails) throw new Error("no ring");
      told.push(oldest.oldestMs());
    },
    clock: { nowMs: () => state.nowMs },
  });
  const push = (ms: number, meanwhile: () => void = () => undefined) =>
    oldest.aroundPush({ seconds: Float64Array.of(nowMs / 1000, ms / 1000) }, async () => {
      meanwhile();
      state.oldestMs = Math.min(state.oldestMs ?? ms, ms);
      return "stored";
    });
  return { oldest, state, told, push };
}

describe("the oldest row of an ingester", () => {
  it("is told before a push of rows that are older is answered, by the hour", async () => {
    const { push, told } = makeOldest();
    expect(await push(nowMs - 5 * hourMs)).toBe("stored");
    expect(told).toEqual([nowMs - 5.5 * hourMs]);
    await push(nowMs - 5 * hourMs - 60_000);
    expect(told).toHaveLength(1);
    await push(nowMs - 6 * hourMs);
    expect(told.at(-1)).toBe(nowMs - 6.5 * hourMs);
  });

  it("is not told for rows that ingesters are asked for anyway", async () => {
    const { push, told } = makeOldest();
    await push(nowMs - 60_000);
    expect(told).toEqual([]);
  });

  it("counts rows that are on their way into a head", async () => {
    const { oldest, push } = makeOldest();
    await push(nowMs - 5 * hourMs, () => {
      // A heartbeat in between finds nothing in the heads yet.
      expect(oldest.oldestMs()).toBe(nowMs - 5.5 * hourMs);
    });
  });

  it("rises when they are gone", async () => {
    const { oldest, state, push } = makeOldest();
    await push(nowMs - 5 * hourMs);
    state.oldestMs = nowMs;
    expect(oldest.oldestMs()).toBe(nowMs - hourMs / 2);
    state.oldestMs = undefined;
    expect(oldest.oldestMs()).toBeUndefined();
  });

  it("holds up no push while the ring cannot be told", async () => {
    const { state, told, push } = makeOldest();
    state.fails = true;
    expect(await push(nowMs - 5 * hourMs)).toBe("stored");
    state.fails = false;
    await push(nowMs - 6 * hourMs);
    expect(told).toEqual([]);
    state.nowMs += 10_000;
    await push(nowMs - 7 * hourMs);
    expect(told).toEqual([nowMs - 7.5 * hourMs]);
  });
});
