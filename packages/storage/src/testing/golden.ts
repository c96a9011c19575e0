import { copyFile, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { dayNs, type PushEncoding, type PushFormat } from "@skald/model";
import { makeBatch } from "@skald/testkit";
import { DayEdit } from "../day-index/day-edit.js";
import { HeadBlock } from "../head/head-block.js";
import { mergeSegments } from "../seal/merge-segments.js";
import { sealSegment } from "../seal/seal.js";
import { openSegmentFile } from "../segment/read/reader.js";
import { walPath } from "../wal/disk.js";
import { WalFrames } from "../wal/frame.js";
import type { WalRecord } from "../wal/record.js";
import { replayWal } from "../wal/replay.js";
import { Wal } from "../wal/wal.js";
import { headOf, type Row } from "./seal-rows.js";

/** Path of a golden file: each was written once by the first version of its format and stays as it is. */
export function goldenPath(name: string): string {
  return fileURLToPath(new URL(`../../testdata/${name}`, import.meta.url));
}

/** The records of testdata/wal-v1.bin: one of each kind, format and encoding. */
export function goldenRecords(): WalRecord[] {
  const heads = [
    { day: 20_777, id: "head-1" },
    { day: 20_778, id: "head-2" },
  ];
  const push = (
    format: PushFormat,
    encoding: PushEncoding,
    body: string,
    ...dropped: number[]
  ): WalRecord => ({
    kind: "push_body",
    tenant: "golden",
    heads,
    ordinals: Uint32Array.of(0, 2),
    streams: Uint32Array.of(7, 3),
    levels: Uint8Array.of(4, 0, 255),
    source: { format, encoding, body: Buffer.from(body), dropped: Uint32Array.from(dropped) },
  });
  const batch = makeBatch([
    {
      labels: { app: "api" },
      rows: [
        { ns: 1n, line: "in no range" },
        { ns: goldenBaseNs + 5n, line: "größe", metadata: { k: "v", l: "wert" }, level: 4 },
        { ns: goldenBaseNs + 4n, line: "" },
      ],
    },
    {
      labels: { app: "web" },
      rows: [{ ns: -1n, line: "early", metadata: { l: "x" }, level: 255 }],
    },
  ]);
  return [
    {
      kind: "streams",
      tenant: "golden",
      numbers: [7, 3],
      texts: ['{app="api"}', '{app="web", größe="1"}'],
    },
    push("protobuf", "identity", "a body"),
    push("json", "gzip", "another", 1, 9),
    push("legacy_json", "deflate", "", 3),
    {
      kind: "push_columns",
      tenant: "golden",
      heads: [{ day: -1, id: "head-0" }, heads[0]!],
      ranges: [
        { stream: 7, rowFrom: 1, rowTo: 3 },
        { stream: 3, rowFrom: 3, rowTo: 4 },
      ],
      batch,
    },
  ];
}

/** Start of the UTC day of the golden rows. */
export const goldenBaseNs = 20_777n * dayNs;

/** The day of testdata/day-v1.day, of generation 42. */
export function goldenDay(): DayEdit {
  const edit = new DayEdit({ tenant: "golden", baseNs: goldenBaseNs });
  const times = { minNs: goldenBaseNs + 5n, maxNs: goldenBaseNs + 10n ** 12n };
  const counts = { sizeBytes: 1234, rows: 7, lineBytes: 4321, level: 0 };
  edit.add({ id: "head-1", ...times, ...counts }, ['{app="api"}']);
  edit.add({ id: "merged-2", ...times, ...counts, level: 1 }, [
    '{app="api"}',
    '{app="web", größe="1"}',
  ]);
  edit.remove({ id: "head-2", ...times, sinceMs: 1_795_000_000_000, by: "merged-2" });
  edit.remove({ id: "head-3", ...times, sinceMs: 1_795_000_000_001, by: undefined });
  return edit;
}

/** The day of testdata/day-v1-counts.day, of generation 43: one segment is counted, one is not. */
export function goldenCountedDay(): DayEdit {
  const edit = goldenDay();
  const times = { minNs: goldenBaseNs + 1000n, maxNs: goldenBaseNs + 9000n };
  edit.add(
    { id: "head-4", ...times, sizeBytes: 99, rows: 5, lineBytes: 50, level: 0 },
    ['{app="api"}', '{app="db"}'],
    {
      metadataNames: ["level", "trace_id"],
      rows: Float64Array.of(4, 1),
      lineBytes: Float64Array.of(39, 11),
      minTimes: Float64Array.of(1000, 7000),
      maxTimes: Float64Array.of(9000, 7000),
    },
  );
  return edit;
}

/** The day of testdata/day-v1-marks.day, of generation 44: two segments that share times have marks, and one has a row of the other. */
export function goldenMarkedDay(): DayEdit {
  const edit = goldenDay();
  const segment = { sizeBytes: 99, rows: 3, lineBytes: 50, level: 0 };
  const add = (id: string, from: number, marks: readonly number[]) => {
    const times = { minNs: goldenBaseNs + BigInt(from), maxNs: goldenBaseNs + BigInt(from) + 900n };
    edit.add({ id, ...times, ...segment }, ['{app="cache"}', '{app="db"}'], {
      metadataNames: [],
      rows: Float64Array.of(2, 1),
      lineBytes: Float64Array.of(39, 11),
      minTimes: Float64Array.of(from, from + 900),
      maxTimes: Float64Array.of(from + 900, from + 900),
      marks: Uint32Array.from(marks),
    });
  };
  add("head-5", 1000, [1, 0xffffffff, 3]);
  add("head-6", 1000, [2, 5, 3]);
  return edit;
}

/** Rows of testdata/head-v1.bin: three that a view shows, then one that was not published. */
export const goldenHeadRows: readonly Row[] = [
  {
    labels: { app: "api" },
    time: 5,
    line: "first",
    metadata: { trace_id: "0af7", detected_level: "info" },
  },
  { labels: { app: "api" }, time: 3, line: "" },
  {
    labels: { app: "web" },
    time: 86_399_999_999_999,
    line: "größe\nlast of the day",
    metadata: { trace_id: "t2", detected_level: "notice" },
  },
  { labels: { app: "web" }, time: 9, line: "hidden", metadata: { trace_id: "t3" } },
];

/** The head block of testdata/head-v1.bin; the streams have the numbers 7 and 3. */
export function goldenHead(): HeadBlock {
  const head = new HeadBlock(goldenBaseNs, {
    rows: 8,
    runs: 4,
    pairs: 6,
    lineBytes: 100,
    valueBytes: 50,
  });
  const rows = goldenHeadRows.map(({ labels, time, line, metadata = {} }) => {
    const { detected_level: level, ...others } = metadata;
    return {
      labels,
      ns: goldenBaseNs + BigInt(time),
      line: line as string,
      metadata: level === "notice" ? metadata : others,
      level: level === "notice" ? 255 : level === "info" ? 4 : 0,
    };
  });
  const batch = makeBatch([
    { labels: { app: "api" }, rows: rows.slice(0, 2) },
    { labels: { app: "web" }, rows: rows.slice(2) },
  ]);
  head.append(batch, 0, 2, 7);
  head.append(batch, 2, 4, 3);
  head.publish(3);
  return head;
}

/** The rows of testdata/segment-v1.parquet, one of them twice. */
export function goldenSegmentRows(): Row[] {
  return [
    { labels: { app: "api", env: "prod" }, time: 1, line: "first" },
    { labels: { app: "api", env: "prod" }, time: 1, line: "first" },
    {
      labels: { app: "api", env: "prod" },
      time: 86_399_999_999_999,
      line: "größe\nlast of the day",
      metadata: { trace_id: "0af7651916cd43dd8448eb211c80319c", detected_level: "info" },
    },
    { labels: { app: "web" }, time: 5_000_000_000, line: "", metadata: { Trace_ID: "clash" } },
    ...Array.from({ length: 200 }, (_, i) => ({
      labels: { app: "web" },
      time: 6_000_000_000 + i * 1_000_000,
      line: `GET /items/${i} 200 ${"0123456789".repeat(i % 4)}`,
      metadata: i % 3 ? { trace_id: `t${i}` } : {},
    })),
  ];
}

/** The rows of testdata/segment-v1-filters.parquet, and of the one with bitmaps: two blocks. */
export function goldenFilteredRows(): Row[] {
  return Array.from({ length: 90 }, (_, i) => ({
    labels: { app: i < 45 ? "api" : "web" },
    time: i * 1_000_000,
    line: `GET /items/${i} 200 ${i < 45 ? "0123456789".repeat(600) : `took ${i * 17} ms`}`,
    metadata: i % 3 ? { trace_id: `t${i}` } : {},
  }));
}

/** The rows of testdata/segment-v1-fields.parquet: JSON and logfmt, some for the parser alone. */
export function goldenFieldRows(): Row[] {
  return Array.from({ length: 60 }, (_, i) => ({
    labels: { app: i < 40 ? "json" : "logfmt" },
    time: i * 1_000_000,
    line:
      i % 25 === 7 ? `{"status":${i}` : i < 40 ? jsonLine(i) : `level=info took=${i}ms n=${i % 3}`,
  }));
}

/** The rows of testdata/segment-v1-bounds.parquet, -codes, -texts and -blooms: the same with metadata. */
function goldenBoundRows(): Row[] {
  return goldenFieldRows().map((row, i) => ({ ...row, metadata: { user: `u${i % 7}` } }));
}

function jsonLine(i: number): string {
  const level = i % 4 ? "info" : "error";
  return JSON.stringify({ level, n: i % 5, http: { status: 200 + (i % 2) }, list: [i] });
}

/** The rows of testdata/segment-v1-digests.parquet: a stream with digests, and one with too few rows for them. */
export function goldenDigestedRows(): Row[] {
  return Array.from({ length: 60 }, (_, i) => ({
    labels: { app: i < 50 ? "api" : "web" },
    time: (i < 50 ? 2 * i : 60 * i) * 1_000_000_000,
    line: `GET /items/${i} 200`,
    metadata: i % 3 ? { trace_id: `t${i}`, detected_level: i % 2 ? "info" : "error" } : {},
  }));
}

/** The records of testdata/wal-v1-forward.bin: those of a head that was written again. */
export function goldenForward(): WalRecord[] {
  const [streams, , , , columns] = goldenRecords();
  if (streams === undefined || columns?.kind !== "push_columns") throw new Error("other records");
  return [streams, { ...columns, kind: "forward", heads: columns.heads.slice(1) }];
}

/**
 * Writes all golden files anew, for a new version of a format.
 *
 * @public
 */
export async function writeGolden(directory: string): Promise<void> {
  await writeWal(goldenRecords(), join(directory, "wal-v1.bin"));
  await writeWal(goldenForward(), join(directory, "wal-v1-forward.bin"));
  await writeRepairedWal(directory);
  const { memory, ...counts } = goldenHead().view();
  await writeFile(join(directory, "head-v1.bin"), new Uint8Array(memory));
  await writeFile(
    join(directory, "head-v1.json"),
    `${JSON.stringify({ ...counts, baseNs: String(counts.baseNs) }, null, 2)}\n`,
  );
  // testdata/segment-v1.parquet was written before segments had filters
  const golden = { tenant: "golden", id: "golden" };
  const path = join(directory, "segment-v1-filters.parquet");
  const heads = [headOf([goldenFilteredRows()], goldenBaseNs)];
  sealSegment({ ...golden, path, heads, filters: "ribbon" });
  const bitmaps = join(directory, "segment-v1-bitmaps.parquet");
  sealSegment({ ...golden, path: bitmaps, heads });
  const opened = openSegmentFile({ ...golden, location: { kind: "file", path: bitmaps } });
  const steps = mergeSegments({
    ...{ ...golden, path: join(directory, "segment-v1-sets.parquet") },
    inputs: [{ segment: opened.segment }],
    texts: ["GET", "took 1", "absent", "items/4"],
  });
  while (!steps.next().done);
  opened.close();
  // testdata/segment-v1-fields.parquet was written before columns of fields had bounds, segment-v1-bounds.parquet before they had
  // dictionaries, segment-v1-codes.parquet before metadata had them, and segment-v1-texts.parquet before ids had Bloom filters
  const withFields = join(directory, "segment-v1-blooms.parquet");
  sealSegment({ ...golden, path: withFields, heads: [headOf([goldenBoundRows()], goldenBaseNs)] });
  const source = openSegmentFile({ ...golden, location: { kind: "file", path: withFields } });
  const merge = mergeSegments({
    ...{ ...golden, path: withFields, inputs: [{ segment: source.segment }] },
    fields: { share: 1, asked: new Map() },
  });
  while (!merge.next().done);
  source.close();
  // testdata/day-v1.day was written before streams were counted, and day-v1-counts.day before rows were marked
  const day = goldenMarkedDay().encode({ generation: 44, writtenMs: 5 });
  await writeFile(join(directory, "day-v1-marks.day"), day);
  // testdata/segment-v1-digests.parquet and segment-v1-levels.parquet have the same rows, and were written before rows were marked
  sealSegment({
    ...{ ...golden, path: join(directory, "segment-v1-marks.parquet") },
    heads: [headOf([goldenDigestedRows()], goldenBaseNs)],
  });
}

/** The record of testdata/wal-v1.bin that is damaged in wal-v1-repaired.bin. */
export const goldenDamaged = 1;

/** The log as a replay leaves it that has met a damaged byte in its second record. */
async function writeRepairedWal(directory: string): Promise<void> {
  const dir = await mkdtemp(join(tmpdir(), "skald-golden-"));
  const path = walPath(dir, 1);
  const bytes = await readFile(join(directory, "wal-v1.bin"));
  const frames = new WalFrames(bytes);
  for (let i = 0; i < goldenDamaged; i++) frames.next();
  bytes[(frames.next()?.end as number) - 1]! ^= 1;
  await writeFile(path, bytes);
  await replayWal({ dir, onRecord: () => undefined, onDamage: () => undefined });
  await copyFile(path, join(directory, "wal-v1-repaired.bin"));
  await rm(dir, { recursive: true });
}

async function writeWal(records: readonly WalRecord[], path: string): Promise<void> {
  const dir = await mkdtemp(join(tmpdir(), "skald-golden-"));
  const wal = await Wal.open({
    dir,
    fsync: "never",
    fsyncIntervalMs: 0,
    maxFileBytes: 1 << 20,
    maxQueuedBytes: 1 << 20,
    diskFullThreshold: 0,
    onError: () => undefined,
  });
  await wal.append(records, () => undefined).written;
  await wal.close();
  await copyFile(join(dir, "00000001.wal"), path);
  await rm(dir, { recursive: true });
}
