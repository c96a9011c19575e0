import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type DuckDBConnection, DuckDBInstance } from "@duckdb/node-api";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { type BytesColumn, paddingBytes } from "@skald/model";
import { parquetMetadata, parquetReadObjects } from "hyparquet";
import { BloomFilter } from "../../parquet/bloom-filter.js";
import { encodeFooter, encodePageIndexes, type RowGroupSummary } from "../../parquet/footer.js";
import { mergeSegments } from "../../seal/merge-segments.js";
import { sealSegment } from "../../seal/seal.js";
import { headOf, type Row } from "../../testing/seal-rows.js";
import { zstd } from "../../zstd.js";
import { bytesRange } from "../range-reader.js";
import { openSegment } from "../read/reader.js";
import { describeSegment } from "../verify/describe-segment.js";
import { verifySegment } from "../verify/verify-segment.js";
import { BytesColumnWriter } from "./columns.js";

const directory = mkdtempSync(join(tmpdir(), "skald-blooms-"));
let connection: DuckDBConnection;
beforeAll(async () => {
  connection = await (await DuckDBInstance.create(":memory:")).connect();
});
afterAll(() => {
  connection.closeSync();
  rmSync(directory, { recursive: true });
});

const identity = { id: "s", tenant: "t" };
const idOf = (i: number) => (BigInt(i) * 0x9e3779b97f4a7c15n).toString(16).padStart(24, "0");
const ids = (from: number, to: number) =>
  Array.from({ length: to - from }, (_, i) => idOf(from + i));

async function query(sql: string): Promise<Record<string, unknown>[]> {
  return (await connection.runAndReadAll(sql)).getRowObjects();
}

function columnOf(values: readonly string[]): BytesColumn {
  const offsets = new Uint32Array(values.length + 1);
  values.forEach((value, i) => {
    offsets[i + 1] = offsets[i]! + value.length;
  });
  return { bytes: Buffer.from(values.join("") + " ".repeat(paddingBytes)), offsets };
}

function filterOf(values: readonly string[]): Uint8Array | undefined {
  const filter = new BloomFilter();
  filter.add(columnOf(values), values.length);
  return filter.seal();
}

