// Nanoseconds per selected line of compiled pipelines over blocks of about 256 KiB.
//
//   node packages/logql/bench/pipeline.mjs [part of a name]
//
// Node 24 on a shared core of a 2-core machine:
//
//   count                                   4.0 ns/line  kept 10009, reads header
//   count by stream label                   2.9 ns/line  kept 10009, reads metadata
//   count by metadata                       8.3 ns/line  kept 10009, reads metadata
//   metadata equality                       6.3 ns/line  kept 0, reads metadata
//   contains                               11.1 ns/line  kept 1387, reads lines
//   contains, any case                     12.5 ns/line  kept 1387, reads lines
//   regex with gap                         64.6 ns/line  kept 667, reads lines
//   regex on V8                           258.2 ns/line  kept 10009, reads lines
//   json by level                          88.6 ns/line  kept 10009, reads lines
//   json by status                        226.5 ns/line  kept 10009, reads lines
//   json, number filter                   233.7 ns/line  kept 2028, reads lines
//   json, text filter by nested            86.9 ns/line  kept 1387, reads lines
//   json unwrap by level                  315.7 ns/line  kept 10009, reads lines
//   json by level, errors asked           321.7 ns/line  kept 10009, reads lines
//   json, all labels                     1279.8 ns/line  kept 10009, reads lines
//   json paths                            461.6 ns/line  kept 10009, reads lines
//   logfmt by level                       119.9 ns/line  kept 17057, reads lines
//   logfmt by status                      237.8 ns/line  kept 17057, reads lines
//   logfmt, duration filter               222.0 ns/line  kept 7615, reads lines
//   logfmt, regex filter                  279.6 ns/line  kept 8534, reads lines
//   logfmt, all labels                   1130.9 ns/line  kept 17057, reads lines
//   pattern by status                     213.6 ns/line  kept 16247, reads lines
//   regexp by status                      304.3 ns/line  kept 16247, reads lines
//   ip filter                             216.1 ns/line  kept 5437, reads lines
//   logfmt, line_format of fields        1475.4 ns/line  kept 17057, reads lines
//   line_format with functions           2284.4 ns/line  kept 17057, reads lines
//   json: 210 bytes a line
//   logfmt: 123 bytes a line
//   access: 129 bytes a line
import { compilePipeline, parseQuery } from "../dist/index.js";
import { allRows, makeBlock } from "../dist/testing/memory-block.js";

const blockBytes = 256 * 1024;
const baseNs = 1_710_201_600_000_000_000n;

/** Small linear congruential generator: the same lines on every machine. */
function generator(seed) {
  let state = seed;
  return (n) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * n);
  };
}

const levels = ["info", "info", "info", "info", "debug", "warn", "error"];
const shapes = {
  json: (r, i) =>
    JSON.stringify({
      level: levels[r(levels.length)],
      ts: `2024-03-12T10:00:${String(i % 60).padStart(2, "0")}Z`,
      msg: ["request served", "cache miss", "retrying upstream"][r(3)],
      request: { method: ["GET", "POST"][r(2)], path: `/v2/orders/${r(1000)}`, bytes: r(50_000) },
      status: [200, 200, 200, 404, 500][r(5)],
      latency_ms: r(2000) + r(100) / 100,
      user_id: r(5000),
      trace_id: `${r(1 << 30).toString(16)}${r(1 << 30).toString(16)}`,
    }),
  logfmt: (r, i) =>
    `ts=2024-03-12T10:00:${String(i % 60).padStart(2, "0")}Z level=${levels[r(levels.length)]} component=store msg="job done in time" took=${r(900)}ms bytes=${r(100)}KB n=${r(100)} host=node-${r(4)} status=${[200, 404, 500][r(3)]}`,
  access: (r, i) =>
    `10.${r(3)}.${r(4)}.${r(250)} - - [12/Mar/2024:10:00:${String(i % 60).padStart(2, "0")} +0000] "GET /api/v1/items/${r(1000)} HTTP/1.1" ${[200, 404, 500][r(3)]} ${r(50_000)} "-" "Mozilla/5.0 (X11; Linux x86_64)" ${r(3000) / 1000}`,
};

function blocksOf(shape) {
  const r = generator(7);
  return Array.from({ length: 8 }, (_, b) => {
    const rows = [];
    for (let bytes = 0, i = 0; bytes < blockBytes; i++) {
      const line = shapes[shape](r, i);
      bytes += line.length;
      rows.push({
        labels: { app: shape, env: "prod", pod: `p-${b}` },
        ts: baseNs + BigInt(i) * 1_000_000n,
        line,
        metadata: { detected_level: levels[r(levels.length)], trace: r(1 << 30).toString(16) },
      });
    }
    return makeBlock(rows);
  });
}

const log = { kind: "log" };
const by = (...labels) => ({ kind: "metric", grouping: { without: false, labels } });
const many = (count, term) => Array.from({ length: count }, (_, i) => term(i));
const anyOf = (count, term) => many(count, term).join(" or ");

