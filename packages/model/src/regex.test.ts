import { describe, expect, it } from "@jest/globals";
import { compileRegex } from "./regex.js";

describe("compileRegex", () => {
  it.each([
    ["(", "error parsing regexp: missing closing ): `(`"],
    ["a)(b", "error parsing regexp: unexpected ): `a)(b`"],
    ["[", "error parsing regexp: missing closing ]: `[`"],
    ["a**", "error parsing regexp: invalid nested repetition operator: `**`"],
    ["x{1001}", "error parsing regexp: invalid repeat count: `{1001}`"],
    ["*a", "error parsing regexp: missing argument to repetition operator: `*`"],
    ["a\\", "error parsing regexp: trailing backslash at end of expression: ``"],
    ["(?=a)", "error parsing regexp: invalid or unsupported Perl syntax: `(?=`"],
  ])("refuses %s", (pattern, message) => {
    for (const anchored of [false, true]) {
      expect(() => compileRegex(pattern, { anchored })).toThrow(message);
    }
  });

  it.each([
    ["error", ["error"], false, true],
    ["error|warn", ["error", "warn"], false, true],
    ["(?i)deny", ["deny"], true, true],
    ["(?i)action=Deny", ["action=deny"], true, true],
    ["(?i)task", ["task", "\u017f", "\u212a"], true, false],
    ["(?i)de(?-i)ny", ["deny"], true, false],
    ["^src=.*allow$", ["allow"], false, false],
    ["\\d+ms took (GET|POST)", ["ms took GET", "ms took POST"], false, false],
    ["x{3}y?", ["xxxy", "xxx"], false, true],
    ["a?bc*", ["ab", "b"], false, false],
    ["level=(debug|info) .*took", ["level=debug ", "level=info "], false, false],
  ])("knows what a match of %s must contain", (pattern, values, ignoreCase, complete) => {
    const { needles } = compileRegex(pattern, { anchored: false });
    expect({ ...needles, values: [...(needles?.values ?? [])].sort() }).toEqual({
      values: [...values].sort(),
      ignoreCase,
      complete,
    });
  });

  it.each([[".*"], ["\\d+"], ["a?"], ["(?i)[ks]+"], ["a|b*"], ["\\p{Lu}"]])(
    "knows no text for %s",
    (pattern) => {
      expect(compileRegex(pattern, { anchored: false }).needles).toBeUndefined();
    },
  );

  it("gives the texts of an anchored alternation", () => {
    expect(compileRegex("a|b(c|d)", { anchored: true }).texts).toEqual(["a", "bc", "bd"]);
    expect(compileRegex("a.*", { anchored: true }).texts).toBeUndefined();
  });

  it("finds no place within a character", () => {
    const regex = compileRegex("\\B", { anchored: false });
    expect(regex.test("a😀b")).toBe(false);
    expect(regex.exec("K😎😎S")?.start).toBe(3);
    expect(regex.exec("K😎😎S", 5)).toBeUndefined();
  });

  it("takes groups of one name", () => {
    const regex = compileRegex("(?P<n>a)|[(?P<n>](?<n>b)\\(?P<n>", { anchored: false });
    expect(regex.groupNames).toEqual(["n", "n"]);
    expect(regex.exec("<b(P<n>")?.groups).toEqual([undefined, "b"]);
    expect(compileRegex("(?P<n>a)(?P<n>b)", { anchored: true }).test("ab")).toBe(true);
  });

  it.each([
    ["^(a+)+$", `${"a".repeat(5000)}!`],
    ["(\\w{1,30}\\s?){1,30}$", `${"a".repeat(5000)}!`],
    ["(x+x+)+y", "x".repeat(5000)],
    ["\\d+ms", "1".repeat(20000)],
    ["a.*b.*c", "ab".repeat(10000)],
    ["(.*)=(.*);", "=".repeat(4000)],
  ])("stays linear: %s", (pattern, text) => {
    const regex = compileRegex(pattern, { anchored: false });
    expect(regex.test(text)).toBe(false);
    expect(regex.exec(text)).toBeUndefined();
  });

  it.each([
    ["((?i:(?m)|a)?)", "a", 0, [""]],
    ["(?:|a)?", "a", 0, []],
    ["(?:|a)??(b?)", "ab", 0, [""]],
    ["(?:|a){1,2}", "aa", 0, []],
    ["(|a)?", "a", 0, [""]],
    ["(?:|a){2}", "aa", 0, []],
    ["(?:a?){2}", "aaa", 2, []],
  ])("takes an empty round as RE2 does: %s", (pattern, text, end, groups) => {
    const regex = compileRegex(pattern, { anchored: false });
    expect(regex.exec(text)).toEqual({ start: 0, end, groups });
  });

  it("names groups and gives their texts", () => {
    const regex = compileRegex("user=(?P<user>\\w+) (x)?(?P<op>.)", { anchored: false });
    expect(regex.groupNames).toEqual(["user", "", "op"]);
    expect(regex.exec("-user=bob y")).toEqual({
      start: 1,
      end: 11,
      groups: ["bob", undefined, "y"],
    });
    expect(regex.exec("user=a b user=c d", 1)?.groups[0]).toBe("c");
  });
});
