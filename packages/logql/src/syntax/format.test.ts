import { describe, expect, it } from "@jest/globals";
import { parseQuery } from "./parser.js";
import { formatQuery } from "./print.js";

describe("one line", () => {
  it.each([
    ['{foo=   "bar"}', '{foo="bar"}'],
    ['{a="b",c!~"d.*"}', '{a="b", c!~"d.*"}'],
    ['{a="b"}|="x"|json|level="error"', '{a="b"} |= "x" | json | level="error"'],
    ['{a="b"} |= "x" or "y" != "z"', '{a="b"} |= "x" or "y" != "z"'],
    ['{a="b"} != "x" or "y"', '{a="b"} != "x" != "y"'],
    ['{a="b"} |= "tab\\t" |~ `\\d+`', '{a="b"} |= "tab\\t" |~ "\\\\d+"'],
    ['{a="b"} # only\n |= ip("::1")', '{a="b"} |= ip("::1")'],
    ['{a="b"} | logfmt --keep-empty --strict', '{a="b"} | logfmt --strict --keep-empty'],
    ['{a="b"} | json x, y="z[0]"', '{a="b"} | json x="x",y="z[0]"'],
    ['{a="b"} | status >= 500 and status<600', '{a="b"} | ( status>=500 , status<600 )'],
    ['{a="b"} | (a="1" or b="2") and c="3"', '{a="b"} | ( ( a="1" or b="2" ) , c="3" )'],
    ['{a="b"} | dur > 90s or size > 1000B', '{a="b"} | ( dur>1m30s or size>1.0kB )'],
    ['{a="b"} | a = 5 | b != 1e7', '{a="b"} | a==5 | b!=10000000'],
    [
      '{a="b"} | a>5MB | b>20MB | c>1234B | d>1MiB',
      '{a="b"} | a>5.0MB | b>20MB | c>1234B | d>1048576B',
    ],
    [
      '{a="b"} | a=~"b" | c!~"5.." | d=~"x`." | e=~"5.."',
      '{a="b"} | a=~"b" | c!~"5.." | d=~"x`." | e=~`5..`',
    ],
    ['{a="b"} | a = ip("::1")', '{a="b"} | a=ip("::1")'],
    ['{a="b"} | label_format x=y , z="{{.q}}"', '{a="b"} | label_format x=y,z="{{.q}}"'],
    ['{a="b"} | drop a, b="c" | keep d', '{a="b"} | drop a,b="c" | keep d'],
    ['rate( {a="b"} |= "x" [5m] )', 'rate({a="b"} |= "x"[5m])'],
    ['rate({a="b"}[36h])', 'rate({a="b"}[1d12h])'],
    ['sum(rate({a="b"}[60s])) by (x,y)', 'sum by (x,y)(rate({a="b"}[1m]))'],
    ['sum by () (rate({a="b"}[1m]))', 'sum(rate({a="b"}[1m]))'],
    ['sum without() (rate({a="b"}[1m]))', 'sum without ()(rate({a="b"}[1m]))'],
    ['topk(5, rate({a="b"}[1m]))', 'topk(5,rate({a="b"}[1m]))'],
    ['count_over_time({a="b"}[24h] offset 1h)', 'count_over_time({a="b"}[1d] offset 1h0m0s)'],
    ['count_over_time({a="b"}[90s] offset -5m)', 'count_over_time({a="b"}[1m30s] offset -5m0s)'],
    [
      'quantile_over_time(.99, {a="b"} | unwrap v [1m]) by (h)',
      'quantile_over_time(0.99,{a="b"} | unwrap v[1m]) by (h)',
    ],
    ["1+2*3", "7"],
    ["1000000", "1e+06"],
    ["0.00001", "1e-05"],
    ["123456", "123456"],
    ["-1.25", "-1.25"],
    ["vector(3)", "vector(3.000000)"],
    ["vector(1e-9)", "vector(0.000000001)"],
    ["vector(1e21)", "vector(1000000000000000000000.000000)"],
    ['rate({a="b"}[1m]) > bool 1', '(rate({a="b"}[1m]) > bool 1)'],
    [
      'rate({a="b"}[1m]) / on(x) rate({c="d"}[1m])',
      '(rate({a="b"}[1m]) / on (x)  rate({c="d"}[1m]))',
    ],
    [
      'rate({a="b"}[1m]) * on (x) group_right () rate({c="d"}[1m])',
      '(rate({a="b"}[1m]) * on (x) group_right rate({c="d"}[1m]))',
    ],
    [
      "vector(1) * on (x) group_left () (vector(1) / 2)",
      "(vector(1.000000) * on (x) group_left () (vector(1.000000) / 2))",
    ],
    [
      'label_replace(rate({a="b"}[1m]), "d", "$1", "s", "(.*)")',
      'label_replace(rate({a="b"}[1m]),"d","$1","s","(.*)")',
    ],
  ])("%s", (query, want) => {
    expect(formatQuery(parseQuery(query))).toBe(want);
  });
});