const cases = [
  ["json", "", by(), undefined, "count"],
  ["json", "", by("app"), undefined, "count by stream label"],
  ["json", "", by("detected_level"), undefined, "count by metadata"],
  ["json", '| trace="12ab34cd"', by("app"), undefined, "metadata equality"],
  ["json", '|= "error"', by("app"), undefined, "contains"],
  ["json", '|~ "(?i)ERROR"', by("app"), undefined, "contains, any case"],
  ["json", `|= ${anyOf(8, (i) => `"${i}-th"`)}`, by("app"), undefined, "any of 8 texts"],
  ["json", `|= ${anyOf(10_000, (i) => `"o-${i}"`)}`, by("app"), undefined, "any of 10,000 texts"],
  [
    "json",
    `|~ "${many(1000, (i) => `order-${i}`).join("|")}"`,
    by("app"),
    undefined,
    "regex of 1000",
  ],
  [
    "json",
    `|~ "(?i)${many(1000, (i) => `o-${i}`).join("|")}"`,
    by("app"),
    undefined,
    "regex of 1000, any case",
  ],
  [
    "json",
    `| json | ${anyOf(1400, (i) => `status="${i + 500}"`)}`,
    by("app"),
    undefined,
    "label, any of 1400",
  ],
  [
    "json",
    `| ${anyOf(1400, (i) => `trace="${i}"`)}`,
    by("app"),
    undefined,
    "metadata, any of 1400",
  ],
  ["json", '|~ "upstream.*status\\":5"', by("app"), undefined, "regex with gap"],
  ["json", '|~ "orders/[0-9]+\\""', by("app"), undefined, "regex on V8"],
  ["json", "| json", by("level"), undefined, "json by level"],
  ["json", "| json", by("status"), undefined, "json by status"],
  ["json", "| json | status >= 500", by("app"), undefined, "json, number filter"],
  ["json", '| json | level="error"', by("request_path"), undefined, "json, text filter by nested"],
  [
    "json",
    "| json",
    by("level"),
    { label: "latency_ms", conversion: "none", filters: [] },
    "json unwrap by level",
  ],
  ["json", '| json | __error__=""', by("level"), undefined, "json by level, errors asked"],
  ["json", "| json", log, undefined, "json, all labels"],
  ["json", '| json l="level", p="request.path"', by("l", "p"), undefined, "json paths"],
  ["logfmt", "| logfmt", by("level"), undefined, "logfmt by level"],
  ["logfmt", "| logfmt", by("status"), undefined, "logfmt by status"],
  ["logfmt", "| logfmt | took > 500ms", by("app"), undefined, "logfmt, duration filter"],
  ["logfmt", '| logfmt | host=~"node-[12]"', by("app"), undefined, "logfmt, regex filter"],
  ["logfmt", "| logfmt", log, undefined, "logfmt, all labels"],
  [
    "access",
    '| pattern `<ip> - <_> "<method> <path> <_>" <status> <_>`',
    by("status"),
    undefined,
    "pattern by status",
  ],
  ["access", '| regexp `" (?P<status>[0-9]+) `', by("status"), undefined, "regexp by status"],
  ["access", '|= ip("10.1.0.0/16")', by("app"), undefined, "ip filter"],
  [
    "logfmt",
    "| logfmt | line_format `{{.level}} {{.msg}}`",
    log,
    undefined,
    "logfmt, line_format of fields",
  ],
  [
    "logfmt",
    "| logfmt level, msg | line_format `{{.level | upper}} {{trunc 4 .msg}}`",
    log,
    undefined,
    "line_format with functions",
  ],
];

const blocks = Object.fromEntries(Object.keys(shapes).map((shape) => [shape, blocksOf(shape)]));
for (const [shape, stages, output, unwrap, name] of cases) {
  if (process.argv[2] !== undefined && !name.includes(process.argv[2])) continue;
  const query = parseQuery(`{app="x"} ${stages}`);
  const pipeline = compilePipeline({ stages: query.stages, output, ...(unwrap ? { unwrap } : {}) });
  const sources = blocks[shape].map((source) => ({ ...source, rows: allRows(source.block) }));
  let best = Number.POSITIVE_INFINITY;
  let kept = 0;
  for (let round = 0; round < 12; round++) {
    const run = pipeline.start();
    kept = 0;
    let lines = 0;
    const start = process.hrtime.bigint();
    for (let again = 0; again < 3; again++) {
      for (const { block, streamLabels, rows } of sources) {
        kept += run.process(block, streamLabels, rows).count;
        lines += rows.count;
      }
    }
    best = Math.min(best, Number(process.hrtime.bigint() - start) / lines);
  }
  const { needs } = pipeline;
  const reads = needs.lines
    ? "lines"
    : needs.metadata === true || needs.metadata.length > 0
      ? "metadata"
      : "header";
  console.log(
    `${name.padEnd(34)} ${best.toFixed(1).padStart(8)} ns/line  kept ${kept / 3}, reads ${reads}`,
  );
}
for (const [shape, list] of Object.entries(blocks)) {
  const { block } = list[0];
  console.log(
    `${shape}: ${Math.round(block.lines().offsets[block.rowCount] / block.rowCount)} bytes a line`,
  );
}
