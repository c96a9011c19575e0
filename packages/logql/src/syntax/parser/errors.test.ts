import { describe, expect, it } from "@jest/globals";
import { SkaldError } from "@skald/model";
import { parseErrorDetail } from "../errors.js";
import { parseQuery, queryBytesMax } from "./parser.js";

const emptyMatcher =
  "parse error : queries require at least one regexp or equality matcher that does not have an empty-compatible " +
  'value. For instance, app=~".*" does not meet this requirement, but app=~".+" will';

function errorOf(text: string): SkaldError {
  try {
    parseQuery(text);
  } catch (error) {
    if (error instanceof SkaldError) return error;
    throw error;
  }
  throw new Error(`parsed: ${text}`);
}

const rows: readonly (readonly [query: string, message: string, offset: number])[] = [
  ["", "parse error : syntax error: unexpected $end", 0],
  ["  ", "parse error at line 1, col 3: syntax error: unexpected $end", 2],
  [
    "{",
    "parse error at line 1, col 2: syntax error: unexpected $end, expecting IDENTIFIER or }",
    1,
  ],
  ['{app="a"', "parse error at line 1, col 9: syntax error: unexpected $end, expecting } or ,", 8],
  ['{app="a"} |', "parse error at line 1, col 12: syntax error: unexpected $end", 11],
  [
    '{app="a"} |=',
    "parse error at line 1, col 13: syntax error: unexpected $end, expecting STRING or ip",
    12,
  ],
  ['{a="b",}', "parse error at line 1, col 8: syntax error: unexpected }, expecting IDENTIFIER", 7],
  [
    '{a="b",,c="d"}',
    "parse error at line 1, col 8: syntax error: unexpected ,, expecting IDENTIFIER",
    7,
  ],
  [
    "{a=b}",
    "parse error at line 1, col 4: syntax error: unexpected IDENTIFIER, expecting STRING",
    3,
  ],
  [
    "{a='b'}",
    "parse error at line 1, col 4: syntax error: unexpected IDENTIFIER, expecting STRING",
    3,
  ],
  ["{a='bc'}", "parse error at line 1, col 4: invalid char literal", 3],
  ['{a="b"} /* c', "parse error at line 1, col 9: comment not terminated", 8],
  [
    '{by="x"}',
    "parse error at line 1, col 2: syntax error: unexpected by, expecting IDENTIFIER or }",
    1,
  ],
  [
    '{"a"="x"}',
    "parse error at line 1, col 2: syntax error: unexpected STRING, expecting IDENTIFIER or }",
    1,
  ],
  [
    '{a.b="x"}',
    "parse error at line 1, col 3: syntax error: unexpected ., expecting = or =~ or !~ or !=",
    2,
  ],
  [
    '{a=="x"}',
    "parse error at line 0, col 3: syntax error: unexpected ==, expecting = or =~ or !~ or !=",
    2,
  ],
  ['{a="b"}}', "parse error at line 1, col 8: syntax error: unexpected }", 7],
  [
    '{a="b"} |= x',
    "parse error at line 1, col 12: syntax error: unexpected IDENTIFIER, expecting STRING or ip",
    11,
  ],
  ['{a="b"} |= "x', "parse error at line 1, col 12: literal not terminated", 11],
  ['{a="b"}\n  |= "x', "parse error at line 2, col 6: literal not terminated", 13],
  ["foo", "parse error at line 1, col 1: syntax error: unexpected IDENTIFIER", 0],
  ["💥", "parse error at line 1, col 1: syntax error: unexpected IDENTIFIER", 0],
  [
    'rate({a="b"}[5minutes])',
    'parse error at line 0, col 13: unknown unit "minutes" in duration "5minutes"',
    12,
  ],
  ['rate({a="b"}[])', "parse error at line 0, col 13: empty duration string", 12],
  ['rate({a="b"}[5m', "parse error at line 0, col 13: missing closing ']' in duration", 12],
  ['{a="b"}[5m]', "parse error at line 0, col 8: syntax error: unexpected RANGE", 7],
  ['sum({a="b"})', "parse error at line 1, col 12: syntax error: unexpected )", 11],
  ['sum(rate({a="b"}[5m])', "parse error at line 1, col 22: syntax error: unexpected $end", 21],
  [
    'rate({a="b"}[5m]',
    "parse error at line 1, col 17: syntax error: unexpected $end, expecting )",
    16,
  ],
  [
    'rate({a="b"}[5m] offset 1m | json x y)',
    "parse error at line 1, col 37: syntax error: unexpected IDENTIFIER, expecting )",
    36,
  ],
  [
    'quantile_over_time(0.9, {a="b"} | unwrap x [5m] by (y)',
    "parse error at line 1, col 49: syntax error: unexpected by, expecting )",
    48,
  ],
  [
    'rate(({a="b"}[5m] + 1',
    "parse error at line 1, col 19: syntax error: unexpected +, expecting )",
    18,
  ],
  ['rate(({a="b"} + 1', "parse error at line 1, col 15: syntax error: unexpected +", 14],
  [
    'rate(({a="b"} | unwrap x + 1',
    "parse error at line 1, col 26: syntax error: unexpected +, expecting RANGE or ) or |",
    25,
  ],
  [
    'rate({a="b"} | unwrap rate(x) [5m])',
    "parse error at line 1, col 23: syntax error: unexpected RATE, expecting IDENTIFIER or BYTES_CONV or DURATION_CONV or DURATION_SECONDS_CONV",
    22,
  ],
  [
    'sum(bytes(rate({a="b"}[1m])))',
    "parse error at line 1, col 5: syntax error: unexpected BYTES_CONV",
    4,
  ],
  [
    '{a="b"} | json --strict',
    "parse error at line 0, col 16: syntax error: unexpected FUNCTION_FLAG",
    15,
  ],
  [
    "- vector(1)",
    "parse error at line 1, col 3: syntax error: unexpected VECTOR, expecting NUMBER",
    2,
  ],
  [
    '- label_replace(vector(1), "a", "", "b", "")',
    "parse error at line 1, col 3: syntax error: unexpected LABEL_REPLACE, expecting NUMBER",
    2,
  ],
  [
    'rate({a="b"}[1m]) offset 5m',
    "parse error at line 1, col 19: syntax error: unexpected offset",
    18,
  ],
  [
    'rate({a="b"}[1m] offset)',
    "parse error at line 1, col 24: syntax error: unexpected ), expecting DURATION",
    23,
  ],
  [
    '- rate({a="b"}[1m])',
    "parse error at line 1, col 3: syntax error: unexpected RATE, expecting NUMBER",
    2,
  ],
  [
    'quantile_over_time(-1, {a="b"}[1m])',
    "parse error at line 1, col 20: syntax error: unexpected -, expecting NUMBER or { or (",
    19,
  ],
  ['topk(-1, rate({a="b"}[1m]))', "parse error at line 1, col 8: syntax error: unexpected ,", 7],
  [
    'sum by rate({a="b"}[5m])',
    "parse error at line 1, col 1: syntax error: unexpected IDENTIFIER",
    0,
  ],
  [
    "sum(vector(1)) by",
    "parse error at line 1, col 18: syntax error: unexpected $end, expecting (",
    17,
  ],
  [
    "sum(vector(1)) by env",
    "parse error at line 1, col 19: syntax error: unexpected IDENTIFIER, expecting (",
    18,
  ],
  ["vector()", "parse error at line 1, col 8: syntax error: unexpected ), expecting NUMBER", 7],
  ["vector(-1)", "parse error at line 1, col 8: syntax error: unexpected -, expecting NUMBER", 7],
  ['{a="b"} | unwrap y', "parse error at line 1, col 11: syntax error: unexpected unwrap", 10],
  [
    '{a="b"} | decolorize x',
    "parse error at line 1, col 22: syntax error: unexpected IDENTIFIER",
    21,
  ],
  [
    '{a="b"} | keep',
    "parse error at line 1, col 15: syntax error: unexpected $end, expecting IDENTIFIER",
    14,
  ],
  [
    '{a="b"} | label_format a',
    "parse error at line 1, col 25: syntax error: unexpected $end, expecting =",
    24,
  ],
  [
    '{a="b"} | json a=b',
    "parse error at line 1, col 18: syntax error: unexpected IDENTIFIER, expecting STRING",
    17,
  ],
  [
    '{a="b"} | logfmt --nope',
    "parse error at line 1, col 20: syntax error: unexpected IDENTIFIER, expecting NUMBER",
    19,
  ],
  ['{a="b"} | a > "b"', "parse error at line 1, col 15: syntax error: unexpected STRING", 14],
  ['{a="b"} | a > 5xyz', "parse error at line 1, col 19: syntax error: unexpected $end", 18],
  [
    'sum_over_time({a="b"} | unwrap y(z) [5m])',
    "parse error at line 1, col 33: syntax error: unexpected (, expecting RANGE or |",
    32,
  ],
  [
    'rate({a="b"}[1m]) + on (a) group_left',
    "parse error at line 1, col 38: syntax error: unexpected $end",
    37,
  ],
  ["{}", emptyMatcher, 0],
  ['{a!="x"}', emptyMatcher, 0],
  ['{a=~".*"}', emptyMatcher, 0],
  ['{a=~"b|", c!~"d"}', emptyMatcher, 0],
  ['sum(rate({a=""}[1m]))', emptyMatcher, 9],
  [
    '{a="b"} + {c="d"}',
    "parse error : unexpected type for left leg of binary operation (+): *syntax.MatchersExpr",
    8,
  ],
  [
    '1 + ({a="b"} | json)',
    "parse error : unexpected type for right leg of binary operation (+): *syntax.PipelineExpr",
    2,
  ],
  [
    "vector(1) or 1",
    "parse error : unexpected literal for right leg of logical/set binary operation (or): 1.000000",
    10,
  ],
  [
    "1 unless vector(1)",
    "parse error : unexpected literal for left leg of logical/set binary operation (unless): 1.000000",
    2,
  ],
  [
    'sum_over_time({a="b"}[1m])',
    "parse error : invalid aggregation sum_over_time without unwrap",
    0,
  ],
  [
    'bytes_rate({a="b"} | unwrap x [1m])',
    "parse error : invalid aggregation bytes_rate with unwrap",
    0,
  ],
  [
    'count_over_time({a="b"}[1m]) by (x)',
    "parse error : grouping not allowed for count_over_time aggregation",
    0,
  ],
  [
    'quantile_over_time({a="b"} | unwrap x [1m])',
    "parse error : parameter required for operation quantile_over_time",
    0,
  ],
  ['rate(5, {a="b"}[1m])', "parse error : parameter 5 not supported for operation rate", 0],
  ['topk(rate({a="b"}[1m]))', "parse error : parameter required for operation topk", 0],
  ['sum(3, rate({a="b"}[1m]))', "parse error : unsupported parameter for operation sum(3,", 0],
  ["topk(1.5, vector(1))", "parse error : invalid parameter topk(1.5,", 0],
  ["topk(0, vector(1))", "parse error : invalid parameter (must be greater than 0) topk(0", 0],
  ["sort(vector(1)) by (a)", "parse error : sort and sort_desc doesn't allow grouping by", 0],
  [
    "approx_topk(2, vector(1)) by (a)",
    "parse error : grouping not allowed for approx_topk aggregation",
    0,
  ],
  [
    '{a="b"} | regexp "x"',
    "parse error : invalid regexp parser: at least one named capture must be supplied",
    17,
  ],
  [
    '{a="b"} | regexp "(?P<x>"',
    "parse error : invalid regexp parser: error parsing regexp: missing closing ): `(?P<x>`",
    17,
  ],
  [
    '{a="b"} | regexp "(?P<x>.)(?P<x>.)"',
    "parse error : invalid regexp parser: duplicate extracted label name 'x'",
    17,
  ],
  [
    '{a="b"} | pattern "<a><b>"',
    "parse error : invalid pattern parser: found consecutive capture '<a><b>': invalid expression",
    18,
  ],
  [
    '{a="b"} | pattern "<_> x"',
    "parse error : invalid pattern parser: at least one capture is required",
    18,
  ],
  [
    '{a="b"} | pattern "<a> <a>"',
    "parse error : invalid pattern parser: duplicate capture name (a): invalid expression",
    18,
  ],
  ['{a=~"("}', "parse error : error parsing regexp: missing closing ): `(`", 4],
  ['{a=~"b)(c"}', "parse error : error parsing regexp: unexpected ): `b)(c`", 4],
  ['{a="b"} | c=~"["', "parse error : error parsing regexp: missing closing ]: `[`", 13],
  [
    'label_replace(vector(1),"a","b","c","(")',
    "parse error : invalid regex in label_replace: error parsing regexp: missing closing ): `(`",
    0,
  ],
  [
    '{a="b"} | v > 0x1',
    'parse error : unable to parse literal as a float: strconv.ParseFloat: parsing "0x1": invalid syntax',
    14,
  ],
  [
    "1e999",
    'parse error : unable to parse literal as a float: strconv.ParseFloat: parsing "1e999": value out of range',
    0,
  ],
];

