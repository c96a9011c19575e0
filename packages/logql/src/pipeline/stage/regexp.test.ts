import { describe, expect, it } from "@jest/globals";
import { runStages } from "../../testing/run-stages.js";

describe("regexp", () => {
  it.each([
    [
      "user=(?P<user>\\w+) op=(?P<op>\\w+)",
      "user=bob op=write user=x op=y",
      { user: "bob", op: "write" },
    ],
    ["(?<a>a)-(?P<b>b)?-(?P<c>zz)?", "a-b-c", { a: "a", b: "b", c: "" }],
    ["(no) (?P<x>y)", "something else", {}],
    ["(?P<1st>\\d)(?P<second>\\d)", "12", { _1st: "1", second: "2" }],
    ["(?P<word>\\p{Lu}\\p{Ll}+)", "die Straße", { word: "Straße" }],
    ["(?i)(?P<verb>get|post) ", "POST /", { verb: "POST" }],
    ["(?P<a>.*)=(?P<b>.*)", "x=y=z", { a: "x=y", b: "z" }],
  ])("%s of %s", (pattern, line, want) => {
    expect(runStages(`| regexp \`${pattern}\``, line)?.labels).toEqual(want);
  });

  it("gives a taken name another one", () => {
    expect(runStages("| regexp `(?P<app>\\d+)`", "a 12", { labels: { app: "x" } })?.labels).toEqual(
      { app_extracted: "12" },
    );
  });
});