const long = 'cluster="prod-eu-west", namespace="checkout-service"';

describe("split", () => {
  it.each([
    [
      '{cluster="prod-eu-west", namespace="checkout", container="payment-gateway"} |= "timeout" != "healthz" | json | line_format "{{.msg}}"',
      `{cluster="prod-eu-west", namespace="checkout", container="payment-gateway"}
  |= "timeout" != "healthz"
  | json
  | line_format "{{.msg}}"`,
    ],
    [
      `sum by (app, env) (rate({${long}} |= "timeout" | json | status >= 500 [5m]))`,
      `sum by (app, env)(
  rate({${long}} |= "timeout" | json | status>=500[5m])
)`,
    ],
    [
      `sum by (app) (rate({${long}} |= "timeout" | json | status >= 500 | level = "error" [5m] offset 1h))`,
      `sum by (app)(
  rate(
    {${long}}
      |= "timeout"
      | json
      | status>=500
      | level="error" [5m] offset 1h
  )
)`,
    ],
    [
      'quantile_over_time(0.99, {container="ingress-nginx", service="hosted-grafana", cluster="eu-west-1"} | json | unwrap latency | __error__="" [1m]) by (host)',
      `quantile_over_time(
  0.99,
  {container="ingress-nginx", service="hosted-grafana", cluster="eu-west-1"} | json
    | unwrap latency
    | __error__="" [1m]
) by (host)`,
    ],
    [
      'sum(rate({app="frontend", cluster="prod-eu-west-1"} |= "error" [5m])) / sum(rate({app="frontend", cluster="prod-eu-west-1"}[5m]))',
      `  sum(rate({app="frontend", cluster="prod-eu-west-1"} |= "error"[5m]))
/
  sum(rate({app="frontend", cluster="prod-eu-west-1"}[5m]))`,
    ],
    [
      `topk(5, sum by (a, b) (count_over_time({${long}} | logfmt | level="error" [5m]))) / on (a, b) group_left (c) vector(1)`,
      `  topk(
    5,
    sum by (a, b)(
      count_over_time({${long}} | logfmt | level="error"[5m])
    )
  )
/ on (a, b) group_left (c)
  vector(1.000000)`,
    ],
    [
      `label_replace(rate({${long}} |= "timeout" | json [5m]), "destination", "$1", "source", "(.*)")`,
      `label_replace(
  rate({${long}} |= "timeout" | json[5m]),
  "destination",
  "$1",
  "source",
  "(.*)"
)`,
    ],
    [
      `{${long}} |= "a rather long text to look for" or "another one" |= "and a third, longer text"`,
      `{${long}}
  |= "a rather long text to look for" or "another one" |= "and a third, longer text"`,
    ],
    [
      `{${long}} |= "a rather long text to look for" or "another one, longer" |= "and a third, very much longer text than that"`,
      `{${long}}
  |= "a rather long text to look for" or "another one, longer"
  |= "and a third, very much longer text than that"`,
    ],
    [
      `(sum(rate({${long}}[5m])) - sum(rate({${long}} |= "x" [5m]))) * (sum(rate({${long}}[5m])) + sum(rate({${long}} |= "y" [5m])) * 2)`,
      `  (
      sum(rate({${long}}[5m]))
    -
      sum(rate({${long}} |= "x"[5m]))
  )
*
  (
      sum(rate({${long}}[5m]))
    +
      (sum(rate({${long}} |= "y"[5m])) * 2)
  )`,
    ],
  ])("%s", (query, want) => {
    expect(formatQuery(parseQuery(query))).toBe(want);
  });

  it("counts bytes, not characters", () => {
    const text = `{a="${"ü".repeat(40)}"} | json | level="error"`;
    expect(formatQuery(parseQuery(text))).toContain("\n");
    expect(formatQuery(parseQuery(text.replaceAll("ü", "u")))).not.toContain("\n");
  });

  it("keeps an offset below a millisecond", () => {
    const text = `rate({${long}} |= "a rather long text" | json [5m] offset 1500us)`;
    expect(formatQuery(parseQuery(text))).toContain("[5m] offset 1.5ms\n");
  });
});
