// Seals, opens and decodes segments made of generated pushes, and prints one table. Times are CPU times.
//
//   node packages/storage/bench/segment.mjs [DIR/bodies.pb] [MB per segment, 32]
//
// DIR/bodies.pb is what a load generator writes: 1 MiB pushes, protobuf in snappy; without it pushes are made up.
//
// Last figures (2 shared cores, Node 24.21, 50 MB in 2 segments): seal 388 MB/s with 199 streams, 337 with every run
// overlapping, 234 with 20,000 streams; 0.2089 bytes at rest per raw byte (0.2237); open 0.05-0.16 ms, with all texts
// of 20,000 streams 4-7 ms; delta decode 3.1-3.3 ns, lengths 2.7-3.2 ns, timestamps with their reads 8-36 ns a row,
// lines 0.4-1.6 GB/s (zstd and the allocator).
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { makePushBody } from "@skald/testkit";
import snappy from "snappy";
import { ByteWriter } from "../dist/bytes.js";
import { openSegmentFile, sealSegment } from "../dist/index.js";
import { decodeDelta, encodeDelta } from "../dist/parquet/delta.js";
import { decodeByteArrays, encodeLengths } from "../dist/parquet/delta-length.js";

const [file, segmentMb = "32"] = process.argv.slice(2);
const dayNs = 86_400_000_000_000n;
const paddingBytes = 64;
const directory = fs.mkdtempSync(path.join(os.tmpdir(), "skald-bench-"));

const heads = groupHeads(
  (file === undefined ? madeUp(50) : readBodies(file)).map(blockOf),
  Number(segmentMb) * 1e6,
);
const table = [];
for (const [name, list] of [
  ["199 streams", heads],
  ["interleaved: each stream pushed by 2 agents at once", heads.map(interleave)],
  ["20,000 streams", heads.map(manyStreams)],
]) {
  table.push(measure(name, list));
}
fs.rmSync(directory, { recursive: true });
console.table(Object.fromEntries(table));

function measure(name, list) {
  const paths = list.map((_, i) => path.join(directory, `${i}.parquet`));
  let raw = 0;
  let rows = 0;
  let stored = 0;
  const seal = best(7, () => {
    raw = rows = stored = 0;
    list.forEach((head, i) => {
      const sealed = sealSegment({ tenant: "t", id: `s${i}`, path: paths[i], heads: [head] });
      raw += sealed.bytes;
      rows += sealed.rows;
      stored += sealed.sizeBytes;
    });
  });
  const open = best(5, () => {
    for (const opened of paths.map(openPath)) opened.close();
  });
  const texts = best(5, () => {
    for (const opened of paths.map(openPath)) {
      for (let s = 0; s < opened.segment.streamCount; s++) opened.segment.text(s);
      opened.close();
    }
  });
  const match = best(5, () => {
    for (const opened of paths.map(openPath)) {
      opened.segment.matchStreams([{ name: "app", op: "=~", value: "pay.*" }]);
      opened.close();
    }
  });
  const column = (read) =>
    best(5, () => {
      for (const { segment, close } of paths.map(openPath)) {
        for (let b = 0; b < segment.blockCount; b++) read(segment.block(b));
        close();
      }
    }) - open;
  const timestamps = column((block) => block.timestamps());
  const lines = column((block) => block.lines());
  const traces = column((block) => block.metadata("trace_id"));
  const n = list.length;
  return [
    name,
    {
      "raw MB": +(raw / 1e6).toFixed(1),
      rows,
      "seal MB/s": Math.round(raw / 1e3 / seal),
      "at rest/raw": +(stored / raw).toFixed(4),
      "open ms": +(open / n).toFixed(3),
      "open+texts ms": +(texts / n).toFixed(3),
      "open+match ms": +(match / n).toFixed(3),
      "timestamps ns/row": +((timestamps * 1e6) / rows).toFixed(2),
      "lines MB/s": Math.round(raw / 1e3 / lines),
      "trace_id ns/row": +((traces * 1e6) / rows).toFixed(2),
      ...kernels(paths[0]),
    },
  ];
}

/** Decoders alone, on pages in memory. */
function kernels(segmentPath) {
  const { segment, close } = openPath(segmentPath);
  const pages = [];
  let rows = 0;
  for (let b = 0; b < Math.min(segment.blockCount, 64); b++) {
    const set = segment.readPages(
      { from: b, to: b + 1 },
      { timestamps: true, lines: false, metadata: [] },
    );
    const block = segment.block(b, set);
    rows += block.rowCount;
    pages.push({ block, rows: block.rowCount, lines: block.lines() });
  }
  close();
  const encoded = pages.map((page) => encodeAgain(page));
  const deltas = best(15, () => {
    for (const page of encoded) decodeDelta(page.times, page.rows, 0n);
  });
  const lengths = best(15, () => {
    for (const page of encoded) decodeByteArrays(page.lines, page.rows);
  });
  return {
    "delta decode ns": +((deltas * 1e6) / rows).toFixed(2),
    "lengths decode ns": +((lengths * 1e6) / rows).toFixed(2),
  };
}

