// One table: MB/s (1e6 bytes of raw lines) of each kernel, twin against compiled. Usage: node bench/kernels.mjs [name]

import { collectNeedleKeys } from "../dist/index.js";
import { loadKernels } from "../dist/load.js";
import { fieldColumns } from "../dist/shared/fields.js";
import { chooseKeys, slotsFor } from "../dist/shared/needle.js";
import { selectAll } from "../dist/shared/search.js";
import { compileTextSet } from "../dist/shared/text-set.js";
import { columnOf, jsonBody, limits, logLines, protobufBody } from "./data.mjs";

const wanted = process.argv[2] ?? "";
const lines = logLines(4000);
const column = columnOf(lines);
const raw = column.bytes.length;
const { message, block } = protobufBody(lines);
const small = protobufBody(lines.slice(0, 40));
const json = jsonBody(lines);
const plainJson = jsonBody(logLines(4000, 1, "nginx").map((line) => line.replaceAll('"', "'")));
const fields = [
  "level",
  "LEVEL",
  "Level",
  "log.level",
  "severity",
  "SEVERITY",
  "Severity",
  "SeverityText",
  "lvl",
];
const options = { fields, jsonMaxDepth: 2 };
const out = new Uint8Array(column.rows);
const high = new Uint32Array(column.rows);
const low = new Uint32Array(column.rows);
const { mixed, plain } = collectNeedleKeys(column.bytes, column.offsets, column.rows);
const filterKeys = chooseKeys(mixed, plain, 1e6).keys;
const everything = selectAll(column.rows);
const selection = { rows: new Uint32Array(column.rows), count: 0 };

function search(needle, flags) {
  const text = Buffer.from(needle);
  return (kernels) => {
    selection.rows.set(everything.rows);
    selection.count = column.rows;
    kernels.selectContains(column.bytes, column.offsets, column.rows, text, selection, flags);
  };
}

function numbered(count) {
  return Array.from({ length: count }, (_, i) => `order-${(i * 7919) % 1_000_003}`);
}

function searchAny(texts, ignoreCase = false) {
  const set = compileTextSet(
    texts.map((text) => Buffer.from(text)),
    ignoreCase,
  );
  return (kernels) => {
    selection.rows.set(everything.rows);
    selection.count = column.rows;
    kernels.selectContainsAny(column.bytes, column.offsets, column.rows, set, selection, false);
  };
}

function levels(kind) {
  const part = kind === undefined ? column : columnOf(logLines(2000, 3, kind));
  return [
    part.bytes.length,
    (kernels) =>
      kernels.detectLevels(part.bytes, part.lineStart, part.lineLength, part.rows, out, options),
  ];
}

/** MB/s and, for the budget of queries, ns a line: those of `kind` with these wanted fields. */
function fieldScan(kind, names, options) {
  const part = columnOf(logLines(2000, 3, kind));
  const found = fieldColumns(names.length, part.rows);
  const all = selectAll(part.rows);
  const scan = kind === "json" ? "scanJsonFields" : "scanLogfmtFields";
  const flags = { enough: options.complete ? 0 : 2 ** names.length - 1, ...options };
  return [
    part.bytes.length,
    (kernels) => kernels[scan](part.bytes, part.offsets, all, names, found, flags),
    part.rows,
  ];
}

const jsonNames = ["status", "latency_ms"];
const plainLogfmt = { strict: false, keepEmpty: false, lastWins: false };
const exact = { ignoreCase: false, negate: false };
const cases = {
  "snappy decode": [message.length, (k) => k.decodeSnappy(block, 1 << 30)],
  "protobuf push, 1 MB": [raw, (k) => k.decodeSnappyProtobufPush(block, limits)],
  "protobuf push, 10 KB": [
    small.message.length,
    (k) => k.decodeSnappyProtobufPush(small.block, limits),
  ],
  "json push, mixed": [raw, (k) => k.scanJsonPush(json, limits)],
  "json push, few escapes": [plainJson.length, (k) => k.scanJsonPush(plainJson, limits)],
  "levels, mixed": levels(),
  "levels, json": levels("json"),
  "levels, logfmt": levels("logfmt"),
  "levels, nginx": levels("nginx"),
  "levels, java": levels("java"),
  "search, absent": [raw, search("no such needle", exact)],
  "search, 1 in 6 rows": [raw, search("level=error", exact)],
  "search, most rows": [raw, search("03:04", exact)],
  "search, one byte": [raw, search("~", exact)],
  "search, no case": [raw, search("No Such Needle", { ...exact, ignoreCase: true })],
  "search, 4 texts": [raw, searchAny(["panic", "level=fatal", "OutOfMemory", "refused"])],
  "search, 4 texts, no case": [raw, searchAny(["panic", "fatal", "OutOfMemory", "refused"], true)],
  "search, 40 texts": [raw, searchAny(numbered(40))],
  "search, 1000 texts": [raw, searchAny(numbered(1000))],
  "search, 10000 texts": [raw, searchAny(numbered(10_000))],
  "json, 1 early field": fieldScan("json", ["level"], { complete: false }),
  "json, 2 fields": fieldScan("json", jsonNames, { complete: false }),
  "json, 2 fields, complete": fieldScan("json", jsonNames, { complete: true }),
  "json, 1 nested field": fieldScan("json", ["user_region"], { complete: false }),
  "logfmt, 1 early field": fieldScan("logfmt", ["level"], plainLogfmt),
  "logfmt, 2 fields": fieldScan("logfmt", ["status", "duration"], plainLogfmt),
  "logfmt, absent field": fieldScan("logfmt", ["absent"], plainLogfmt),
  "needle keys": [raw, (k) => k.collectNeedleKeys(column.bytes, column.offsets, column.rows)],
  "needle filter": [raw, (k) => k.solveNeedleFilter([filterKeys], slotsFor(filterKeys.length), 0)],
  "hash rows": [raw, (k) => k.hashRows(column.bytes, column.offsets, column.rows, high, low)],
};

const forms = [loadKernels("twin"), loadKernels("wasm")];
const heads = ["twin MB/s", "wasm MB/s", "ratio", "wasm ns/line"];
console.log("kernel".padEnd(26) + heads.map((head) => head.padStart(13)).join(""));
for (const [name, [bytes, run, rows]] of Object.entries(cases)) {
  if (!name.includes(wanted)) continue;
  const [plain, compiled] = forms.map((kernels) => secondsPerRun(() => run(kernels)));
  const perLine = rows === undefined ? "" : ((compiled * 1e9) / rows).toFixed(0);
  const cells = [bytes / 1e6 / plain, bytes / 1e6 / compiled].map((speed) => speed.toFixed(0));
  const row = [...cells, (plain / compiled).toFixed(1), perLine].map((cell) => cell.padStart(13));
  console.log(name.padEnd(26) + row.join(""));
}

/** The fastest of nine rounds of about 40 ms each, after a warm-up: others may use the machine as well. */
function secondsPerRun(run) {
  const until = performance.now() + 80;
  let runs = 0;
  while (performance.now() < until || runs < 3) {
    run();
    runs++;
  }
  const perRound = Math.max(1, Math.ceil(runs / 2));
  const rounds = Array.from({ length: 9 }, () => {
    const start = performance.now();
    for (let i = 0; i < perRound; i++) run();
    return (performance.now() - start) / 1000 / perRound;
  });
  return Math.min(...rounds);
}
