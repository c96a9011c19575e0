import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { dayNs } from "@skald/model";
import { parquetMetadata } from "hyparquet";
import { openSegmentFile } from "../segment/read/reader.js";
import { fixtureBaseNs, headOf, type Row, rowsOf, sealedRows } from "../testing/seal-rows.js";
import { sealSegment } from "./seal.js";

let directory: string;
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), "skald-seal-"));
});
afterAll(() => rmSync(directory, { recursive: true }));

function seal(blocks: readonly (readonly Row[])[]) {
  const path = join(directory, "segment.parquet");
  const sealed = sealSegment({ tenant: "t", id: "s", path, heads: [headOf(blocks)] });
  const { segment, close } = openSegmentFile({
    id: "s",
    tenant: "t",
    location: { kind: "file", path },
  });
  const headers = Array.from({ length: segment.blockCount }, (_, b) => segment.header(b));
  const result = { sealed, rows: rowsOf(segment), headers };
  close();
  return result;
}

const labels = { app: "a" };
const row = (time: number, line: string | Uint8Array, metadata = {}): Row => ({
  labels,
  time,
  line,
  metadata,
});

describe("order", () => {
  it("keeps equal times in order of arrival", () => {
    const blocks = [
      [row(5, "b1"), row(5, "a"), row(7, "z")],
      [row(5, "b2"), row(3, "first"), row(7, "y"), row(5, "b3")],
    ];
    expect(seal(blocks).rows.map((r) => r.line)).toEqual([
      "first",
      "b1",
      "a",
      "b2",
      "b3",
      "z",
      "y",
    ]);
  });

  it("merges runs that overlap", () => {
    const every = (step: number, from: number) =>
      Array.from({ length: 500 }, (_, i) => row(from + i * step, `${from}/${i}`));
    const blocks = [every(3, 0), every(2, 1), every(5, 2), every(1, 700)];
    expect(seal(blocks).rows).toEqual(sealedRows(blocks.flat()));
  });

  it("sorts rows that came backwards", () => {
    const rows = Array.from({ length: 3000 }, (_, i) => row(3000 - i, String(i)));
    expect(seal([rows]).rows).toEqual(sealedRows(rows));
  });
});

describe("names of metadata", () => {
  it("get columns by the number of rows that have them", () => {
    const names = Array.from({ length: 40 }, (_, i) => `name_${String(i).padStart(2, "0")}`);
    const all = Object.fromEntries(names.map((name) => [name, "once"]));
    const often = { name_39: "often", name_38: "often" };
    const path = join(directory, "names.parquet");
    const heads = [headOf([[row(1, "a", all), row(2, "b", often), row(3, "c", often)]])];
    sealSegment({ tenant: "t", id: "s", path, heads });
    const { buffer, byteOffset, byteLength } = readFileSync(path);
    const file = buffer.slice(byteOffset, byteOffset + byteLength) as ArrayBuffer;
    const { schema } = parquetMetadata(file);
    const columns = schema.map(({ name }) => name).filter((name) => name.startsWith("name_"));
    expect(columns).toEqual([...names.slice(0, 30), "name_38", "name_39"]);
  });
});

describe("duplicates", () => {
  it("are dropped only when line and metadata are equal too", () => {
    const blocks = [
      [row(1, "a"), row(1, "a", { x: "1" }), row(1, "b"), row(2, "a")],
      [row(1, "a"), row(1, "a", { x: "1" }), row(1, "a", { x: "2" }), row(1, "a", { y: "1" })],
    ];
    const { rows, sealed } = seal(blocks);
    expect(rows).toEqual(sealedRows(blocks.flat()));
    expect(rows).toHaveLength(6);
    expect(sealed.rows).toBe(6);
  });

  it("are found when a push came twice", () => {
    const push = Array.from({ length: 400 }, (_, i) => row(i, `line ${i % 7}`, { id: String(i) }));
    const { rows } = seal([push, push, push]);
    expect(rows).toEqual(sealedRows(push));
  });

  it("are found among many rows of one time, in bounded work", () => {
    // Equal lengths and sampled bytes: only whole comparisons tell these lines apart.
    const line = (i: number) => `${"x".repeat(160)}`.replace(/^(.{5}).{4}/, `$1${1000 + i}`);
    const rows = Array.from({ length: 4000 }, (_, i) => row(9, line(i % 3000)));
    expect(new Set(rows.map((r) => r.line)).size).toBe(3000);
    const { rows: kept } = seal([rows]);
    expect(kept.map((r) => r.line)).toEqual(rows.slice(0, 3000).map((r) => r.line));
  });
});

