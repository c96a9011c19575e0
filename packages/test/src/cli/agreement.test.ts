import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "@jest/globals";
import {
  binSkald,
  filesBelow,
  makeFolder,
  removeFolders,
  runProgram,
  startServer,
  type TestServer,
  waitFor,
} from "../testing/server.js";
import { count, endMs, grouped, needle, quantiles, rows, startMs, sum } from "../testing/shop.js";

let server: TestServer;
let folder: string;
beforeAll(async () => {
  folder = makeFolder();
  server = await startServer(folder, [
    "-validation.reject-old-samples=false",
    "-validation.discover-service-name=",
  ]);
  const byFile = grouped(rows, ({ labels }) => labels.filename);
  for (const [name, found] of byFile)
    writeFileSync(join(folder, name), found.map(({ line }) => `${line}\n`).join(""));
  const streams = [...byFile.values()].map((found) => ({
    stream: found[0]!.labels,
    values: found.map(({ ms, line, metadata }) => [`${ms}000000`, line, metadata]),
  }));
  const pushed = await fetch(`${server.url}/loki/api/v1/push`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ streams }),
  });
  expect(pushed.status).toBe(204);
  await fetch(`${server.url}/flush`, { method: "POST" });
  await waitFor(() => filesBelow(join(folder, "chunks"), ".parquet").length > 0);
});
afterAll(async () => {
  await server.kill("SIGTERM");
  await removeFolders();
});

const from = new Date(startMs).toISOString();
const to = new Date(endMs).toISOString();
const lines = ["-o", "raw", "--limit"];
const values = ["-o", "csv"];
const at = ["--at", to, ...values];
const every = (step: string) => ["--step", step, ...values];

const all = '{filename=~".+"}';
const prod = ["checkout", "payments", "gateway", "nginx-edge"];
const everywhere = [...prod, "kafka"];

/** Words of the command, the number that the answer has to have, and the apps whose files are asked. */
type Case = readonly [argv: readonly string[], wanted: number, apps: readonly string[]];

/**
 * The queries of the benchmark kit by their names there. Where the kit groups by app or pod, these group by the file: the label
 * that a plain file has. A case without apps needs what plain files do not have: structured metadata, or other labels.
 */