describe("parse errors", () => {
  it.each(rows)("%s: %s", (query, message, offset) => {
    const error = errorOf(query);
    expect(error.code).toBe("invalid_argument");
    expect(error.message).toBe(message);
    expect(parseErrorDetail(error)?.position.offset).toBe(offset);
  });

  it("carry the true line of a token whose message says line 0", () => {
    const detail = parseErrorDetail(errorOf('rate(\n {a="b"}[5])'));
    expect(detail?.position).toEqual({ offset: 14, line: 2, column: 9 });
    expect(detail?.reason).toBe('not a valid duration string: "5"');
  });

  it.each([
    ["cout_over_time({})", "cout_over_time({})\n^\ndid you mean count_over_time?"],
    ['{a="b"}\n| jsn', "| jsn\n     ^\ndid you mean json?"],
    ["{a='b'}", "{a='b'}\n   ^\nstrings are written in double quotes or back quotes"],
    ["{a='bc'}", "{a='bc'}\n   ^\nstrings are written in double quotes or back quotes"],
    ["\t{😀}", " {😀}\n  ^"],
    [`{a="${"b".repeat(200)}"} |= x`, `${"b".repeat(93)}"} |= x\n${" ".repeat(99)}^`],
  ])("point at the place in %s", (query, hint) => {
    expect(parseErrorDetail(errorOf(query))?.hint).toBe(hint);
  });
});