describe("blocks", () => {
  it("end at 16 Ki rows", () => {
    const rows = Array.from({ length: 40_000 }, (_, i) => row(i, "x"));
    expect(seal([rows]).headers.map((h) => h.rowCount)).toEqual([16_384, 16_384, 7232]);
  });

  it("end at 256 KiB of lines, and give a longer line a block to itself", () => {
    const long = "y".repeat(300_000);
    const lines = [..."abcdefgh"].map((c) => c.repeat(100_000));
    const rows = [...lines.slice(0, 3), long, ...lines.slice(3)].map((line, i) => row(i, line));
    expect(seal([rows]).headers.map((h) => h.lineBytes)).toEqual([
      200_000, 100_000, 300_000, 200_000, 200_000, 100_000,
    ]);
  });

  it("end at 1 MiB of metadata", () => {
    const rows = Array.from({ length: 50 }, (_, i) => row(i, "x", { big: "m".repeat(60_000) + i }));
    const { headers, rows: back } = seal([rows]);
    expect(headers.map((h) => h.rowCount)).toEqual([17, 17, 16]);
    expect(back).toEqual(sealedRows(rows));
  });

  it("hold several streams, one run each", () => {
    const rows = Array.from({ length: 300 }, (_, i) => ({
      labels: { app: `a${i % 30}` },
      time: i,
      line: String(i),
    }));
    const { headers } = seal([rows]);
    expect(headers).toHaveLength(1);
    expect(headers[0]?.runs.count).toBe(30);
  });
});

describe("failure", () => {
  const path = () => join(directory, "failed.parquet");

  it("leaves nothing behind", () => {
    const head = headOf([[row(1, "a")]]);
    const bad = {
      ...head,
      blocks: head.blocks.map((block) => ({
        ...block,
        timestamps: () => Float64Array.of(Number.NaN),
      })),
    };
    expect(() => sealSegment({ tenant: "t", id: "s", path: path(), heads: [bad] })).toThrow("NaN");
    expect(existsSync(path())).toBe(false);
    expect(readdirSync(directory).filter((name) => name.endsWith(".tmp"))).toEqual([]);
  });

  it("is what no rows and rows of several days are", () => {
    const input = { tenant: "t", id: "s", path: path() };
    expect(() => sealSegment({ ...input, heads: [] })).toThrow("no rows");
    expect(() => sealSegment({ ...input, heads: [headOf([[]])] })).toThrow("no rows");
    const days = [headOf([[row(1, "a")]]), headOf([[row(1, "a")]], fixtureBaseNs + dayNs)];
    expect(() => sealSegment({ ...input, heads: days })).toThrow("several days");
  });
});

it("takes several heads with stream numbers of their own", () => {
  const one = [
    { labels: { app: "x" }, time: 3, line: "x3" },
    { labels: { app: "y" }, time: 1, line: "y1" },
  ];
  const two = [
    { labels: { app: "y" }, time: 0, line: "y0" },
    { labels: { app: "x" }, time: 3, line: "x3" },
  ];
  const path = join(directory, "heads.parquet");
  sealSegment({ tenant: "t", id: "s", path, heads: [headOf([one]), headOf([two])] });
  const { segment, close } = openSegmentFile({
    id: "s",
    tenant: "t",
    location: { kind: "file", path },
  });
  expect(rowsOf(segment)).toEqual(sealedRows([...one, ...two]));
  close();
});

describe("metadata of many names", () => {
  const names = (count: number, of: (i: number) => Record<string, string>) =>
    Array.from({ length: count }, (_, i) => row(i, "x", of(i)));

  it("makes blocks of few rows, so that no block takes much memory", () => {
    const rows = names(4000, (i) => ({ [`n${i % 3000}`]: "v", common: `${i}` }));
    const path = join(directory, "segment.parquet");
    const { rows: sealed, headers } = seal([rows.slice(0, 2500), rows.slice(2500)]);
    expect(sealed).toEqual(sealedRows(rows));
    const { segment, close } = openSegmentFile({
      id: "s",
      tenant: "t",
      location: { kind: "file", path },
    });
    const cells = headers.map(
      ({ rowCount }, block) => rowCount * segment.block(block).metadataNames().length,
    );
    close();
    expect(headers.length).toBe(4);
    expect(Math.max(...cells)).toBeLessThan(1.1 * 1024 * 1024);
  });

  it("keeps a row of many names whole, and its duplicates out", () => {
    const wide = (order: number) =>
      Object.fromEntries(
        Array.from({ length: 2000 }, (_, i) => [
          `n${(i * order) % 2003}`,
          `v${(i * order) % 2003}`,
        ]),
      );
    const other = { ...wide(1), n7: "another" };
    const rows = [row(1, "x", wide(1)), row(1, "x", wide(1)), row(1, "x", other), row(2, "x")];
    expect(seal([rows]).rows).toEqual(sealedRows(rows));
  });
});
