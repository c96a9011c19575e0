import { describe, expect, it } from "@jest/globals";
import { queryErrorOf } from "../testing/query-error.js";
import { parseErrorDetail } from "./errors.js";

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
];

describe("parse errors", () => {
  it.each(rows)("%s: %s", (query, message, offset) => {
    const error = queryErrorOf(query);
    expect(error.code).toBe("invalid_argument");
    expect(error.message).toBe(message);
    expect(parseErrorDetail(error)?.position.offset).toBe(offset);
  });

  it("carry the true line of a token whose message says line 0", () => {
    const detail = parseErrorDetail(queryErrorOf('rate(\n {a="b"}[5])'));
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
    expect(parseErrorDetail(queryErrorOf(query))?.hint).toBe(hint);
  });
});
