import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type DuckDBConnection, DuckDBInstance } from "@duckdb/node-api";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { formatLabels, labelsFromObject, parseStreamText } from "@skald/model";
import { parquetMetadata, parquetReadObjects } from "hyparquet";
import { sealSegment } from "../seal/seal.js";
import {
  fixtureBaseNs,
  headOf,
  type PlainRow,
  type Row,
  rowsOf,
  sealedRows,
} from "../testing/seal-rows.js";
import { zstd } from "../zstd.js";
import { openSegmentFile } from "./read/reader.js";

let directory: string;
let database: DuckDBInstance;
let connection: DuckDBConnection;
beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), "skald-oracle-"));
  database = await DuckDBInstance.create(":memory:");
  connection = await database.connect();
});
afterAll(() => {
  connection.closeSync();
  database.closeSync();
  rmSync(directory, { recursive: true });
});

const cases: { name: string; rows: Row[]; rowGroups: number }[] = [
  { name: "one row without labels", rows: [{ labels: {}, time: 0, line: "" }], rowGroups: 1 },
  { name: "mixed labels and metadata", rows: mixedRows(700), rowGroups: 1 },
  { name: "more names than columns", rows: manyNames(200), rowGroups: 1 },
  { name: "several row groups", rows: longLines(6400), rowGroups: 2 },
  { name: "lines that are not utf-8", rows: binaryLines(300), rowGroups: 1 },
  { name: "blocks of 1, 31, 32, 33, 128, 129 and 257 rows", rows: runLengths(), rowGroups: 1 },
];

describe.each(cases)("$name", ({ rows, rowGroups }) => {
  let path: string;
  let ours: PlainRow[];
  beforeAll(() => {
    path = join(directory, `${cases.findIndex((one) => one.rows === rows)}.parquet`);
    sealSegment({ tenant: "t", id: "s", path, heads: [headOf([rows])] });
    const location = { kind: "file", path } as const;
    const { segment, close } = openSegmentFile({ id: "s", tenant: "t", location });
    ours = rowsOf(segment);
    close();
  });

  it("reads back by our reader", () => {
    expect(ours).toEqual(sealedRows(rows));
  });

  it("reads the same through hyparquet", async () => {
    const file = new Uint8Array(readFileSync(path)).buffer;
    expect(parquetMetadata(file).row_groups.length).toBe(rowGroups);
    expect(await hyparquetRows(file)).toEqual(ours);
  });

  it("reads the same through hyparquet's page indexes", async () => {
    const file = new Uint8Array(readFileSync(path)).buffer;
    const from = Math.floor(ours.length / 2);
    const to = Math.min(from + 10, ours.length);
    expect(await hyparquetRows(file, { rowStart: from, rowEnd: to, useOffsetIndex: true })).toEqual(
      ours.slice(from, to),
    );
  });

  it("reads the same through duckdb", async () => {
    expect(await duckdbRows(path)).toEqual(
      ours.map((row) => ({ ...row, time: Math.floor(row.time / 1000) * 1000 })),
    );
  });

  it("has bounds that duckdb prunes by", async () => {
    const times = ours.map((row) => row.time);
    const base = fixtureBaseNs / 1000n;
    const [stats] = await query(
      `SELECT min(epoch_us(timestamp)) AS least, max(epoch_us(timestamp)) AS most FROM '${path}'`,
    );
    expect(stats?.least).toBe(base + BigInt(Math.floor(Math.min(...times) / 1000)));
    expect(stats?.most).toBe(base + BigInt(Math.floor(Math.max(...times) / 1000)));
    if (rowGroups > 1) return;
    const columns = await query(
      `SELECT * FROM parquet_metadata('${path}') WHERE starts_with(path_in_schema, 'labels,')`,
    );
    if (columns.length === 0) return;
    const names = columns.map((column) => String(column.path_in_schema).slice("labels, ".length));
    const counts = names.map((name, i) => `count(*) - count("labels"."${name}") AS nulls_${i}`);
    const [counted] = await query(`SELECT ${counts.join(", ")} FROM '${path}'`);
    for (const [i, column] of columns.entries())
      expect(counted?.[`nulls_${i}`]).toBe(column.stats_null_count);
  });

  it("has bounds of its metadata, as far as they are short", async () => {
    const columns = await query(
      `SELECT path_in_schema, min(stats_min_value) AS min, max(stats_max_value) AS max FROM parquet_metadata('${path}')
       WHERE starts_with(path_in_schema, 'metadata,') GROUP BY 1`,
    );
    for (const { path_in_schema, min, max } of columns) {
      const name = String(path_in_schema).slice("metadata, ".length);
      const [own] = await query(
        `SELECT min(metadata."${name}") AS min, max(metadata."${name}") AS max FROM '${path}'`,
      );
      expect([name, min, max]).toEqual([name, own?.min, own?.max]);
    }
  });

  it("says how its rows are sorted, where labels and time tell", () => {
    const { row_groups, schema } = parquetMetadata(new Uint8Array(readFileSync(path)).buffer);
    const leaves = schema.filter(({ type }) => type !== undefined).map(({ name }) => name);
    const hasLabelsMore = ours.some(({ text }) => text.includes("LABEL_"));
    const labels = new Set(ours.flatMap(({ text }) => parseStreamText(text).names));
    for (const { sorting_columns } of row_groups) {
      const stated = sorting_columns?.map(({ column_idx }) => leaves[column_idx]);
      expect(stated).toEqual(hasLabelsMore ? undefined : [...[...labels].sort(), "timestamp"]);
      expect(sorting_columns?.some((one) => one.nulls_first || one.descending)).not.toBe(true);
    }
    const keys = ours.map(({ text, time }) => {
      const { names, values } = parseStreamText(text);
      const ofLabel = (name: string) => values[names.indexOf(name)] ?? "~";
      return [...[...labels].sort().map(ofLabel), String(time).padStart(15, "0")].join("\0");
    });
    if (!hasLabelsMore) expect(keys).toEqual([...keys].sort());
  });
});