describe("limits", () => {
  it("refuses long queries by their bytes", () => {
    const fits = `{a="${"x".repeat(queryBytesMax - 6)}"}`;
    expect(() => parseQuery(fits)).not.toThrow();
    expect(errorOf(`${fits} `).message).toBe("parse error : input size too long (131073 > 131072)");
    const wide = `{a="${"ü".repeat(70_000)}"}`;
    expect(errorOf(wide).message).toBe("parse error : input size too long (140006 > 131072)");
    const emoji = `{a="${"😀".repeat(32_766)}"}`;
    expect(() => parseQuery(emoji)).not.toThrow();
  });

  it("refuses half a surrogate pair", () => {
    expect(errorOf('{a="\ud800"}').message).toBe("parse error : invalid UTF-8 encoding");
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
    expect(errorOf(make(9_000)).message).toContain("query nested too deeply");
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
    const reason = parseErrorDetail(errorOf(`{a=~"${"(a|".repeat(900)}"}`))?.reason;
    expect(reason?.startsWith("error parsing regexp: missing closing ): `(a|(a|")).toBe(true);
    expect(reason?.length).toBeLessThan(320);
  });

  it("counts the expressions of line filters, which others compile", () => {
    const regex = "(?:x{1000}y{1000})".repeat(200);
    expect(errorOf(`{a="b"} |~ "${regex}"`).message).toContain("expression too large");
  });
});
