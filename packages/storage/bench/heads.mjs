// The rows of pushes as heads to seal, for benches.
import fs from "node:fs";
import { makePushBody } from "@skald/testkit";
import snappy from "snappy";

const dayNs = 86_400_000_000_000n;
const paddingBytes = 64;

/** The bodies of a file that a load generator wrote; the first `max` of them. */
export function readBodies(container, max = Number.POSITIVE_INFINITY) {
  const bytes = fs.readFileSync(container);
  const bodies = [];
  for (let at = 8; at + 12 <= bytes.length && bodies.length < max; ) {
    const length = bytes.readUInt32LE(at);
    bodies.push(snappy.uncompressSync(bytes.subarray(at + 12, at + 12 + length)));
    at += 12 + length;
  }
  return bodies;
}

/** Bodies of about 1 MB: 199 streams, JSON and logfmt lines with random ids, every fourth row with a trace id. */
export function madeUp(count) {
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
export function blockOf(body) {
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
export function groupHeads(parts, segmentBytes) {
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

export function makeHead(lists, baseNs) {
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
    dictionary: levels,
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

const levels = bytesColumn(["", "unknown", "info", "error"].map((level) => Buffer.from(level)));

function bytesColumn(values) {
  const offsets = new Uint32Array(values.length + 1);
  for (let i = 0; i < values.length; i++) offsets[i + 1] = offsets[i] + values[i].length;
  return { bytes: Buffer.concat([...values, Buffer.alloc(paddingBytes)]), offsets };
}