function encodeAgain({ block, rows, lines }) {
  const times = new ByteWriter(1024);
  encodeDelta(times, block.timestamps(), rows, 0n);
  times.reserve(64);
  const bytes = new ByteWriter(1024);
  encodeLengths(
    bytes,
    Uint32Array.from({ length: rows }, (_, i) => lines.offsets[i + 1] - lines.offsets[i]),
    rows,
  );
  bytes.append(lines.bytes.subarray(0, lines.offsets[rows]));
  bytes.reserve(64);
  return { times: times.view(), lines: bytes.view(), rows };
}

function openPath(segmentPath) {
  return openSegmentFile({ id: "s", tenant: "t", location: { kind: "file", path: segmentPath } });
}

/** Least CPU time of several runs, ms: the machine may be shared. */
function best(runs, work) {
  let least = Number.POSITIVE_INFINITY;
  for (let i = 0; i < runs; i++) {
    const start = process.cpuUsage();
    work();
    const { user, system } = process.cpuUsage(start);
    least = Math.min(least, (user + system) / 1000);
  }
  return least;
}

function readBodies(container) {
  const bytes = fs.readFileSync(container);
  const bodies = [];
  for (let at = 8; at + 12 <= bytes.length; ) {
    const length = bytes.readUInt32LE(at);
    bodies.push(snappy.uncompressSync(bytes.subarray(at + 12, at + 12 + length)));
    at += 12 + length;
  }
  return bodies;
}

/** Bodies of about 1 MB: 199 streams, JSON and logfmt lines with random ids, every fourth row with a trace id. */
function madeUp(count) {
  let state = 42;
  const random = (n) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * n);
  };
  const hex = (digits) =>
    Array.from({ length: digits / 4 }, () => random(65536).toString(16).padStart(4, "0")).join("");
  const start = BigInt(Math.floor(Date.now() / 86_400_000)) * dayNs;
  return Array.from({ length: count }, (_, b) => {
    const streams = Array.from({ length: 199 }, (_, s) => ({
      labels: `{app="app-${s % 13}", cluster="eu-1", namespace="prod", pod="app-${s}-7f8d"}`,
      rows: Array.from({ length: 19 }, (_, r) => {
        const ns = start + BigInt(b * 1_000_000_000 + r * 50_000_000 + random(1_000_000));
        const path = `/api/v1/items/${random(50_000)}`;
        const fields = {
          level: random(20) ? "info" : "error",
          msg: "request completed",
          path,
          status: 200,
        };
        const line =
          s % 2 === 0
            ? JSON.stringify({
                ...fields,
                duration_ms: random(9000) / 10,
                trace_id: hex(32),
                user: { id: random(9999) },
              })
            : `level=${fields.level} msg="${fields.msg}" path=${path} status=200 duration=${random(9000)}us bytes=${random(99999)} request_id=${hex(16)}`;
        return { ns, line, ...(r % 4 ? {} : { metadata: [["trace_id", hex(32)]] }) };
      }),
    }));
    return snappy.uncompressSync(makePushBody(streams));
  });
}

/** The fields of a protobuf message: number, varint or bytes. */
function* fields(bytes, from, to) {
  let at = from;
  const varint = () => {
    let value = 0;
    for (let scale = 1; ; scale *= 128) {
      const byte = bytes[at++];
      value += (byte & 127) * scale;
      if (byte < 128) return value;
    }
  };
  while (at < to) {
    const tag = varint();
    if ((tag & 7) === 0) yield { id: tag >>> 3, value: varint() };
    else {
      const length = varint();
      yield { id: tag >>> 3, from: at, to: at + length };
      at += length;
    }
  }
}

/** A push as one block: a run per stream, as the ingester's head has it. */
function blockOf(body) {
  const rows = [];
  const texts = [];
  for (const stream of fields(body, 0, body.length)) {
    const entries = [...fields(body, stream.from, stream.to)];
    const label = entries.find((field) => field.id === 1);
    texts.push(body.toString("utf8", label.from, label.to));
    for (const entry of entries.filter((field) => field.id === 2))
      rows.push(rowOf(body, entry, texts.length - 1));
  }
  return { texts, rows };
}

