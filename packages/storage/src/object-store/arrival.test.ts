import { describe, expect, it } from "@jest/globals";
import { arrivalOf, headId, inOrderOfArrival, mergedId } from "./keys.js";

const at = (id: string, minNs = 0n) => ({ id, minNs });
const order = (...some: { id: string; minNs: bigint }[]) =>
  inOrderOfArrival(some).map(({ id }) => id);
const life = "0123abcd";
const hash = "0".repeat(32);

describe("order of arrival", () => {
  it("is that in which heads were made", () => {
    const [a, b] = [headId("i-1", 1000, life, 9), headId("i-1", 1000, life, 10)];
    const c = headId("i-1", 1001, life, 0);
    expect(order(at(c, 1n), at(b, 2n), at(a, 3n))).toEqual([a, b, c]);
  });

  it("has the parts of a head in the order of the log, the last one behind them", () => {
    const head = headId("i", 1000, life, 1);
    const parts = [`${head}_1_99`, `${head}_1_100`, `${head}_2_5`, head];
    expect(order(...parts.map((id) => at(id)).reverse())).toEqual(parts);
  });

  it("has what is merged where its first input was", () => {
    const [a, b, c] = [1, 2, 3].map((ms) => headId("i", ms, life, 1)) as [string, string, string];
    const merged = mergedId(at(b), hash);
    const again = mergedId(at(merged), "1".repeat(32));
    expect(order(at(c), at(again), at(a))).toEqual([a, again, c]);
    expect(order(at(c), at(merged), at(a))).toEqual([a, merged, c]);
  });

  it("is that of first times, then of ids, where ids do not say", () => {
    expect(order(at("b", 5n), at("c", 4n), at("a", 5n))).toEqual(["c", "a", "b"]);
    expect(arrivalOf(at(`merged-${hash}`, 7_000_000n)).createdMs).toBe(7);
  });
});