describe("a bloom filter", () => {
  /** Probes of DuckDB are for columns of no struct, which segments do not have: a file of one column, a row group for each list. */
  it("is read by duckdb, and excludes what is absent", async () => {
    const lists = [ids(0, 1), ids(10, 40), ids(100, 1500), ids(2000, 9000)];
    const path = join(directory, "flat.parquet");
    const parts: Uint8Array[] = [Buffer.from("PAR1")];
    let at = 4;
    const put = (...bytes: readonly Uint8Array[]) => {
      const from = at;
      parts.push(...bytes);
      for (const { length } of bytes) at += length;
      return from;
    };
    const rowGroups = lists.map((list): RowGroupSummary => {
      const writer = new BytesColumnWriter({ level: 0, optional: false });
      writer.addBlock(columnOf(list), list.length);
      const chunk = writer.chunk.seal();
      const offset = put(...chunk.parts.map((part) => Uint8Array.from(part)));
      const bytes = filterOf(list)!;
      const bloom = { offset: put(bytes), length: bytes.length };
      const chunks = [{ ...chunk, offset, indexed: false, bloom }];
      return { rowCount: list.length, chunks, sortedBy: [] };
    });
    const { bytes, places } = encodePageIndexes(rowGroups, at);
    const footer = encodeFooter(
      {
        schema: [{ kind: "text", name: "id", optional: false, utf8: true }],
        rowCount: lists.flat().length,
        rowGroups,
        keyValues: [],
        createdBy: "test",
      },
      places,
    );
    const length = Buffer.alloc(4);
    length.writeUInt32LE(footer.length);
    put(bytes, footer, length, Buffer.from("PAR1"));
    writeFileSync(path, Buffer.concat(parts));

    const excluded = async (value: string) => {
      const sql = `SELECT bloom_filter_excludes AS x FROM parquet_bloom_probe('${path}', 'id', '${value}') ORDER BY row_group_id`;
      return (await query(sql)).map(({ x }) => x);
    };
    for (const [group, list] of lists.entries())
      for (const value of [list[0]!, list.at(-1)!, list[list.length >> 1]!]) {
        const others = (await excluded(value)).filter((_, i) => i !== group);
        expect((await excluded(value))[group]).toBe(false);
        expect(others.filter((x) => x === true).length).toBeGreaterThanOrEqual(2);
      }
    let count = 0;
    for (const value of ids(20_000, 20_100))
      count += (await excluded(value)).filter((x) => x === true).length;
    // Of 400. At least eight bits a value leave 2 % of what is absent.
    expect(count).toBeGreaterThan(388);
    for (const value of [idOf(5), idOf(1000), "x"]) {
      const [row] = await query(`SELECT count(*)::INT AS n FROM '${path}' WHERE id = '${value}'`);
      expect([value, row?.n]).toEqual([value, value === idOf(1000) ? 1 : 0]);
    }
  });

  it.each([
    [0, 32],
    [1, 32],
    [32, 32],
    [33, 64],
    [1000, 1024],
    [1100, 2048],
  ])("has a power of two of bytes, for %d values %d", (values, bytes) => {
    const size = (list: readonly string[]) => Buffer.from(filterOf(list)!).length;
    const header = size([]) - 32;
    expect(header).toBeLessThan(24);
    expect(Math.abs(size(ids(0, values)) - bytes)).toBeLessThan(24);
    const repeated = ids(0, values).flatMap((id) => [id, "", id, id]);
    expect(size(repeated)).toBe(size(ids(0, values)));
  });

  it("is left out where values are more than it may have bits for", () => {
    const filter = new BloomFilter();
    for (let from = 0; from < 600_000; from += 50_000)
      filter.add(columnOf(ids(from, from + 50_000)), 50_000);
    expect(filter.seal()).toBeUndefined();
  });
});