const cases: Readonly<Record<string, Case>> = {
  needle: [
    ["query", `${all} |= "${needle}"`, ...lines, "100"],
    count((row) => row.line.includes(needle)),
    everywhere,
  ],
  needle_miss: [["query", `${all} |= "no-such-token-7f3a9"`, ...lines, "100"], 0, everywhere],
  needle_app: [
    ["query", `{app="checkout"} |= "${needle}"`, ...lines, "100"],
    count((row) => row.line.includes(needle)),
    ["checkout"],
  ],
  rare_text_count: [
    ["query", `sum(count_over_time(${all} |= "circuit breaker" [1h]))`, ...at],
    count((row) => row.line.includes("circuit breaker")),
    everywhere,
  ],
  rare_text_lines: [
    ["query", `${all} |= "circuit breaker"`, ...lines, "1000"],
    count((row) => row.line.includes("circuit breaker")),
    everywhere,
  ],
  multi_filter: [
    ["query", 'sum(count_over_time({namespace="prod"} |= "error" != "timeout" [1h]))', ...at],
    count((row) => row.isProd && row.line.includes("error") && !row.line.includes("timeout")),
    prod,
  ],
  multi_filter_lines: [
    ["query", '{namespace="prod"} |= "error" |= "upstream" != "retry"', ...lines, "1000"],
    count((row) => row.isProd && /error/.test(row.line) && /upstream(?!.*retry)/.test(row.line)),
    prod,
  ],
  regex_nginx: [
    [
      "query",
      'sum(count_over_time({app="nginx-edge"} |~ `GET /api/v[12]/orders/[0-9]+(\\?[^ ]*)? HTTP/1\\.1" 50[0-9]` [1h]))',
      ...at,
    ],
    count((row) => row.app === "nginx-edge" && row.method === "GET" && row.status >= 500),
    ["nginx-edge"],
  ],
  regex_ci: [
    ["query", `sum(count_over_time(${all} |~ \`(?i)connection reset by peer\` [1h]))`, ...at],
    count((row) => row.line.toLowerCase().includes("connection reset by peer")),
    everywhere,
  ],
  json_numeric: [
    [
      "query",
      'sum(count_over_time({app="checkout"} | json | status >= 500 | duration_ms > 500 [1h]))',
      ...at,
    ],
    count((row) => row.app === "checkout" && row.status >= 500 && row.duration > 500),
    ["checkout"],
  ],
  json_numeric_lines: [
    ["query", '{app="checkout"} | json | status >= 500 | duration_ms > 500', ...lines, "1000"],
    count((row) => row.app === "checkout" && row.status >= 500 && row.duration > 500),
    ["checkout"],
  ],
  json_field_narrow: [
    [
      "query",
      'sum(count_over_time({app="checkout"} | json status="status" | status >= 500 [1h]))',
      ...at,
    ],
    count((row) => row.app === "checkout" && row.status >= 500),
    ["checkout"],
  ],
  json_by_level: [
    ["query", 'sum by (level) (count_over_time({app="checkout"} | json [1m]))', ...every("1m")],
    count((row) => row.app === "checkout"),
    ["checkout"],
  ],
  logfmt_status: [
    ["query", 'sum(count_over_time({app="gateway"} | logfmt | status="503" [1h]))', ...at],
    count((row) => row.app === "gateway" && row.status === 503),
    ["gateway"],
  ],
  logfmt_by_status: [
    ["query", 'sum by (status) (count_over_time({app="gateway"} | logfmt [5m]))', ...every("5m")],
    count((row) => row.app === "gateway"),
    ["gateway"],
  ],
  pattern_by_status: [
    [
      "query",
      'sum by (status) (count_over_time({app="nginx-edge"} | pattern `<ip> - <_> [<_>] "<method> <path> <_>" <status> <_>` [1m]))',
      ...every("1m"),
    ],
    count((row) => row.app === "nginx-edge"),
    ["nginx-edge"],
  ],
  unwrap_p99: [
    [
      "query",
      'quantile_over_time(0.99, {app="checkout"} | json | unwrap duration_ms | __error__="" [5m]) by (app)',
      ...every("5m"),
    ],
    quantiles("checkout", 0.99),
    ["checkout"],
  ],
  rate_by_app: [
    ["query", `sum by (filename) (rate(${all}[1m]))`, ...every("1m")],
    rows.length / 60,
    everywhere,
  ],
  count_error_by_app: [
    ["query", `sum by (filename) (count_over_time(${all} |= "error" [1m]))`, ...every("1m")],
    count((row) => row.line.includes("error")),
    everywhere,
  ],
  count_all_instant: [
    ["query", `sum by (filename) (count_over_time(${all}[1h]))`, ...at],
    rows.length,
    everywhere,
  ],
  bytes_by_ns: [
    ["query", `sum by (filename) (bytes_over_time(${all}[5m]))`, ...every("5m")],
    sum((row) => row.line.length),
    everywhere,
  ],
  bytes_by_level: [
    ["query", 'sum by (detected_level) (bytes_over_time({app="checkout"}[1h]))', ...at],
    sum((row) => (row.app === "checkout" ? row.line.length : 0)),
    ["checkout"],
  ],
  topk_pods: [
    [
      "query",
      'topk(10, sum by (filename) (rate({namespace="prod"} |= "error" [5m])))',
      ...every("5m"),
    ],
    count((row) => row.isProd && row.line.includes("error")) / 300,
    prod,
  ],
  sm_trace: [
    ["query", '{app="payments"} | trace_id="trace-77"', ...lines, "100"],
    count((row) => row.metadata.trace_id === "trace-77"),
    [],
  ],
  sm_user_count: [
    ["query", 'sum(count_over_time({app="payments"} | user="u4" [1h]))', ...at],
    count((row) => row.metadata.user === "u4"),
    [],
  ],
  tail_1000: [["query", '{app="checkout"}', ...lines, "100"], 100, ["checkout"]],
  tail_5000_all_fwd: [["query", all, ...lines, "1000", "--forward"], 1000, everywhere],
  small_last5m: [
    ["query", '{app="checkout"}', ...lines, "10", "--from", `${(endMs - 300_000) * 1e6}`],
    10,
    ["checkout"],
  ],
  line_format: [
    ["query", '{app="checkout"} | json | line_format `{{.status}} {{.user}}`', ...lines, "0"],
    count((row) => row.app === "checkout"),
    ["checkout"],
  ],
  labels: [["labels"], Object.keys(rows[0]!.labels).length, []],
  label_values_pod: [["labels", "filename"], 10, everywhere],
  label_counts: [["labels", "filename", "--counts", "-o", "csv"], 10, everywhere],
  series_prod: [["series", '{namespace="prod"}'], 8, []],
  index_stats: [["stats", '{app="checkout"}', "-o", "jsonl"], 360, ["checkout"]],
  index_volume: [
    ["volume", '{app="checkout"}', "--by", "filename", "-o", "csv"],
    sum(({ app, size }) => (app === "checkout" ? size : 0)),
    ["checkout"],
  ],
  index_volume_range: [
    ["volume_range", '{app="gateway"}', "--by", "filename", "--step", "1h", "-o", "csv"],
    sum(({ app, size }) => (app === "gateway" ? size : 0)),
    ["gateway"],
  ],
  fields: [["fields", '{app="checkout"}'], 9, ["checkout"]],
  field_values: [["fields", '{app="checkout"}', "status"], 6, ["checkout"]],
  field_counts: [
    ["fields", '{app="checkout"}', "status", "--counts", "-o", "csv"],
    count(({ app }) => app === "checkout"),
    ["checkout"],
  ],
};

it.each(Object.entries(cases))(
  "a server, its folder and plain files agree on %s",
  async (_name, [argv, wanted, apps]) => {
    const files = apps.flatMap((app) => ["--files", `${app}-*.log`]);
    const [ofServer, ofFolder, ofFiles] = await Promise.all([
      answer(argv, ["--addr", server.url]),
      answer(argv, ["--dir", "chunks"]),
      files.length === 0 ? undefined : answer(argv, files),
    ]);
    expect(numberOf(ofServer, argv)).toBeCloseTo(wanted, 6);
    expect(ofFolder).toBe(ofServer);
    if (ofFiles !== undefined) expect(ofFiles).toBe(ofServer);
  },
);

/** What a source answers. */
async function answer(argv: readonly string[], source: readonly string[]): Promise<string> {
  const range = argv.includes("--at") ? [] : ["--from", from, "--to", to];
  const [command = "", ...words] = argv;
  const { code, stdout, stderr } = await runProgram(
    binSkald,
    [command, ...range, ...words, "-q", "-z", "UTC", ...source],
    { env: { SKALD_CONFIG: "/nonexistent" }, cwd: folder },
  );
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  return stdout;
}

/** The sum of the last column of CSV, the entries of statistics, or the number of lines. */
function numberOf(text: string, argv: readonly string[]): number {
  const found = text.split("\n").slice(0, -1);
  if (argv[0] === "stats") return JSON.parse(text).entries;
  if (!argv.includes("csv")) return found.length;
  return found
    .slice(1)
    .reduce((total, row) => total + Number(row.slice(row.lastIndexOf(",") + 1)), 0);
}