function rowOf(body, entry, stream) {
  const row = { stream, ns: 0n, line: undefined, metadata: {} };
  for (const field of fields(body, entry.from, entry.to)) {
    if (field.id === 1) {
      for (const part of fields(body, field.from, field.to)) {
        row.ns += part.id === 1 ? BigInt(part.value) * 1_000_000_000n : BigInt(part.value);
      }
    } else if (field.id === 2) row.line = body.subarray(field.from, field.to);
    else {
      const [name, value] = [...fields(body, field.from, field.to)];
      row.metadata[body.toString("utf8", name.from, name.to)] = body.subarray(value.from, value.to);
    }
  }
  return row;
}

/** Blocks of one day, a list per segment, with one stream table each. */
function groupHeads(parts, segmentBytes) {
  const days = new Map();
  for (const { texts, rows } of parts) {
    for (const row of rows) {
      const day = row.ns / dayNs;
      if (!days.has(day)) days.set(day, []);
      const groups = days.get(day);
      if (groups.length === 0 || groups.at(-1).bytes >= segmentBytes)
        groups.push({ bytes: 0, lists: [] });
      const group = groups.at(-1);
      if (group.lists.at(-1)?.rows !== rows) group.lists.push({ rows, list: [] });
      group.lists
        .at(-1)
        .list.push({ ...row, text: texts[row.stream], time: Number(row.ns - day * dayNs) });
      group.bytes += row.line.length;
    }
  }
  return [...days].flatMap(([day, groups]) =>
    groups.map((group) =>
      makeHead(
        group.lists.map((part) => part.list),
        day * dayNs,
      ),
    ),
  );
}

function makeHead(lists, baseNs) {
  const streamTexts = [...new Set(lists.flat().map((row) => row.text))];
  const numbers = new Map(streamTexts.map((text, i) => [text, i]));
  return {
    blocks: lists.map((list) => makeBlock(list, numbers, baseNs)),
    streamTexts,
    lists,
    baseNs,
  };
}

function makeBlock(list, numbers, baseNs) {
  const timestamps = Float64Array.from(list, (row) => row.time);
  const lines = bytesColumn(list.map((row) => row.line));
  const names = [...new Set(list.flatMap((row) => Object.keys(row.metadata)))];
  const columns = new Map(
    names.map((name) => [
      name,
      { kind: "bytes", ...bytesColumn(list.map((row) => row.metadata[name] ?? Buffer.alloc(0))) },
    ]),
  );
  columns.set("detected_level", {
    kind: "dictionary",
    dictionary: ["", "unknown", "info", "error"],
    codes: Uint8Array.from(list, (row) => (row.line.includes("error") ? 3 : 2)),
  });
  const starts = list.flatMap((row, i) => (row.text === list[i - 1]?.text ? [] : [i]));
  const ends = [...starts.slice(1), list.length];
  const times = (start, end) => timestamps.subarray(start, end);
  return {
    baseNs,
    rowCount: list.length,
    runs: {
      count: starts.length,
      stream: Uint32Array.from(starts, (i) => numbers.get(list[i].text)),
      rowStart: Uint32Array.from([...starts, list.length]),
      minTime: Float64Array.from(starts, (i, run) => Math.min(...times(i, ends[run]))),
      maxTime: Float64Array.from(starts, (i, run) => Math.max(...times(i, ends[run]))),
      lineBytes: Float64Array.from(starts, (i, run) => lines.offsets[ends[run]] - lines.offsets[i]),
    },
    timestamps: () => timestamps,
    lines: () => lines,
    metadataNames: () => [...columns.keys()],
    metadata: (name) => columns.get(name),
  };
}

function bytesColumn(values) {
  const offsets = new Uint32Array(values.length + 1);
  for (let i = 0; i < values.length; i++) offsets[i + 1] = offsets[i] + values[i].length;
  return { bytes: Buffer.concat([...values, Buffer.alloc(paddingBytes)]), offsets };
}

/** Deals the rows of each block to two blocks in turn, so that the runs of every stream overlap. */
function interleave({ lists, baseNs }) {
  return makeHead(
    lists.flatMap((list) => [
      list.filter((_, i) => i % 2 === 0),
      list.filter((_, i) => i % 2 === 1),
    ]),
    baseNs,
  );
}

/** Splits each stream in 100. */
function manyStreams({ lists, baseNs }) {
  let n = 0;
  const renamed = lists.map((list) =>
    list
      .map((row) => ({
        ...row,
        text: row.text.replace("}", `, z_pod="pod-${(n++ * 7919) % 100}"}`),
      }))
      .sort((a, b) => (a.text < b.text ? -1 : 1)),
  );
  return makeHead(renamed, baseNs);
}
