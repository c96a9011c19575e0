import { describe, expect, it } from "@jest/globals";
import { parseDelete, parseListRange } from "./delete-request.js";

const nowMs = 1_800_000_000_000;
const options = { nowMs, maxIntervalMs: 86_400_000 };
const good = { query: '{app="x"}', start: "1799990000", end: "1799999000" };

function parse(params: Record<string, string>) {
  return parseDelete(new URLSearchParams(params), options);
}

describe("parseDelete", () => {
  it.each<[string, Record<string, string>, readonly number[]]>([
    ["Unix seconds", good, [1_799_990_000_000, 1_799_999_000_000]],
    ["an end of now by default", { ...good, end: "" }, [1_799_990_000_000, nowMs]],
    [
      "RFC 3339",
      { ...good, start: "2027-01-15T05:00:00.1239Z", end: "2027-01-15T07:00:00+01:00" },
      [Date.parse("2027-01-15T05:00:00.123Z"), Date.parse("2027-01-15T06:00:00Z")],
    ],
    [
      "no interval without a filter",
      { ...good, max_interval: "1h" },
      [1_799_990_000_000, 1_799_999_000_000],
    ],
    [
      "parts by the clock",
      { ...good, query: '{app="x"} |= "y"', max_interval: "1h" },
      [1_799_990_000_000, 1_799_992_800_000, 1_799_996_400_000, 1_799_999_000_000],
    ],
    [
      "parts of the longest interval",
      { ...good, query: '{app="x"} | a="b"', start: "1799800000" },
      [1_799_800_000_000, 1_799_884_800_000, 1_799_971_200_000, 1_799_999_000_000],
    ],
  ])("reads %s", (_, params, want) => {
    expect(parse(params).boundsMs).toEqual(want);
  });

  it.each<[string, Record<string, string>]>([
    ["query not set", {}],
    ["query not set", { ...good, query: "" }],
    ["invalid query expression", { ...good, query: "rate({app=`x`}[1m])" }],
    ["invalid query expression", { ...good, query: "{app=" }],
    ["invalid query expression", { ...good, query: "{}" }],
    ["start time not set", { ...good, start: "" }],
    [
      "invalid start time: require unix seconds or RFC3339 format",
      { ...good, start: "1799990000.5" },
    ],
    [
      "invalid start time: require unix seconds or RFC3339 format",
      { ...good, start: "1799990000000000000" },
    ],
    [
      "invalid start time: require unix seconds or RFC3339 format",
      { ...good, start: "2027-01-15" },
    ],
    ["invalid end time: require unix seconds or RFC3339 format", { ...good, end: "abc" }],
    ["deletes in the future are not allowed", { ...good, end: "1800000001" }],
    ["start time can't be greater than or equal to end time", { ...good, start: good.end }],
    [
      "start time can't be greater than or equal to end time",
      { ...good, start: "1800000009", end: "" },
    ],
    ["invalid max_interval: valid time units are 's', 'm', 'h'", { ...good, max_interval: "x" }],
    [
      "invalid max_interval: valid time units are 's', 'm', 'h'",
      { ...good, max_interval: "1d", query: "{a=`b`} |= `c`" },
    ],
    [
      "invalid max_interval: valid time units are 's', 'm', 'h'",
      { ...good, max_interval: "5ms", query: "{a=`b`} |= `c`" },
    ],
    [
      "max_interval can't be greater than 24h0m0s",
      { ...good, max_interval: "25h", query: "{a=`b`} |= `c`" },
    ],
    [
      "max_interval can't be greater than the interval to be deleted (2h30m0s)",
      { ...good, max_interval: "3h", query: "{a=`b`} |= `c`" },
    ],
  ])("refuses: %s", (text, params) => {
    expect(() => parse(params)).toThrow(text);
  });

  it("makes no more parts than can be kept", () => {
    const { boundsMs } = parse({
      ...good,
      query: "{a=`b`} |= `c`",
      start: "0000000001",
      max_interval: "1s",
    });
    expect(boundsMs.length).toBeLessThanOrEqual(10_001);
    expect(boundsMs.length).toBeGreaterThan(5000);
  });
});

it.each<[Record<string, string>, unknown]>([
  [{}, undefined],
  [{ start: "1799990000" }, undefined],
  [
    { start: "1799990000", end: "1799990001" },
    { startMs: 1_799_990_000_000, endMs: 1_799_990_001_000 },
  ],
])("the list is asked for times by %j", (params, want) => {
  expect(parseListRange(new URLSearchParams(params))).toEqual(want);
});
