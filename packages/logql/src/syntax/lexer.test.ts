import { describe, expect, it } from "@jest/globals";
import { tokenize } from "./lexer.js";
import { classOf } from "./token.js";

describe("tokenize", () => {
  it.each<[string, readonly (string | readonly [string, unknown])[]]>([
    ["", []],
    ['{a="b"}', ["{", ["IDENTIFIER", "a"], "=", ["STRING", "b"], "}"]],
    [
      "|= != |~ !~ |> !> | ! ~",
      ["|=", "!=", "|~", "!~", "|>", "!>", "|", ["unknown", "!"], ["unknown", "~"]],
    ],
    ["= == =~ > >= < <=", ["=", "==", "=~", ">", ">=", "<", "<="]],
    ["BY By bys _by", ["by", "by", ["IDENTIFIER", "bys"], ["IDENTIFIER", "_by"]]],
    [
      "größe ß1 日本",
      [
        ["IDENTIFIER", "größe"],
        ["IDENTIFIER", "ß1"],
        ["IDENTIFIER", "日本"],
      ],
    ],
    [
      "a💥b",
      [
        ["IDENTIFIER", "a"],
        ["unknown", "💥"],
        ["IDENTIFIER", "b"],
      ],
    ],
    [
      "a # b\nc",
      [
        ["IDENTIFIER", "a"],
        ["IDENTIFIER", "c"],
      ],
    ],
    ['"# no comment"', [["STRING", "# no comment"]]],
    ['\ufeff"a byte order mark before it"', [["STRING", "a byte order mark before it"]]],
    [
      "a // b # /*\nc",
      [
        ["IDENTIFIER", "a"],
        ["IDENTIFIER", "c"],
      ],
    ],
    [
      'a /* b // \n"*/c',
      [
        ["IDENTIFIER", "a"],
        ["IDENTIFIER", "c"],
      ],
    ],
    ["/**/ 1 /***/ / /*/*/ 2", ["NUMBER", "/", "NUMBER"]],
    [
      '"// no comment" `/* nor this */`',
      [
        ["STRING", "// no comment"],
        ["STRING", "/* nor this */"],
      ],
    ],
    [
      "'b' '\\n' 'ü'",
      [
        ["unknown", "'b'"],
        ["unknown", "'\\n'"],
        ["unknown", "'ü'"],
      ],
    ],
    [
      "--strict --keep-empty --stricter",
      [["FLAG", "--strict"], ["FLAG", "--keep-empty"], "-", "-", ["IDENTIFIER", "stricter"]],
    ],
  ])("%s", (text, want) => {
    const got = tokenize(text).slice(0, -1);
    expect(got.map(({ type }) => type)).toEqual(
      want.map((w) => (typeof w === "string" ? w : w[0])),
    );
    for (const [i, w] of want.entries())
      if (typeof w !== "string") expect(got[i]?.value).toBe(w[1]);
  });

  it.each<[string, string, string | number | bigint]>([
    ["1", "NUMBER", 1],
    [".5", "NUMBER", 0.5],
    ["5.", "NUMBER", 5],
    ["1e3", "NUMBER", 1000],
    ["1_000", "NUMBER", 1000],
    ["0x10", "NUMBER", Number.NaN],
    ["0x1.8p4", "NUMBER", 24],
    ["0x.p1", "NUMBER", Number.NaN],
    ["1e1_0", "NUMBER", 1e10],
    ["017", "NUMBER", 17],
    ["09.5", "NUMBER", 9.5],
    ["1e400", "NUMBER", Number.POSITIVE_INFINITY],
    ["5m", "DURATION", 300_000_000_000n],
    ["1d", "DURATION", 86_400_000_000_000n],
    ["1h30m", "DURATION", 5_400_000_000_000n],
    ["1.5s", "DURATION", 1_500_000_000n],
    ["20us", "DURATION", 20_000n],
    ["2.5µs", "DURATION", 2_500n],
    ["2h45m30.5s", "DURATION", 9_930_500_000_000n],
    ["-5m", "DURATION", -300_000_000_000n],
    ["5B", "BYTES", 5],
    ["5M", "BYTES", 5_000_000],
    ["5MB", "BYTES", 5_000_000],
    ["1.5KiB", "BYTES", 1536],
    ["2kiB", "BYTES", 2048],
    ["1PB", "BYTES", 1e15],
    ["[5m]", "RANGE", 300_000_000_000n],
    ["[1h30m]", "RANGE", 5_400_000_000_000n],
    ["[0]", "RANGE", 0n],
    ["[1w]", "RANGE", 604_800_000_000_000n],
  ])("reads %s as one %s", (text, type, value) => {
    expect(tokenize(text).map((token) => [token.type, token.value])).toEqual([
      [type, value],
      ["$end", "$end"],
    ]);
  });

  it.each<[string, readonly string[]]>([
    ["5xyz", ["NUMBER", "IDENTIFIER"]],
    ["5EB", ["NUMBER", "IDENTIFIER"]],
    ["5 m", ["NUMBER", "IDENTIFIER"]],
    ["1.5d", ["NUMBER", "IDENTIFIER"]],
    ["1m1h", ["DURATION"]],
    ["1.5.5", ["NUMBER", "NUMBER"]],
    ["- 5m", ["-", "DURATION"]],
    ["-5", ["-", "NUMBER"]],
  ])("splits %s", (text, want) => {
    expect(
      tokenize(text)
        .slice(0, -1)
        .map(({ type }) => type),
    ).toEqual(want);
  });

  it.each<[string, string]>([
    ['"a\\n\\t\\"\\\\"', 'a\n\t"\\'],
    ['"\\u00fc\\U0001F600"', "ü😀"],
    ['"\\x41\\101"', "AA"],
    ['"\\xc3\\xbc"', "ü"],
    ['`a\\n\n"b"`', 'a\\n\n"b"'],
    ["``", ""],
  ])("decodes %s", (text, want) => {
    expect(tokenize(text)[0]).toMatchObject({ type: "STRING", value: want, end: text.length });
  });

  it.each<[string, string]>([
    ['"abc', "literal not terminated"],
    ['"a\nb"', "literal not terminated"],
    ["`abc", "literal not terminated"],
    ['"\\q"', "invalid char escape"],
    ['"\\x4"', "invalid char escape"],
    ['"\\ud800"', "invalid char escape"],
    ['"\\\'"', "invalid char escape"],
    ['"\\400"', "invalid char escape"],
    ['"\\xff"', "invalid UTF-8 encoding"],
    ["/* a", "comment not terminated"],
    ["/*/", "comment not terminated"],
    ["08", "invalid digit '8' in octal literal"],
    ["019s", "invalid digit '9' in octal literal"],
    ["'ab'", "invalid char literal"],
    ["''", "invalid char literal"],
    ["'a", "literal not terminated"],
    ["'a\nb'", "literal not terminated"],
    ["[5m", "missing closing ']' in duration"],
    ["[]", "empty duration string"],
    ["[5]", 'not a valid duration string: "5"'],
    ["[ 5m ]", 'not a valid duration string: " 5m "'],
    ["[abc]", 'not a valid duration string: "abc"'],
    ["[1m1h]", 'not a valid duration string: "1m1h"'],
    ["[5minutes]", 'unknown unit "minutes" in duration "5minutes"'],
    ["[1.5h]", 'unknown unit "." in duration "1.5h"'],
    ["[10M]", 'unknown unit "M" in duration "10M"'],
  ])("cannot read %s", (text, reason) => {
    expect(tokenize(text).map(({ type, value }) => [type, value])).toEqual([
      ["error", reason],
      ["$end", "$end"],
    ]);
  });

  it.each<[string, string]>([
    ["rate(", "rate"],
    ["rate (", "rate"],
    ["RATE # x\n(", "rate"],
    ["rate /* x */ (", "rate"],
    ["sum by (", "sum"],
    ["sum by", "IDENTIFIER"],
    ["sum by x", "IDENTIFIER"],
    ["rate)", "IDENTIFIER"],
    ["ip(", "ip"],
    ["ip=", "IDENTIFIER"],
    ["ratex(", "IDENTIFIER"],
  ])("takes the first word of %j for %s", (text, want) => {
    expect(tokenize(text)[0]?.type).toBe(want);
  });

  it("counts lines and code points", () => {
    const tokens = tokenize('{a="😀"} # ü😀\n |= `x\n😀` /*😀\n😀*/ 5m');
    expect(tokens.map(({ type, start, line, column }) => [type, start, line, column])).toEqual([
      ["{", 0, 1, 1],
      ["IDENTIFIER", 1, 1, 2],
      ["=", 2, 1, 3],
      ["STRING", 3, 1, 4],
      ["}", 7, 1, 7],
      ["|=", 16, 2, 2],
      ["STRING", 19, 2, 5],
      ["DURATION", 36, 4, 5],
      ["$end", 38, 4, 7],
    ]);
  });

  it("yields comments when asked, for colouring", () => {
    const tokens = tokenize("sum # all\n(vector(1)) // end", { comments: true });
    expect(tokens.slice(0, 3).map(({ type, value }) => [type, value])).toEqual([
      ["sum", "sum"],
      ["comment", "# all"],
      ["(", "("],
    ]);
    expect(tokens.map(({ type }) => classOf(type))).toEqual([
      "function",
      "comment",
      "operator",
      "function",
      "operator",
      "number",
      "operator",
      "operator",
      "comment",
      "end",
    ]);
  });
});