it("does not say that rows are sorted by label where the texts of streams have another order", () => {
  const path = join(directory, "order.parquet");
  const rows = ["a", "a b", "a!"].map((app, time) => ({ labels: { app }, time, line: app }));
  const other = [...rows, { labels: { app: "a", pod: "p" }, time: 0, line: "pod" }];
  for (const [all, isSorted] of [
    [rows.slice(0, 1), true],
    [rows, false],
    [other, false],
  ] as const) {
    sealSegment({ tenant: "t", id: "s", path, heads: [headOf([[...all]])] });
    const { row_groups } = parquetMetadata(new Uint8Array(readFileSync(path)).buffer);
    expect([all.length, row_groups[0]?.sorting_columns !== undefined]).toEqual([
      ...[all.length, isSorted],
    ]);
  }
});

it("has dictionaries of metadata with few values", async () => {
  const path = join(directory, "dictionaries.parquet");
  sealSegment({ tenant: "t", id: "s", path, heads: [headOf([mixedRows(700)])] });
  const chunks = await query(
    `SELECT path_in_schema AS name, encodings FROM parquet_metadata('${path}') WHERE starts_with(path_in_schema, 'metadata,') ORDER BY 1`,
  );
  expect(chunks).toEqual([
    { name: "metadata, detected_level", encodings: "PLAIN, RLE, RLE_DICTIONARY" },
    { name: "metadata, trace_id", encodings: "RLE, DELTA_LENGTH_BYTE_ARRAY" },
    { name: "metadata, user", encodings: "RLE, DELTA_LENGTH_BYTE_ARRAY" },
  ]);
});

it.each([
  ["few", 2],
  ["many", 100],
])("says that a column of %s values is plain bytes when one is not UTF-8", async (name, values) => {
  const path = join(directory, `${name}.parquet`);
  const rows = Array.from({ length: 100 }, (_, i) => {
    return { labels: {}, time: i, line: "", metadata: { odd: `v${i % values}`, even: "ü" } };
  });
  const head = headOf([rows]);
  const odd = head.blocks[0]?.metadata("odd");
  if (odd?.kind !== "bytes") throw new Error("other column");
  odd.bytes[0] = 0xff;
  sealSegment({ tenant: "t", id: "s", path, heads: [head] });
  const [row] = await query(
    `SELECT typeof(metadata.odd) AS odd, typeof(metadata.even) AS even FROM '${path}' LIMIT 1`,
  );
  expect(row).toEqual({ odd: "BLOB", even: "VARCHAR" });
});

