import { describe, expect, it } from "@jest/globals";
import { defaultLimits } from "@skald/runtime/config";
import { maxStreamsOf } from "./options.js";

describe("maxStreamsOf", () => {
  it.each([
    [0, 0, 0],
    [10, 0, 10],
    [0, 20, 20],
    [10, 20, 10],
    [30, 20, 20],
  ])("takes the smaller limit that is set: %d and %d", (own, all, want) => {
    const limits = { max_streams_per_user: own, max_global_streams_per_user: all };
    expect(maxStreamsOf({ ...defaultLimits, ...limits })).toBe(want);
  });
});
