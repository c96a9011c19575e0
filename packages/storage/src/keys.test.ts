import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import {
  dayPrefix,
  parseSegmentId,
  parseSegmentKey,
  segmentId,
  segmentKey,
  tenantPrefix,
} from "./keys.js";
import { checkKey } from "./object-store-key.js";

const dayNs = 86_400_000_000_000n;

describe("segment ids", () => {
  it("name the day and the times of the first and last row", () => {
    const minNs = BigInt(Date.UTC(2026, 10, 20, 10, 15, 0)) * 1_000_000n + 123_456_789n;
    const maxNs = BigInt(Date.UTC(2026, 10, 20, 23, 59, 59)) * 1_000_000n + 999_999_999n;
    const id = segmentId({ minNs, maxNs }, "a1");
    expect(id).toBe("20261120-101500123456789-235959999999999-a1");
    expect(parseSegmentId(id)).toEqual({ minNs, maxNs });
    expect(segmentKey("fake", id)).toBe(`tenant=fake/date=2026-11-20/${id}.parquet`);
  });

  it.each([
    "",
    "20261120-101500123456789-235959999999999-",
    "20261120-101500123456789-095959999999999-a",
    "20261320-101500123456789-235959999999999-a",
    "20260230-101500123456789-235959999999999-a",
    "20261120-241500123456789-245959999999999-a",
    "20261120-101500123456789-235959999999999-a/b",
    "20261120-10150012345678-235959999999999-a",
  ])("are not %j", (id) => {
    expect(parseSegmentId(id)).toBeUndefined();
    expect(() => segmentKey("t", id)).toThrow("is not valid");
  });

  it("cannot reach over midnight", () => {
    expect(() => segmentId({ minNs: 5n, maxNs: dayNs }, "a")).toThrow("cannot reach");
    expect(() => segmentId({ minNs: 5n, maxNs: 4n }, "a")).toThrow("cannot reach");
  });

  it("refuse a part that could leave its place", () => {
    expect(() => segmentId({ minNs: 0n, maxNs: 0n }, "../x")).toThrow("letters, digits");
  });
});

describe("segment keys", () => {
  const time = fc.bigInt({ min: -(2n ** 61n), max: 2n ** 62n });

  it("give back what they were made of, and are valid in any store", () => {
    fc.assert(
      fc.property(
        fc.string({ minLength: 1, maxLength: 40, unit: "grapheme" }),
        time,
        fc.bigInt({ min: 0n, max: dayNs }),
        (tenant, minNs, span) => {
          const dayEnd = minNs - (((minNs % dayNs) + dayNs) % dayNs) + dayNs - 1n;
          const maxNs = minNs + span > dayEnd ? dayEnd : minNs + span;
          const id = segmentId({ minNs, maxNs }, "u_1");
          const key = segmentKey(tenant, id);
          checkKey(key);
          expect(parseSegmentKey(key)).toEqual({ tenant, id, minNs, maxNs });
          expect(key.startsWith(dayPrefix(tenant, maxNs))).toBe(true);
        },
      ),
    );
  });

  it("sort by time within a tenant", () => {
    fc.assert(
      fc.property(time, time, (a, b) => {
        const key = (ns: bigint) => segmentKey("t", segmentId({ minNs: ns, maxNs: ns }, "u"));
        fc.pre(a < b && a > -62_135_596_800_000_000_000n);
        expect(key(a) < key(b)).toBe(true);
      }),
    );
  });

  it.each([
    "tenant=a/date=2026-11-21/20261120-101500123456789-235959999999999-a.parquet",
    "tenant=a/date=2026-11-20/other.parquet",
    "tenant=a%2/date=2026-11-20/20261120-101500123456789-235959999999999-a.parquet",
    "tenant=%61/date=2026-11-20/20261120-101500123456789-235959999999999-a.parquet",
    "index/tenant=a/date=2026-11-20/20261120-101500123456789-235959999999999-a.parquet",
    "tenant=a/date=2026-11-20/20261120-101500123456789-235959999999999-a.json",
  ])("are not %j", (key) => {
    expect(parseSegmentKey(key)).toBeUndefined();
  });

  it.each([
    ["a", "tenant=a/"],
    ["..", "tenant=../"],
    ["a/b", "tenant=a%2Fb/"],
    ["it's_(me)!*", "tenant=it's_(me)!*/"],
    ["größe %", "tenant=gr%C3%B6%C3%9Fe%20%25/"],
  ])("keep tenant %j apart from every other", (tenant, want) => {
    expect(tenantPrefix(tenant)).toBe(want);
  });
});
