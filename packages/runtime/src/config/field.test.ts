import { describe, expect, it } from "@jest/globals";
import { z } from "zod";
import * as field from "./field.js";
import { noteOf, sectionHelpOf } from "./field.js";

/** Parses as a flag or a scalar of YAML would be. */
function parse(schema: field.Field<unknown>, text: unknown): unknown {
  const result = schema.safeParse(text);
  return result.success ? result.data : result.error.issues[0]?.message;
}

describe("fields", () => {
  const duration = field.duration("1h", "");
  const size = field.size("1KB", "");
  const integer = field.integer(1, "", undefined, { max: 65_535 });
  const cases: [string, field.Field<unknown>, unknown, unknown][] = [
    ["Go duration", duration, "1h30m", 5_400_000],
    ["fraction", duration, "1.5s", 1500],
    ["below a millisecond", duration, "100us", 0.1],
    ["days", duration, "7d", 604_800_000],
    ["weeks and days", duration, "1w1d", 691_200_000],
    ["zero", duration, "0", 0],
    ["longest", duration, "2562047h47m16.854775807s", 9_223_372_036_854.775],
    ["missing unit", duration, "5", 'missing unit in duration "5"; write it like 30s, 1h30m or 7d'],
    [
      "unknown unit",
      duration,
      "5x",
      'unknown unit "x" in duration "5x"; write it like 30s, 1h30m or 7d',
    ],
    ["no duration", duration, "soon?", expect.stringContaining('in duration "soon?"')],
    ["negative duration", duration, "-5s", "-5s is less than 0s"],
    ["minus one", field.duration("0s", "", undefined, { min: -1 }), "-1", -1],
    ["plain size", size, "1048576", 1_048_576],
    ["size with an exponent", size, "1.572864e+06", 1_572_864],
    ["KB", size, "256KB", 262_144],
    ["MB", size, "5MB", 5_242_880],
    ["GB", size, "1.5GB", 1_610_612_736],
    ["MiB", size, "1MiB", 1_048_576],
    ["lower case", size, "64kb", 65_536],
    ["no size", size, "5XB", '"5XB" is not a size; write bytes, or 256KB, 5MB, 1GB'],
    ["integer", integer, "3100", 3100],
    ["integer with an exponent", integer, "1e3", 1000],
    ["fraction of an integer", integer, "1.5", '"1.5" is not an integer'],
    ["word", integer, "many", '"many" is not a number'],
    ["below range", integer, "-1", "-1 is less than 0"],
    ["above range", integer, "70000", "70000 is more than 65535"],
    ["float", field.float(0, ""), "0.25", 0.25],
    ["no float", field.float(0, ""), "NaN", '"NaN" is not a number'],
    ["true", field.toggle(false, ""), "true", true],
    ["yes", field.toggle(false, ""), "yes", true],
    ["off", field.toggle(true, ""), "OFF", false],
    ["no boolean", field.toggle(true, ""), "maybe", '"maybe" is not true or false'],
    ["choice", field.choice("a", ["a", "b"], ""), "b", "b"],
    ["no choice", field.choice("a", ["a", "b"], ""), "c", '"c" is not one of a, b'],
    ["list", field.list([], ""), ["a", "b"], ["a", "b"]],
    ["list with commas", field.list([], ""), "a, b,,c", ["a", "b", "c"]],
    ["time", field.time(""), "2026-01-31T12:00:00Z", Date.UTC(2026, 0, 31, 12)],
    ["no time set", field.time(""), "0", 0],
    ["no time", field.time(""), "tomorrow", expect.stringContaining('"tomorrow" is not a time')],
    ["text", field.text("", ""), "a b", "a b"],
    ["secret", field.secret(""), "x", "x"],
    ["data", field.data(z.array(z.number()), [], "numbers", ""), [1, 2], [1, 2]],
  ];
  it.each(cases)("%s", (_, schema, input, want) => {
    expect(parse(schema, input)).toEqual(want);
  });

  it("keeps what the printers need to know", () => {
    expect(noteOf(field.size("256KB", "help", "a.flag"))).toMatchObject({
      kind: "scalar",
      type: "size",
      help: "help",
      flag: "a.flag",
      defaultValue: 262_144,
    });
    expect(noteOf(field.section("help", {}))).toBeUndefined();
    expect(sectionHelpOf(field.section("help", {}))).toBe("help");
    expect(sectionHelpOf(z.object({}))).toBe("");
  });

  it("refuses a default that is none", () => {
    expect(() => field.duration("5", "")).toThrow("missing unit");
  });
});