describe("a merged segment", () => {
  const path = join(directory, "merged.parquet");
  const sealed = join(directory, "sealed.parquet");
  const count = 7000;
  /** Two row groups of 192 blocks and less; the stream `second` is in both. */
  const rows: Row[] = Array.from({ length: count }, (_, i) => ({
    labels: { app: i < 5000 ? "first" : "second" },
    time: i * 1000,
    line: `{"span":"${idOf(i + 500_000)}","kind":"k${i % 3}","text":"${"x".repeat(8100)}"}`,
    metadata: {
      ...(i < 5000 ? { trace_id: idOf(i) } : { span_id: idOf(i) }),
      detected_level: i % 5 ? "info" : "error",
    },
  }));
  beforeAll(() => {
    merge(rows, path);
  });

  function merge(rows: readonly Row[], path: string): void {
    sealSegment({ ...identity, path: sealed, heads: [headOf([rows])] });
    const segment = openSegment(bytesRange(sealed, readFileSync(sealed)), identity);
    const steps = mergeSegments({
      ...{ ...identity, path, inputs: [{ segment }] },
      fields: { share: 1, asked: new Map([["span", 9]]) },
    });
    while (!steps.next().done);
  }

  const bloomsOf = async (file: string) =>
    query(
      `SELECT path_in_schema AS name, list(bloom_filter_length ORDER BY row_group_id)::VARCHAR AS lengths FROM parquet_metadata('${file}')
       WHERE bloom_filter_offset IS NOT NULL GROUP BY 1 ORDER BY 1`,
    );

  it("has filters of columns without a dictionary, which a sealed one has not", async () => {
    expect(await bloomsOf(sealed)).toEqual([]);
    // An empty one where a row group has no value.
    expect(await bloomsOf(path)).toEqual([
      { name: "fields, span", lengths: "[8209, 1040]" },
      { name: "metadata, span_id", lengths: "[2064, 1040]" },
      { name: "metadata, trace_id", lengths: "[8209, 47]" },
    ]);
    const { parts } = describeSegment(bytesRange(path, readFileSync(path)));
    const size = 8209 + 1040 + 2064 + 1040 + 8209 + 47;
    expect(parts[1]).toEqual({
      name: "bloom filters of columns",
      storedBytes: size,
      rawBytes: size,
    });
  });

  it("lets hyparquet read the row groups that can have a value, and no other", async () => {
    const bytes = readFileSync(path);
    const metadata = parquetMetadata(Uint8Array.from(bytes).buffer);
    const groupOf = (offset: number) =>
      metadata.row_groups.findLastIndex((group) => {
        return Number(group.columns[0]?.meta_data?.data_page_offset) <= offset;
      });
    const read = async (name: string, id: string) => {
      const groups = new Set<number>();
      const file = {
        byteLength: bytes.length,
        slice(from: number, to = bytes.length) {
          if (to - from > 16_384) groups.add(groupOf(from));
          return Uint8Array.from(bytes.subarray(from, to)).buffer;
        },
      };
      const found = await parquetReadObjects({
        ...{ file, metadata, useBloomFilters: true, columns: ["line", "metadata", "fields"] },
        filter: { [name]: { $eq: id } },
        compressors: { ZSTD: (stored, rawBytes) => zstd.decompress(stored, rawBytes) },
      });
      return { rows: found.length, groups: [...groups] };
    };
    for (const i of [0, 1, 4999])
      expect(await read("metadata.trace_id", idOf(i))).toEqual({ rows: 1, groups: [0] });
    for (const [i, group] of [
      [5000, 0],
      [count - 1, 1],
    ] as const) {
      const found = { rows: 1, groups: [group] };
      expect(await read("metadata.span_id", idOf(i))).toEqual(found);
      expect(await read("fields.span", idOf(i + 500_000))).toEqual(found);
    }
    expect(await read("metadata.trace_id", idOf(900_000))).toEqual({ rows: 0, groups: [] });
  });

  it("has all values in a filter that began as a dictionary", async () => {
    const large = join(directory, "large.parquet");
    const many = ids(0, 20_000);
    // Each twice, as the dictionary of a column whose values never come again is given up before it is full.
    const rows = many.flatMap((id, i) =>
      [0, 1].map((again) => ({ labels: {}, time: 2 * i + again, line: "", metadata: { id } })),
    );
    merge(rows, large);
    const file = Uint8Array.from(readFileSync(large)).buffer;
    const metadata = parquetMetadata(file);
    for (const i of [0, 16_383, 16_384, 16_385, 19_999]) {
      const filter = { "metadata.id": { $eq: many[i] } };
      const compressors = { ZSTD: zstd.decompress.bind(zstd) };
      const options = { file, metadata, useBloomFilters: true, compressors, columns: ["metadata"] };
      expect([i, await parquetReadObjects({ ...options, filter })]).toMatchObject([i, [{}, {}]]);
    }
    expect(await bloomsOf(large)).toEqual([{ name: "metadata, id", lengths: "[32785]" }]);
  });

  it("names a damaged filter", () => {
    const bytes = readFileSync(path);
    const { row_groups } = parquetMetadata(Uint8Array.from(bytes).buffer);
    const chunk = row_groups[1]?.columns.find(
      ({ meta_data }) => meta_data?.path_in_schema.join(".") === "fields.span",
    );
    const damageOf = () => {
      const steps = verifySegment(bytesRange("s", bytes));
      for (;;) {
        const step = steps.next();
        if (step.done === true) return step.value.damage;
      }
    };
    expect(damageOf()).toEqual([]);
    bytes[Number(chunk?.meta_data?.bloom_filter_offset) + 100]! ^= 1;
    expect(damageOf()).toMatchObject([{ part: "column fields.span, bloom filter" }]);
  });
});
