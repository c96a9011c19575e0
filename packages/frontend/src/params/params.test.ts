import { describe, expect, it } from "@jest/globals";
import {
  parseBounds,
  parseInstantParams,
  parseRangeParams,
  parseSpan,
  parseTime,
} from "./params.js";

const second = 1_000_000_000n;
const now = 1_795_000_000n * second;

describe("parseTime", () => {
  it.each([
    ["1700000000", 1_700_000_000n * second],
    ["17000000001", 17_000_000_001n],
    ["1700000000123456789", 1_700_000_000_123_456_789n],
    ["1700000000.5", 1_700_000_000n * second + second / 2n],
    ["1700000000.1236", 1_700_000_000n * second + 124_000_000n],
    ["2023-11-14T22:13:20Z", 1_700_000_000n * second],
    ["2023-11-14T22:13:20.000000001Z", 1_700_000_000n * second + 1n],
    ["2023-11-15T00:13:20+02:00", 1_700_000_000n * second],
    ["-5", -5n * second],
    ["1700000000.00049999", 1_700_000_000n * second],
    ["-0.0005", -1_000_000n],
    ["0099-03-01T00:00:00Z", -59_037_897_600n * second],
    ["2024-02-29T00:00:00Z", 1_709_164_800n * second],
  ])("reads %s", (text, want) => expect(parseTime(text)).toBe(want));

  it.each([
    "",
    "x",
    "1e9",
    "2023-13-01T00:00:00Z",
    "2023-02-29T00:00:00Z",
    "2023-11-14 22:13:20",
    "1.2.3",
    " 1.5",
  ])("refuses %j", (text) => expect(parseTime(text)).toBeUndefined());
});

describe("parseSpan", () => {
  it.each([
    ["60", 60n * second],
    ["0.5", second / 2n],
    ["593.4705882352941", 593_470_000_000n],
    ["1h30m", 5400n * second],
    ["100ms", second / 10n],
    ["2d", 172_800n * second],
  ])("reads %s", (text, want) => expect(parseSpan(text)).toBe(want));

  it.each(["x", "1.5h", "0.5m", "5 m", "1e10", "-1e400"])("refuses %j", (text) =>
    expect(() => parseSpan(text)).toThrow(`cannot parse "${text}" to a valid duration`),
  );
});

describe("parseBounds", () => {
  it.each([
    ["nothing given", {}, now - 3600n * second, now],
    ["since", { since: "10m" }, now - 600n * second, now],
    ["start beats since", { since: "10m", start: "1794999999" }, now - second, now],
    [
      "since counts from an end in the past",
      { since: "1m", end: "1794999900" },
      now - 160n * second,
      now - 100n * second,
    ],
    [
      "since counts from now when the end is ahead",
      { since: "1m", end: "1795000100" },
      now - 60n * second,
      now + 100n * second,
    ],
  ])("%s", (_name, params, startNs, endNs) =>
    expect(parseBounds(new URLSearchParams(params), now, 3600n * second)).toEqual({
      startNs,
      endNs,
    }),
  );

  it.each([
    [
      { start: "2024-13-01T00:00:00Z" },
      `could not parse 'start' parameter: strconv.ParseInt: parsing "2024-13-01T00:00:00Z": invalid syntax`,
    ],
    [
      { start: "1.5.5" },
      `could not parse 'start' parameter: strconv.ParseInt: parsing "1.5.5": invalid syntax`,
    ],
    [
      { end: "9223372036854775808" },
      `could not parse 'end' parameter: strconv.ParseInt: parsing "9223372036854775808": value out of range`,
    ],
    [
      { end: "9".repeat(100_000) },
      "could not parse 'end' parameter: strconv.ParseInt: parsing \"999",
    ],
    [{ since: "x" }, `could not parse 'since' parameter: not a valid duration string: "x"`],
    [{ since: "5x" }, `could not parse 'since' parameter: unknown unit "x" in duration "5x"`],
  ])("refuses %j", (params, text) =>
    expect(() =>
      parseBounds(new URLSearchParams(params as Record<string, string>), now, second),
    ).toThrow(text),
  );
});

describe("parseRangeParams", () => {
  const range = { query: "{}", start: "1794990000", end: "1795000000" };

  it("fills in what is not given", () =>
    expect(parseRangeParams(new URLSearchParams(range), now)).toEqual({
      query: "{}",
      startNs: 1_794_990_000n * second,
      endNs: now,
      stepNs: 40n * second,
      intervalNs: 0n,
      limit: 100,
      direction: "backward",
    }));

  it("takes an empty parameter as not given", () =>
    expect(
      parseRangeParams(
        new URLSearchParams({ ...range, step: "", interval: "", limit: "", direction: "" }),
        now,
      ),
    ).toEqual(parseRangeParams(new URLSearchParams(range), now)));

  it("takes a step of at least a second by default", () =>
    expect(
      parseRangeParams(new URLSearchParams({ ...range, start: "1794999990" }), now).stepNs,
    ).toBe(second));

  it.each([
    [{ end: "1794989999" }, "end timestamp must not be before or equal to start time"],
    [{ step: "0" }, "zero or negative query resolution step widths are not accepted"],
    [{ step: "-5" }, "zero or negative query resolution step widths are not accepted"],
    [{ step: "0.5" }, "exceeded maximum resolution of 11,000 points per time series"],
    [{ interval: "-1" }, "interval must be >= 0"],
    [{ limit: "0" }, "limit must be a positive value"],
    [{ limit: "x" }, 'strconv.Atoi: parsing "x": invalid syntax'],
    [{ limit: "99999999999" }, "limit value 99999999999 is out of range [0, 4294967295]"],
    [
      { limit: "9223372036854775808" },
      'strconv.Atoi: parsing "9223372036854775808": value out of range',
    ],
    [{ direction: "up" }, "invalid direction 'up'"],
  ])("refuses %j", (params, text) =>
    expect(() =>
      parseRangeParams(new URLSearchParams({ ...range, ...params } as Record<string, string>), now),
    ).toThrow(text),
  );

  it("reads the direction in any case", () =>
    expect(
      parseRangeParams(new URLSearchParams({ ...range, direction: "FORWARD" }), now).direction,
    ).toBe("forward"));
});

describe("parseInstantParams", () => {
  it("takes now by default", () =>
    expect(parseInstantParams(new URLSearchParams(), now).timeNs).toBe(now));
  it("refuses what is no time", () =>
    expect(() => parseInstantParams(new URLSearchParams({ time: "x" }), now)).toThrow(
      'strconv.ParseInt: parsing "x": invalid syntax',
    ));
});
