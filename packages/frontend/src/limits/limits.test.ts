import { describe, expect, it } from "@jest/globals";
import { combineLimits, type QueryTenantLimits } from "./limits.js";

const none: QueryTenantLimits = {
  maxEntriesPerQuery: 0,
  maxSeries: 0,
  maxLengthNs: 0n,
  maxLookbackNs: 0n,
  maxRangeNs: 0n,
  maxMatchersPerQuery: 0,
  maxBytesRead: 0,
  timeoutMs: 0,
  requiredLabels: [],
  minLabels: 0,
};

describe("combineLimits", () => {
  it("takes the smallest that is set of each limit", () => {
    const all = [
      { ...none, maxBytesRead: 500, timeoutMs: 10, maxLengthNs: 7n, requiredLabels: ["a"] },
      { ...none, maxBytesRead: 0, timeoutMs: 5, maxLengthNs: 0n, requiredLabels: ["b", "a"] },
      { ...none, maxBytesRead: 300, minLabels: 2 },
    ];
    expect(combineLimits(all)).toEqual({
      ...none,
      maxBytesRead: 300,
      timeoutMs: 5,
      maxLengthNs: 7n,
      requiredLabels: ["a", "b"],
      minLabels: 2,
    });
  });

  it("has no limit that no tenant has", () => {
    expect(combineLimits([none, none])).toEqual(none);
  });
});
