// Seals, opens and decodes segments made of generated pushes, and prints one table. Times are CPU times.
//
//   node packages/storage/bench/segment.mjs [DIR/bodies.pb] [MB per segment, 32]
//
// DIR/bodies.pb is what a load generator writes: 1 MiB pushes, protobuf in snappy; without it pushes are made up.
//
// Last figures (2 shared cores, Node 24.21, 50 MB in 2 segments): seal 388 MB/s with 199 streams, 337 with every run
// overlapping, 234 with 20,000 streams; 0.2089 bytes at rest per raw byte (0.2237); open 0.05-0.16 ms, with all texts
// of 20,000 streams 4-7 ms; delta decode 3.1-3.3 ns, lengths 2.7-3.2 ns, timestamps with their reads 8-36 ns a row,
// lines 0.4-1.6 GB/s (zstd and the allocator). Digests of a real hour (199 streams) take 0.00015 bytes a raw byte, and 140 ns a
// row with two metadata columns; counts by level 0.00015.
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { ByteWriter } from "../dist/bytes.js";
import { openSegmentFile, sealSegment } from "../dist/index.js";
import {
  decodeByteArrays,
  decodeDelta,
  encodeDelta,
  encodeLengths,
} from "../dist/parquet/delta.js";
import { blockOf, groupHeads, madeUp, makeHead, readBodies } from "./heads.mjs";

const [file, segmentMb = "32"] = process.argv.slice(2);
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
