#!/usr/bin/env node
// Measures the distributor's whole part of a push, in one thread and without a network: decode, labels, limits, levels,
// batch. Prints MB of raw line bytes per second, for all of it and for the decoding alone.
//   node packages/distributor/bench/push.mjs [--bodies FILE] [--type application/x-protobuf] [--rounds 5]
// FILE is a container of push bodies; without it, bodies of a made-up fleet are used.
// Last figures (one thread of a shared 2-core machine, Node 24): 1 MB protobuf 1000 MB/s (decoding alone 1590), 1 MB JSON
// 680 MB/s, 10 KB protobuf 20 us a push; made-up fleet 1480 MB/s.
import fs from "node:fs";
import { decodeBody, parsePushHeaders } from "@skald/push";
import { defaultLimits } from "@skald/runtime/config";
import { Metrics } from "@skald/runtime/metrics";
import { makePushBody } from "@skald/testkit";
import { createDistributorMetrics, Distributor } from "../dist/index.js";

const options = { bodies: "", type: "application/x-protobuf", rounds: "5" };
for (let i = 2; i < process.argv.length; i += 2)
  options[process.argv[i].slice(2)] = process.argv[i + 1];

const bodies = options.bodies === "" ? madeUp(30) : contained(options.bodies);
const rawBytes = bodies.reduce((sum, body) => sum + body.raw, 0);
const lines = bodies.reduce((sum, body) => sum + body.lines, 0);
const nowMs = Date.now();
const limits = {
  ...defaultLimits,
  ingestion_rate_mb: 1e9,
  ingestion_burst_size_mb: 1e9,
  reject_old_samples_max_age: 365 * 86_400_000,
};
let rows = 0;
const distributor = new Distributor({
  ingester: {
    push: ({ batch }) => {
      rows += batch.rowCount;
      return Promise.resolve({ refusals: [] });
    },
  },
  limitsOf: () => limits,
  metrics: createDistributorMetrics(new Metrics()),
  clock: { nowMs: () => nowMs },
  maxDecompressedBytes: 1 << 30,
});
const headers = { contentType: options.type, contentEncoding: undefined, style: "v1" };

const whole = await best(async () => {
  for (const { data } of bodies) {
    const answer = await distributor.push("bench", { ...headers, body: data });
    if (answer.status !== 204) throw new Error(`${answer.status} ${answer.text}`);
  }
});
const decoding = await best(async () => {
  for (const { data } of bodies) decodeBody({ ...parsePushHeaders(headers), body: data });
});
console.table([
  {
    bodies: bodies.length,
    lines,
    raw_mb: +(rawBytes / 1e6).toFixed(1),
    whole_mb_per_s: Math.round(rawBytes / 1e3 / whole),
    decode_mb_per_s: Math.round(rawBytes / 1e3 / decoding),
    whole_us_per_push: +((whole * 1e3) / bodies.length).toFixed(1),
    whole_ns_per_line: Math.round((whole * 1e6) / lines),
    rows_stored: rows,
  },
]);

/** Shortest of the rounds, ms. */
async function best(run) {
  let shortest = Number.POSITIVE_INFINITY;
  for (let i = 0; i < Number(options.rounds); i++) {
    const start = performance.now();
    await run();
    shortest = Math.min(shortest, performance.now() - start);
  }
  return shortest;
}

function contained(path) {
  const file = fs.readFileSync(path);
  const found = [];
  for (let at = 8; at + 12 <= file.length; ) {
    const length = file.readUInt32LE(at);
    const data = file.subarray(at + 12, at + 12 + length);
    found.push({ raw: file.readUInt32LE(at + 4), lines: file.readUInt32LE(at + 8), data });
    at += 12 + length;
  }
  return found;
}

/** Bodies of about 1 MB: 60 streams, logfmt lines, every fourth row with a trace id. */
function madeUp(count) {
  const now = BigInt(Date.now()) * 1_000_000n;
  return Array.from({ length: count }, (_, b) => {
    let raw = 0;
    const streams = Array.from({ length: 60 }, (_, s) => ({
      labels: `{app="app-${s % 9}", namespace="prod", pod="app-${s}-7f8d", cluster="eu-1"}`,
      rows: Array.from({ length: 100 }, (_, r) => {
        const id = (b * 6000 + s * 100 + r).toString(16).padStart(32, "0");
        const line = `ts=2026-11-20T10:00:00Z level=${r % 20 ? "info" : "error"} msg="request completed" path=/api/v1/items/${r} status=200 duration=${r}ms bytes=${r * 17} id=${id}`;
        raw += line.length;
        return { ns: now + BigInt(r), line, ...(r % 4 ? {} : { metadata: [["trace_id", id]] }) };
      }),
    }));
    return { raw, lines: 6000, data: makePushBody(streams) };
  });
}