it("leaves out bounds of long values", async () => {
  const path = join(directory, "long.parquet");
  const rows = ["x".repeat(70), "a"].map((v, time) => ({
    ...{ labels: {}, time, line: "", metadata: { long: v, short: String(time) } },
  }));
  sealSegment({ tenant: "t", id: "s", path, heads: [headOf([rows])] });
  const bounds = await query(
    `SELECT path_in_schema AS name, stats_min_value AS min, stats_max_value AS max FROM parquet_metadata('${path}')
     WHERE starts_with(path_in_schema, 'metadata,') ORDER BY 1`,
  );
  expect(bounds).toEqual([
    { name: "metadata, long", min: null, max: null },
    { name: "metadata, short", min: "0", max: "1" },
  ]);
});

it("has at least 100,000 rows in a row group, where its lines are short", () => {
  const path = join(directory, "short.parquet");
  const line = "x".repeat(250);
  const lists = Array.from({ length: 15 }, (_, list) =>
    Array.from({ length: 10_000 }, (_, row) => {
      return { labels: { app: "a" }, time: list * 10_000 + row, line };
    }),
  );
  sealSegment({ tenant: "t", id: "s", path, heads: [headOf(lists)] });
  const { row_groups } = parquetMetadata(new Uint8Array(readFileSync(path)).buffer);
  expect(row_groups.map(({ num_rows }) => num_rows >= 100_000n)).toEqual([true, false]);
});

it("lets duckdb filter by label and time over files with other labels", async () => {
  const one = join(directory, "union-1.parquet");
  const two = join(directory, "union-2.parquet");
  const heads = (label: string) => [
    headOf([[{ labels: { [label]: "x", env: "p" }, time: 5_000, line: label }]]),
  ];
  sealSegment({ tenant: "t", id: "1", path: one, heads: heads("app") });
  sealSegment({ tenant: "t", id: "2", path: two, heads: heads("pod") });
  const rows = await query(
    `SELECT line FROM read_parquet(['${one}', '${two}'], union_by_name = true)
     WHERE labels.pod = 'x' AND timestamp >= to_timestamp(${Number(fixtureBaseNs / 10n ** 9n)})`,
  );
  expect(rows).toEqual([{ line: "pod" }]);
});

async function hyparquetRows(
  file: ArrayBuffer,
  options: { rowStart?: number; rowEnd?: number; useOffsetIndex?: boolean } = {},
): Promise<PlainRow[]> {
  const rows = await parquetReadObjects({
    file,
    ...options,
    // Columns that are no String come as bytes.
    utf8: false,
    compressors: { ZSTD: (stored, rawBytes) => zstd.decompress(stored, rawBytes) },
    parsers: { timestampFromNanoseconds: (ns: bigint) => ns },
  });
  return rows.map((row) =>
    plain({
      labels: row.labels,
      labelsMore: Object.fromEntries(entriesOf(row.labels_more)),
      metadata: row.metadata,
      metadataMore: Object.fromEntries(entriesOf(row.metadata_more)),
      time: Number((row.timestamp as bigint) - fixtureBaseNs),
      line: Buffer.from(row.line as string | Uint8Array as string).toString("latin1"),
    }),
  );
}

/** A map as hyparquet gives it: an object, or a list of pairs. */
function entriesOf(map: unknown): [string, unknown][] {
  if (map === undefined || map === null) return [];
  if (Array.isArray(map)) return map.map((pair) => [pair.key as string, pair.value]);
  return Object.entries(map as object);
}

