import { describe, expect, it } from "@jest/globals";
import * as field from "./field.js";
import { defaultsOf, formatConfig, pickChanged } from "./print.js";
import { readSchema } from "./settings.js";

const root = readSchema(
  field.section("", {
    wait: field.duration("0s", ""),
    size: field.size("0B", ""),
    until: field.time(""),
    server: field.section("", { port: field.integer(1, ""), list: field.list(["a"], "") }),
    free: field.map(""),
  }),
);
const defaults = defaultsOf(root);

describe("formatConfig", () => {
  it.each([
    ["wait", 0, "0s"],
    ["wait", 100, "100ms"],
    ["wait", 5_400_000, "1h30m"],
    ["wait", 604_800_000, "1w"],
    ["wait", -1, "-1ms"],
    ["wait", 9_223_372_036_854.775, "2562047h47m16.854775807s"],
    ["size", 0, "0"],
    ["size", 262_144, "256KB"],
    ["size", 262_145, "262145"],
    ["size", 1_572_864, "1.5MB"],
    ["until", 0, "0"],
    ["until", Date.UTC(2026, 0, 1), "2026-01-01T00:00:00Z"],
  ])("prints %s %d as %s", (key, value, want) => {
    expect(formatConfig(root, { [key]: value })).toBe(`${key}: ${want}\n`);
  });

  it("masks what has a telling name in keys that it does not know", () => {
    const free = { basic_auth: { username: "u", password: "p" }, tokens: ["t"], api_key: "k" };
    const text = formatConfig(root, { free });
    expect(text).toContain("username: u");
    expect(text).toContain('password: "********"');
    expect(text).toContain('api_key: "********"');
  });
});

describe("pickChanged", () => {
  it("keeps only what differs", () => {
    const config = { ...defaults, wait: 5, server: { port: 1, list: ["b"] } };
    expect(pickChanged(root, config, defaults)).toEqual({ wait: 5, server: { list: ["b"] } });
    expect(pickChanged(root, defaults, defaultsOf(root))).toEqual({});
    expect(formatConfig(root, pickChanged(root, config, defaults))).toBe(
      "wait: 5ms\nserver:\n  list:\n    - b\n",
    );
  });
});
