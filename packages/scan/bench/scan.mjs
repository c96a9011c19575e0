// Scans sealed segments on one thread, without a server, and prints CPU times: the median and the least of many runs.
//
//   node packages/scan/bench/scan.mjs DIR [runs, 15] [query, all]
//
// DIR holds segments (*.parquet) of the tenant `fake`: push what the load generator makes, POST /flush, and take the
// files below ingester/segments/fake.
//
// Last figures (one of 2 shared cores, Node 24.21, 150 MB in 5 segments; in brackets before pages got used memory):
// a needle in logs 109 ms (153), as a count 84 (128), by app 92 (149); a case-insensitive regex 101 (154); json with a
// numeric filter 42 (59); bytes by namespace 84 (143); counts from headers 3 (4); the first 5000 lines of each segment
// 156 (507), the last 1000 of one app 18 (50). Seven tenths of a needle are zstd.
import fs from "node:fs";
import path from "node:path";
import { defaultQueryLimits, parseQuery, planQuery } from "@skald/logql";
import { openSegmentFile } from "@skald/storage";
import { scanLog, scanMetric, segmentSource } from "../dist/index.js";
import { ScanMemory } from "../dist/source/block-reader.js";

const queries = {
  needle: ['{cluster=~".+"} |= "no-such-token-7f3a9"', 100],
  needle_count: ['sum(count_over_time({cluster=~".+"} |= "no-such-token-7f3a9" [1d]))'],
  error_by_app: ['sum by (app) (count_over_time({cluster=~".+"} |= "error" [1d]))'],
  regex_ci: ['sum(count_over_time({cluster=~".+"} |~ `(?i)connection reset by peer` [1d]))'],
  json_numeric: [
    'sum(count_over_time({app="checkout"} | json | status >= 500 | duration_ms > 500 [1d]))',
  ],
  json_by_level: ['sum by (level) (count_over_time({app="checkout"} | json [1d]))'],
  json_narrow: ['sum(count_over_time({app="checkout"} | json s="status" | s >= 500 [1d]))'],
  logfmt_by_status: ['sum by (status) (count_over_time({app="gateway"} | logfmt [1d]))'],
  logfmt_narrow: ['sum(count_over_time({app="gateway"} | logfmt s="status" | s="503" [1d]))'],
  pattern_by_status: [
    'sum by (status) (count_over_time({app="nginx-edge"} | pattern `<ip> - <_> [<_>] "<method> <path> <_>" <status> <_>` [1d]))',
  ],
  unwrap_p99: [
    'quantile_over_time(0.99, {app="checkout"} | json | unwrap duration_ms | __error__="" [5m]) by (app)',
  ],
  trace: ['{app="payments"} | trace_id="0123456789abcdef0123456789abcdef"', 100],
  level: ['{cluster=~".+"} | detected_level="error"', 5000],
  level_count: ['sum(count_over_time({cluster=~".+"} | detected_level="error" [1d]))'],
  by_level: ['sum by (detected_level) (count_over_time({cluster=~".+"}[1d]))'],
  found_by_level: ['sum by (detected_level) (count_over_time({cluster=~".+"} |= "error" [1d]))'],
  user: ['sum(count_over_time({app="payments"} | user="u42" [1d]))'],
  bytes_by_namespace: ['sum by (namespace) (bytes_over_time({cluster=~".+"}[5m]))'],
  count_by_app: ['sum by (app) (count_over_time({cluster=~".+"}[1d]))'],
  first_5000: ['{cluster=~".+"}', 5000, "forward"],
  last_1000: ['{app="checkout"}', 1000, "backward"],
};

const [directory, runs = "15", only] = process.argv.slice(2);
if (directory === undefined) throw new Error("name the directory of segments");
const files = fs.readdirSync(directory).filter((name) => name.endsWith(".parquet"));
const sources = files.map((name) => {
  const location = { kind: "file", path: path.join(directory, name) };
  return segmentSource(openSegmentFile({ id: name, tenant: "fake", location }).segment);
});
const baseNs = sources[0].baseNs;
const context = { check: () => {}, memory: new ScanMemory() };
const table = Object.entries(queries)
  .filter(([name]) => only === undefined || name === only)
  .map(([name, query]) => [name, measure(...query)]);
console.table(Object.fromEntries(table));

function measure(text, limit = 100, direction = "backward") {
  const dayNs = 86_400_000_000_000n;
  const params = { startNs: baseNs, endNs: baseNs + dayNs, limit, direction, intervalNs: 0n };
  const isLog = text.startsWith("{");
  const stepNs = isLog || !text.includes("[5m]") ? 0n : 300_000_000_000n;
  const limits = { ...defaultQueryLimits, maxSeries: 100_000 };
  const plan = planQuery(
    parseQuery(text),
    { ...params, startNs: stepNs === 0n && !isLog ? params.endNs : baseNs, stepNs },
    limits,
  );
  const times = Array.from({ length: Number(runs) }, () => cpuMs(() => run(plan))).sort(
    (a, b) => a - b,
  );
  return { "median ms": round(times[times.length >> 1]), "min ms": round(times[0]) };
}

function run(plan) {
  for (const source of sources) {
    const open = () => source;
    const scanned = [{ ref: source, sequence: 0 }];
    if (plan.kind === "log") scanLog({ plan, sources: scanned }, open, context);
    else
      for (const leaf of plan.leaves) scanMetric({ plan: leaf, sources: scanned }, open, context);
  }
}

function cpuMs(work) {
  const start = process.cpuUsage();
  work();
  const { user, system } = process.cpuUsage(start);
  return (user + system) / 1000;
}

function round(ms) {
  return Math.round(ms * 10) / 10;
}