async function duckdbRows(path: string): Promise<PlainRow[]> {
  const columns = await query(`DESCRIBE SELECT * FROM '${path}'`);
  const has = (name: string) => columns.some((column) => column.column_name === name);
  const lineType = columns.find((column) => column.column_name === "line")?.column_type;
  const json = (name: string) => (has(name) ? `to_json(${name})::VARCHAR` : "'{}'");
  const rows = await query(
    `SELECT epoch_us(timestamp) AS us, ${lineType === "BLOB" ? "hex(line)" : "hex(encode(line))"} AS line,
            ${json("labels")} AS labels, ${json("labels_more")} AS labels_more,
            ${json("metadata")} AS metadata, ${json("metadata_more")} AS metadata_more
     FROM '${path}'`,
  );
  return rows.map((row) =>
    plain({
      labels: JSON.parse(row.labels as string),
      labelsMore: JSON.parse(row.labels_more as string),
      metadata: JSON.parse(row.metadata as string),
      metadataMore: JSON.parse(row.metadata_more as string),
      time: Number((row.us as bigint) * 1000n - fixtureBaseNs),
      line: Buffer.from(row.line as string, "hex").toString("latin1"),
    }),
  );
}

async function query(sql: string): Promise<Record<string, unknown>[]> {
  return (await connection.runAndReadAll(sql)).getRowObjects();
}

interface ForeignRow {
  labels: Record<string, unknown> | undefined;
  labelsMore: Record<string, unknown>;
  metadata: Record<string, unknown> | undefined;
  metadataMore: Record<string, unknown>;
  time: number;
  line: string;
}

function plain(row: ForeignRow): PlainRow {
  return {
    text: formatLabels(labelsFromObject(present({ ...row.labels, ...row.labelsMore }))),
    time: row.time,
    line: row.line,
    metadata: present({ ...row.metadata, ...row.metadataMore }),
  };
}

function present(values: Record<string, unknown>): Record<string, string> {
  const text = (value: unknown) =>
    value instanceof Uint8Array ? Buffer.from(value).toString("utf8") : String(value);
  return Object.fromEntries(
    Object.entries(values)
      .filter(([, value]) => value !== null && value !== undefined)
      .map(([name, value]) => [name, text(value)]),
  );
}

function mixedRows(count: number): Row[] {
  return Array.from({ length: count }, (_, i) => ({
    labels: { app: `app-${i % 7}`, ...(i % 3 === 0 ? { env: i % 2 ? "prod" : "dev" } : {}) },
    time: i % 5 === 0 ? i * 1e9 : 86_399_999_000_000 - i * 1e6,
    line: i % 11 === 0 ? "" : `level=info msg="größe ${"x".repeat(i % 90)}" n=${i}`,
    metadata: {
      ...(i % 2 === 0 ? { trace_id: (i * 7919).toString(16).padStart(32, "0") } : {}),
      ...(i % 13 === 0 ? { user: `u${i}` } : {}),
      detected_level: ["info", "warn", "error"][i % 3]!,
    },
  }));
}

function manyNames(count: number): Row[] {
  return Array.from({ length: count }, (_, i) => ({
    labels: Object.fromEntries([
      ["app", `a${i % 3}`],
      [`label_${i % 70}`, `v${i}`],
      [`LABEL_${i % 5}`, "upper"],
    ]),
    time: i,
    line: `line ${i}`,
    metadata: Object.fromEntries([
      [`name_${i % 45}`, `value ${i}`],
      [`Name_${i % 4}`, "ü"],
      ...(i % 3 === 0 ? [["every_third", String(i)]] : []),
    ]),
  }));
}

function longLines(count: number): Row[] {
  return Array.from({ length: count }, (_, i) => ({
    labels: { app: `app-${i % 40}`, pod: `pod-${i % 600}` },
    time: i * 1e6 + (i % 3),
    line: `${i} ${"the quick brown fox ".repeat(400)}`,
    metadata: i % 40 === 7 ? { user: `u${i}` } : {},
  }));
}

function binaryLines(count: number): Row[] {
  return Array.from({ length: count }, (_, i) => ({
    labels: { app: "bin" },
    time: i * 1000,
    line: Uint8Array.of(i & 0xff, 0xff, 0xc3, i % 7),
  }));
}

function runLengths(): Row[] {
  return [1, 31, 32, 33, 128, 129, 257].flatMap((count, stream) =>
    Array.from({ length: count }, (_, i) => ({
      labels: { app: `s${stream}` },
      time: i * 1000 + stream,
      line: "x".repeat(i % 40),
    })),
  );
}
