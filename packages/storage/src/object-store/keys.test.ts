import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { dayPrefix, parseSegmentKey, segmentKey, tenantPrefix } from "./keys.js";
import { checkKey } from "./object-store.js";

const dayNs = 86_400_000_000_000n;

describe("segment keys", () => {
  const time = fc.bigInt({ min: -(2n ** 61n), max: 2n ** 62n });
  const minNs = BigInt(Date.UTC(2026, 10, 20, 10, 15, 0)) * 1_000_000n + 123_456_789n;
  const maxNs = BigInt(Date.UTC(2026, 10, 20, 23, 59, 59)) * 1_000_000n + 999_999_999n;

  it("name the tenant, the day, and the times of the first and last row", () => {
    expect(segmentKey({ tenant: "fake", id: "a-1.b_2", minNs, maxNs })).toBe(
      "tenant=fake/date=2026-11-20/101500123456789-235959999999999-a-1.b_2.parquet",
    );
  });

  it("cannot reach over midnight", () => {
    const key = { tenant: "t", id: "a" };
    expect(() => segmentKey({ ...key, minNs: 5n, maxNs: dayNs })).toThrow("cannot reach");
    expect(() => segmentKey({ ...key, minNs: 5n, maxNs: 4n })).toThrow("cannot reach");
  });

  it.each(["", "../x", "a/b", "a b", "x".repeat(201)])("refuse the id %j", (id) => {
    expect(() => segmentKey({ tenant: "t", id, minNs, maxNs })).toThrow("is not valid");
  });

  it("give back what they were made of, and are valid in any store", () => {
    fc.assert(
      fc.property(
        fc.string({ minLength: 1, maxLength: 40, unit: "grapheme" }),
        time,
        fc.bigInt({ min: 0n, max: dayNs }),
        (tenant, minNs, span) => {
          const dayEnd = minNs - (((minNs % dayNs) + dayNs) % dayNs) + dayNs - 1n;
          const maxNs = minNs + span > dayEnd ? dayEnd : minNs + span;
          const segment = { tenant, id: "u-1.5_x", minNs, maxNs };
          const key = segmentKey(segment);
          checkKey(key);
          expect(parseSegmentKey(key)).toEqual(segment);
          expect(key.startsWith(dayPrefix(tenant, maxNs))).toBe(true);
        },
      ),
    );
  });

  it("split long tenants, apart from tenants with the same beginning", () => {
    const [a, b, c] = ["t".repeat(200), "t".repeat(201), "é".repeat(768)] as const;
    expect(tenantPrefix(a)).toBe(`tenant=${a}/`);
    expect(tenantPrefix(b)).toBe(`tenant=${a}~/t/`);
    for (const tenant of [a, b, c]) {
      const key = segmentKey({ tenant, id: "u", minNs, maxNs });
      expect(parseSegmentKey(key)).toEqual({ tenant, id: "u", minNs, maxNs });
      expect(Math.max(...key.split("/").map((part) => part.length))).toBeLessThan(256);
      for (const other of [a, b, c])
        expect(key.startsWith(tenantPrefix(other))).toBe(other === tenant);
    }
    for (const split of ["a~/b", "~/a", `${a}~/`, `${a}t`, `${a}/t`]) {
      const name = "101500123456789-235959999999999-u.parquet";
      expect(parseSegmentKey(`tenant=${split}/date=2026-11-20/${name}`)).toBeUndefined();
    }
  });

  it.each([
    ["t".repeat(200), ".", "%2E"],
    ["t".repeat(200), "..", "%2E%2E"],
    ["t".repeat(200), "...", "%2E%2E%2E"],
    [".".repeat(200), "..", "%2E%2E"],
  ])("are valid for a long tenant whose last piece is dots: %s %s", (first, last, want) => {
    const segment = { tenant: first + last, id: "u", minNs, maxNs };
    const key = segmentKey(segment);
    checkKey(key);
    expect(key).toContain(`~/${want}/date=`);
    expect(parseSegmentKey(key)).toEqual(segment);
  });

  it("sort by time within a tenant", () => {
    fc.assert(
      fc.property(time, time, (a, b) => {
        const key = (ns: bigint) => segmentKey({ tenant: "t", id: "u", minNs: ns, maxNs: ns });
        fc.pre(a < b && a > -62_135_596_800_000_000_000n);
        expect(key(a) < key(b)).toBe(true);
      }),
    );
  });

  it.each([
    "tenant=a/date=2026-13-20/101500123456789-235959999999999-a.parquet",
    "tenant=a/date=2026-02-30/101500123456789-235959999999999-a.parquet",
    "tenant=a/date=2026-11-20/241500123456789-245959999999999-a.parquet",
    "tenant=a/date=2026-11-20/101500123456789-095959999999999-a.parquet",
    "tenant=a/date=2026-11-20/10150012345678-235959999999999-a.parquet",
    "tenant=a/date=2026-11-20/101500123456789-235959999999999-.parquet",
    "tenant=a/date=2026-11-20/other.parquet",
    "tenant=a%2/date=2026-11-20/101500123456789-235959999999999-a.parquet",
    "tenant=%61/date=2026-11-20/101500123456789-235959999999999-a.parquet",
    "index/tenant=a/date=2026-11-20/101500123456789-235959999999999-a.parquet",
    "tenant=a/date=2026-11-20/101500123456789-235959999999999-a.json",
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
