import { describe, expect, it } from "@jest/globals";
import { formatBytes, tooManyBytesRead } from "./budget.js";

const gib = 1024 ** 3;

describe("formatBytes", () => {
  it.each([
    [0, "0 B"],
    [512, "512 B"],
    [1023, "1023 B"],
    [1024, "1.0 KiB"],
    [10 * 1024, "10 KiB"],
    [5 * gib, "5.0 GiB"],
    [150 * gib, "150 GiB"],
    [1.25 * gib, "1.3 GiB"],
  ])("%d is %s", (bytes, text) => expect(formatBytes(bytes)).toBe(text));
});

describe("tooManyBytesRead", () => {
  it("says what was asked for, and what may be", () => {
    expect(tooManyBytesRead(5 * gib, gib)).toMatchObject({
      code: "invalid_argument",
      message: expect.stringMatching(
        /^the query would read too many bytes \(query: 5\.0 GiB, limit: 1\.0 GiB\)/,
      ),
    });
  });
});
