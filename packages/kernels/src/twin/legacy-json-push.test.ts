import { describe, expect, it } from "@jest/globals";
import { noTimestampSeconds, scanLegacyJsonPush } from "../index.js";
import { plainRow as row, toPlain, wideLimits } from "../testing/push-oracle.js";

const utf8 = (text: string) => new TextEncoder().encode(text);
const time = 1_700_000_000_123_456_789n;

describe("legacy json push", () => {
  const scan = (body: unknown, limits = wideLimits) =>
    toPlain(scanLegacyJsonPush(utf8(JSON.stringify(body)), limits));
  const entry = (ts: unknown) => ({ streams: [{ labels: "{}", entries: [{ ts, line: "x" }] }] });

  it("reads labels, entries and metadata", () => {
    const body = {
      streams: [
        {
          labels: '{a="b"}',
          entries: [
            { ts: "2023-11-14T22:13:20.123456789Z", line: "ü", structuredMetadata: { k: "v" } },
          ],
        },
        {},
      ],
    };
    expect(scan(body)).toEqual([
      { labels: '{a="b"}', rows: [row(time, "ü", [["k", "v"]])] },
      { labels: "", rows: [] },
    ]);
  });

  it.each<[string, number, number]>([
    ["1970-01-01T00:00:00Z", 0, 0],
    ["1970-01-01T02:00:00.5+01:30", 1800, 500_000_000],
    ["1969-12-31t23:59:59.999999999z", -1, 999_999_999],
    ["0001-01-01T00:00:00Z", noTimestampSeconds, 0],
    ["2024-02-29T12:00:00-00:30", 1_709_209_800, 0],
  ])("reads the time %s", (ts, seconds, nanos) => {
    expect(scan(entry(ts))[0]!.rows).toEqual([{ seconds, nanos, line: "x", pairs: [] }]);
  });

  it.each([
    ["x"],
    [5],
    ["2023-02-29T00:00:00Z"],
    ["2023-01-01 00:00:00Z"],
    ["2023-01-01T24:00:00Z"],
  ])("refuses the time %p", (ts) => expect(() => scan(entry(ts))).toThrow("json: ts"));

  it("does not look behind the body", () => {
    const body = JSON.stringify(entry("1970-01-01T00:00:00Z"));
    for (const more of [body, " }", "x"])
      expect(toPlain(scanLegacyJsonPush(utf8(`${body}\n${more}`), wideLimits))).toEqual([
        { labels: "{}", rows: [row(0n, "x")] },
      ]);
    expect(() => scanLegacyJsonPush(utf8("x"), wideLimits)).toThrow("json: ");
    expect(() => scanLegacyJsonPush(utf8("[".repeat(1000)), wideLimits)).toThrow("json: ");
  });

  it.each<[unknown, string]>([
    [[], "body must be an object"],
    [{ streams: {} }, "streams must be an array"],
    [{ streams: [{ labels: 5 }] }, "labels must be a string"],
    [{ streams: [{ entries: [{ structuredMetadata: { a: 1 } }] }] }, "must be strings"],
  ])("refuses %j", (body, text) => {
    expect(() => scan(body)).toThrow(text);
  });

  it("counts against the limits", () => {
    const limits = { ...wideLimits, maxRows: 0 };
    expect(() => scan(entry("1970-01-01T00:00:00Z"), limits)).toThrow("more than 0 entries");
  });
});
