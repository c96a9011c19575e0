// Test data of the benchmark and the fuzzer: seeded mixed log lines (JSON, logfmt, nginx, Java) and push bodies.
import { createRequire } from "node:module";

const require = createRequire(import.meta.url);
const snappy = require("snappy");

/** A small seeded generator: the same numbers on every machine; returns integers below n. */
function seeded(seed) {
  let state = seed >>> 0;
  return (n) => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) % n;
  };
}

const levels = ["info", "info", "info", "debug", "warn", "error"];
const messages = [
  "request completed",
  "cache refreshed",
  "slow query detected",
  "upstream returned error",
  'user "ann" logged in',
];
const paths = ["/api/v1/orders", "/api/v1/items/42?page=2", "/login", "/static/app.js"];

const kinds = [
  (next) =>
    JSON.stringify({
      ts: `2026-01-02T03:04:${10 + next(50)}.${100 + next(900)}Z`,
      level: levels[next(6)],
      logger: "http.server",
      msg: messages[next(5)],
      method: "GET",
      path: paths[next(4)],
      status: 200 + next(300),
      latency_ms: next(100000) / 10,
      trace_id: hex(next, 32),
      user: { id: next(100000), region: "eu-west-1" },
    }),
  (next) =>
    `ts=2026-01-02T03:04:${10 + next(50)}.${100 + next(900)}Z caller=server.go:118 level=${levels[next(6)]} ` +
    `msg=${JSON.stringify(messages[next(5)])} tenant=t${next(50)} method=GET path=${paths[next(4)]} status=${200 + next(300)} ` +
    `duration=${next(9000) / 10}ms bytes=${next(100000)} trace_id=${hex(next, 32)}`,
  (next) =>
    `10.${next(256)}.${next(256)}.${next(256)} - - [02/Jan/2026:03:04:${10 + next(50)} +0000] "GET ${paths[next(4)]} HTTP/1.1" ` +
    `${200 + next(300)} ${next(50000)} "https://shop.example/cart" "Mozilla/5.0 (X11; Linux x86_64; rv:125.0) Gecko/20100101 Firefox/125.0" ${next(3000) / 1000}`,
  (next) =>
    `2026-01-02 03:04:${10 + next(50)},${100 + next(900)} ${levels[next(6)].toUpperCase()} [main-${next(20)}] kafka.server.ReplicaManager: ` +
    `Partition orders-${next(64)} ${messages[next(5)]} at offset ${next(10000000)} ` +
    "\n\tat kafka.server.KafkaApis.handle(KafkaApis.scala:212)\n\tat java.base/java.lang.Thread.run(Thread.java:833)",
];

function hex(next, digits) {
  let text = "";
  for (let i = 0; i < digits; i++) text += next(16).toString(16);
  return text;
}

/** Mixed lines; `kind` picks one of json, logfmt, nginx, java. */
export function logLines(count, seed = 1, kind = undefined) {
  const next = seeded(seed);
  const names = ["json", "logfmt", "nginx", "java"];
  return Array.from({ length: count }, () =>
    kinds[kind === undefined ? next(4) : names.indexOf(kind)](next),
  );
}

/** Lines as one column: bytes, offsets of rows + 1, starts and lengths. */
export function columnOf(lines) {
  const encoded = lines.map((line) => Buffer.from(line));
  const offsets = new Uint32Array(lines.length + 1);
  for (let i = 0; i < lines.length; i++) offsets[i + 1] = offsets[i] + encoded[i].length;
  return {
    bytes: Uint8Array.from(Buffer.concat(encoded)),
    offsets,
    lineStart: offsets.slice(0, -1),
    lineLength: Uint32Array.from(encoded, (line) => line.length),
    rows: lines.length,
  };
}

function groups(lines, perStream) {
  const streams = [];
  for (let i = 0; i < lines.length; i += perStream) streams.push(lines.slice(i, i + perStream));
  return streams;
}

const startNs = 1_767_322_800_000_000_000n;

/** A push body in JSON; every tenth row has metadata. */
export function jsonBody(lines, perStream = 50) {
  let row = 0n;
  const streams = groups(lines, perStream).map((group, stream) => ({
    stream: { app: "shop", pod: `p-${stream}` },
    values: group.map((line) => {
      const time = String(startNs + row++ * 1_000_003n);
      return row % 10n === 0n ? [time, line, { trace_id: "t1", user: "ann" }] : [time, line];
    }),
  }));
  return Buffer.from(JSON.stringify({ streams }));
}

/** A push body as a protobuf message, and the same in a snappy block. */
export function protobufBody(lines, perStream = 50) {
  let row = 0;
  const message = Buffer.concat(
    groups(lines, perStream).map((group, stream) => {
      const entries = group.map((line) => {
        const time = [
          field(1, 0, varint(1_767_322_800 + (row >> 10))),
          field(2, 0, varint(row * 1000)),
        ];
        const pair = Buffer.concat([text(1, "trace_id"), text(2, "t1")]);
        const parts = [bytes(1, Buffer.concat(time)), text(2, line)];
        if (row++ % 10 === 9) parts.push(bytes(3, pair));
        return bytes(2, Buffer.concat(parts));
      });
      return bytes(1, Buffer.concat([text(1, `{app="shop", pod="p-${stream}"}`), ...entries]));
    }),
  );
  return { message, block: snappy.compressSync(message) };
}

const field = (number, wire, value) => Buffer.concat([varint(number * 8 + wire), value]);
const bytes = (number, value) => field(number, 2, Buffer.concat([varint(value.length), value]));
const text = (number, value) => bytes(number, Buffer.from(value));

function varint(value) {
  const out = [];
  let rest = value;
  for (; rest >= 128; rest = Math.floor(rest / 128)) out.push((rest % 128) | 128);
  return Buffer.from([...out, rest]);
}

export const limits = {
  maxDecodedBytes: 100 << 20,
  maxStreams: 100_000,
  maxRows: 1_000_000,
  maxPairs: 4_000_000,
};
