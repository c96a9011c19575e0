// What compare.mjs asks, and what it must be told: `check` gets an answer's result and what was counted while the logs were made.
import { needles } from "./logs.mjs";

const all = '{app=~".+"}';

/** Log queries have a limit of 1000, range queries 60 steps, instant queries look back over the whole hour. */
export const queries = [
  {
    name: "needle, one line",
    kind: "log",
    query: `${all} |= "${needles.one}"`,
    check: rows("needleOne"),
  },
  {
    name: "needle, a few lines",
    kind: "log",
    query: `${all} |= "${needles.few}"`,
    check: rows("needleFew"),
  },
  {
    name: "needle that no line has",
    kind: "log",
    query: `${all} |= "c0ffee-nowhere"`,
    check: (result) => result.length === 0,
  },
  {
    name: "lines of a trace, by metadata",
    kind: "log",
    query: `{app="checkout"} | trace_id="${needles.trace}"`,
    check: rows("traced"),
  },
  {
    name: "newest 1000 lines",
    kind: "log",
    query: '{namespace="shop"}',
    check: (result) => rowsOf(result) === 1000,
  },
  {
    name: "newest 1000 errors, json",
    kind: "log",
    query: '{app="checkout"} | json | status >= 500',
    check: (result) => rowsOf(result) === 1000,
  },
  {
    name: "count of all lines",
    kind: "instant",
    query: `sum(count_over_time(${all}[1h]))`,
    check: (result, { lines }) => numberOf(result) === lines,
  },
  {
    name: "rate by app, 60 steps",
    kind: "range",
    query: `sum by (app) (rate(${all}[1m]))`,
    check: (result) => result.length === 6,
  },
  {
    name: "bytes by namespace, 60 steps",
    kind: "range",
    query: `sum by (namespace) (bytes_over_time(${all}[1m]))`,
    check: (result) => result.length === 3,
  },
  { name: "rate of a word", kind: "range", query: `sum by (app) (rate(${all} |= "error" [1m]))` },
  {
    name: "regex, any case",
    kind: "instant",
    query: 'sum(count_over_time({app="auth"} |~ "(?i)TIMEOUT" [1h]))',
    check: (result, { timeouts }) => numberOf(result) === timeouts,
  },
  {
    name: "json, numeric filter",
    kind: "instant",
    query: 'sum(count_over_time({app="checkout"} | json | status >= 500 [1h]))',
    check: (result, { failed }) => numberOf(result) === failed,
  },
  {
    name: "logfmt, duration filter",
    kind: "instant",
    query: 'sum(count_over_time({app="gateway"} | logfmt | took > 2500ms [1h]))',
    check: (result, { slow }) => numberOf(result) === slow,
  },
  {
    name: "pattern, count by status",
    kind: "instant",
    query:
      'sum by (status) (count_over_time({app="edge"} | pattern `<_> "<_>" <status> <_>` [1h]))',
    check: sameAs("edge", "status"),
  },
  {
    name: "quantile of a json field",
    kind: "range",
    query:
      'quantile_over_time(0.99, {app="checkout"} | json duration_ms="duration_ms" | unwrap duration_ms [5m]) by (cluster)',
  },
  {
    name: "ten busiest pods",
    kind: "instant",
    query: `topk(10, sum by (pod) (count_over_time(${all}[1h])))`,
    check: (result) => result.length === 10,
  },
  {
    name: "count by app",
    kind: "instant",
    query: `sum by (app) (count_over_time(${all}[1h]))`,
    check: sameAs("byApp", "app"),
  },
  {
    name: "ten lines of a pod",
    kind: "log",
    limit: 10,
    query: '{pod="auth-7"}',
    check: (result) => rowsOf(result) === 10,
  },
  {
    name: "values of a label",
    kind: "values",
    query: "pod",
    check: (result, { streams }) => result.length === streams,
  },
];

function rows(count) {
  return (result, counts) => rowsOf(result) === counts[count];
}

function sameAs(count, label) {
  return (result, counts) =>
    result.length === Object.keys(counts[count]).length &&
    result.every(({ metric, value }) => Number(value[1]) === counts[count][metric[label]]);
}

function rowsOf(result) {
  return result.reduce((sum, { values }) => sum + values.length, 0);
}

function numberOf(result) {
  return Number(result[0]?.value[1] ?? 0);
}
