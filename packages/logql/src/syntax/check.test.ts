import { describe, expect, it } from "@jest/globals";
import { queryErrorOf } from "../testing/query-error.js";
import { parseErrorDetail } from "./errors.js";

const emptyMatcher =
  "parse error : queries require at least one regexp or equality matcher that does not have an empty-compatible " +
  'value. For instance, app=~".*" does not meet this requirement, but app=~".+" will';

const rows: readonly (readonly [query: string, message: string, offset: number])[] = [
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

describe("what makes no sense although it is written well", () => {
  it.each(rows)("%s: %s", (query, message, offset) => {
    const error = queryErrorOf(query);
    expect(error.code).toBe("invalid_argument");
    expect(error.message).toBe(message);
    expect(parseErrorDetail(error)?.position.offset).toBe(offset);
  });
});
