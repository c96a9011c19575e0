import { describe, expect, it } from "@jest/globals";
import { queryErrorOf } from "../testing/query-error.js";
import { parseErrorDetail } from "./errors.js";
import "./regex.js";
import { parseQuery, queryBytesMax } from "./parser.js";

describe("limits", () => {
  it("refuses long queries by their bytes", () => {
    const fits = `{a="${"x".repeat(queryBytesMax - 6)}"}`;
    expect(() => parseQuery(fits)).not.toThrow();
    expect(queryErrorOf(`${fits} `).message).toBe(
      "parse error : input size too long (131073 > 131072)",
    );
    const wide = `{a="${"ü".repeat(70_000)}"}`;
    expect(queryErrorOf(wide).message).toBe("parse error : input size too long (140006 > 131072)");
    const emoji = `{a="${"😀".repeat(32_766)}"}`;
    expect(() => parseQuery(emoji)).not.toThrow();
  });

  it("refuses half a surrogate pair", () => {
    expect(queryErrorOf('{a="\ud800"}').message).toBe("parse error : invalid UTF-8 encoding");
  });

  it.each<[string, (levels: number) => string]>([
    ["parentheses", (n) => `${"(".repeat(n)}vector(1)${")".repeat(n)}`],
    ["calls", (n) => `${"sum(".repeat(n)}vector(1)${")".repeat(n)}`],
    ["label_replace", (n) => "label_replace(".repeat(n)],
    ["operators", (n) => `vector(1)${" + vector(1)".repeat(n)}`],
    ["powers", (n) => `vector(1)${" ^ vector(1)".repeat(n)}`],
    ["ranges", (n) => `rate(${"(".repeat(n)}{a="b"}[5m]${")".repeat(n)})`],
    ["filters in parentheses", (n) => `{a="b"} | ${"(".repeat(n)}a="b"${")".repeat(n)}`],
    ["filters in a row", (n) => `{a="b"} | a=1${" or a=1".repeat(n)}`],
    ["filters side by side", (n) => `{a="b"} | a=1${" a=1".repeat(n)}`],
  ])("refuses too many levels of %s", (_, make) => {
    expect(queryErrorOf(make(9_000)).message).toContain("query nested too deeply");
  });

  it.each<[string, (stages: number) => string]>([
    ["line filters", (n) => `{a="b"}${' |= "x"'.repeat(n)}`],
    ["negative alternatives", (n) => `{a="b"} != "x"${' or "x"'.repeat(n - 1)}`],
    ["parsers", (n) => `{a="b"}${" | json".repeat(n)}`],
    [
      "stages of two legs",
      (n) =>
        ['{a="b"} |= "x"', `{a="b"}${" | json".repeat(n - 1)}`]
          .map((log) => `rate(${log}[1m])`)
          .join(" + "),
    ],
  ])("refuses too many %s", (_, make) => {
    expect(() => parseQuery(make(1500))).not.toThrow();
    expect(queryErrorOf(make(1501)).message).toContain("more than 1500 filters and stages");
  });

  it("lets long chains of label filters pass", () => {
    const ids = Array.from({ length: 1400 }, (_, i) => `id="${i}"`).join(" or ");
    expect(parseQuery(`{a="b"} | ${ids}`).kind).toBe("log");
  });

  it.each([
    ["(?:x{1000}y{1000})".repeat(200)],
    [".*".repeat(30_000)],
    ["(".repeat(25_000) + ")".repeat(25_000)],
    ["((a{30}){30}){30}x{100}".repeat(20)],
  ])("refuses a hostile regular expression or parses it: %.30s", (regex) => {
    try {
      parseQuery(`{a="b"} | c=~"${regex}" |~ "${regex}"`);
    } catch (error) {
      expect(parseErrorDetail(error)?.reason).toContain("error parsing regexp: expression");
    }
  });

  it("clips the expression in the message", () => {
    const reason = parseErrorDetail(queryErrorOf(`{a=~"${"(a|".repeat(900)}"}`))?.reason;
    expect(reason?.startsWith("error parsing regexp: missing closing ): `(a|(a|")).toBe(true);
    expect(reason?.length).toBeLessThan(320);
  });

  it.each(["\\\\pL", "[^\\\\p{Lu}]", "[B-\u{1e942}]", "[B-\\\\x{1e942}]"])(
    "counts what the class %s takes to be read",
    (part) => {
      const queryOf = (count: number) => `{a="b"} |~ "(?i)${part.repeat(count)}"`;
      expect(() => parseQuery(queryOf(50))).not.toThrow();
      expect(queryErrorOf(queryOf(2000)).message).toContain("expression too large");
    },
  );

  it("counts the expressions of line filters, which others compile", () => {
    const regex = "(?:x{1000}y{1000})".repeat(200);
    expect(queryErrorOf(`{a="b"} |~ "${regex}"`).message).toContain("expression too large");
  });
});
