import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DuckDBInstance } from "@duckdb/node-api";
import { afterAll, describe, expect, it } from "@jest/globals";
import { seededRandom, testSeed } from "@skald/testkit";
import { parquetReadObjects } from "hyparquet";
import { mergeSegments } from "../../seal/merge-segments.js";
import { sealSegment } from "../../seal/seal.js";
import { goldenFieldRows, goldenPath } from "../../testing/golden.js";
import { headOf, type Row, rowsOf } from "../../testing/seal-rows.js";
import { zstd } from "../../zstd.js";
import { bytesRange } from "../range-reader.js";
import { openSegment } from "../read/reader.js";
import type { Segment } from "../segment.js";
import { asBytes } from "../spread.js";
import { describeSegment } from "../verify/describe-segment.js";
import { verifySegment } from "../verify/verify-segment.js";
import { maxFieldColumns } from "./fields.js";

const directory = mkdtempSync(join(tmpdir(), "skald-fields-"));
afterAll(() => rmSync(directory, { recursive: true }));

const identity = { id: "s", tenant: "t" };
const path = join(directory, "merged.parquet");
const none = new Map<string, number>();
const golden = { id: "golden", tenant: "golden" };

function merge(rows: readonly Row[], share: number, asked = none): Segment {
  const sealed = join(directory, "sealed.parquet");
  sealSegment({ ...identity, path: sealed, heads: [headOf([[...rows]])] });
  const inputs = [{ segment: openAt(sealed) }];
  const steps = mergeSegments({ ...identity, path, inputs, fields: { share, asked } });
  while (!steps.next().done);
  return openAt(path);
}

function openAt(file: string, id = identity): Segment {
  return openSegment(bytesRange(file, readFileSync(file)), id);
}

function rows(count: number, lineOf: (i: number) => string | Uint8Array, app = "a"): Row[] {
  return Array.from({ length: count }, (_, i) => ({ labels: { app }, time: i, line: lineOf(i) }));
}

/** Values of a field, row by row; undefined for an irregular row. */
function valuesOf(segment: Segment, name: string): (string | undefined)[] {
  return Array.from({ length: segment.blockCount }, (_, b) => {
    const block = segment.block(b);
    const fields = block.facts?.fields;
    const column = block.field?.(name);
    const values = column && asBytes(column);
    return Array.from({ length: block.rowCount }, (_, row) => {
      const word = fields?.irregular.words[row >> 5] ?? -1;
      if ((word >>> (row & 31)) & 1) return undefined;
      if (values === undefined) return "";
      const { bytes, offsets } = values;
      return Buffer.from(bytes.subarray(offsets[row], offsets[row + 1])).toString();
    });
  }).flat();
}

function damageOf(file: string): readonly { readonly message: string }[] {
  const steps = verifySegment(bytesRange("s", readFileSync(file)));
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value.damage;
  }
}

const sizes = (file = path) => describeSegment(bytesRange("s", readFileSync(file)));
const fieldBytes = () =>
  sizes().columns.reduce((sum, one) => sum + (/^fields/.test(one.name) ? one.storedBytes : 0), 0);

describe("columns of fields", () => {
  it("have what is in JSON and logfmt lines, and leave other lines to the parser", () => {
    const lines = [
      '{"level":"info","n":1,"http":{"status":200}}',
      '{"level":"warn","n":null,"list":[1],"http":{"status":"x"}}',
      '{"level":"info"',
      '{"level":"a\\"b","n":2}',
      '{"level":"größe","n":3}',
      '{"level":"","n":4}',
      `{"level":"${"x".repeat(300)}","n":5}`,
      '{"n":6,"n":7}',
      "no json",
    ];
    const many = rows(2000, (i) => (i % 200 < lines.length ? lines[i % 200]! : lines[0]!));
    const segment = merge(many, 1, new Map(["level", "n"].map((name) => [name, 9])));
    expect(segment.facts(0)?.fields?.names).toEqual(["http_status", "level", "n"]);
    const first = (name: string) => valuesOf(segment, name).slice(0, lines.length);
    const odd = undefined;
    expect(first("level")).toEqual(["info", "warn", odd, odd, odd, odd, odd, "", odd]);
    expect(first("n")).toEqual(["1", "", odd, odd, odd, odd, odd, "6", odd]);
    expect(first("http_status")).toEqual(["200", "x", odd, odd, odd, odd, odd, "", odd]);
    expect(damageOf(path)).toEqual([]);
  });

  it.each([
    ["n", true, '{"n":1}'],
    ["n", true, '{"a_b":{"n":2},"n":1}'],
    ["n", false, '{"n":[1]}'],
    ["n", false, '{"n":{"x":1}}'],
    ["n", false, '{"n":null}'],
    ["n", false, '{"x":1}'],
    ["n", false, '{"n":[1],"n":1}'],
    ["a_b", true, '{"a_b":1}'],
    ["a_b", false, '{"a":{"b":1}}'],
    ["a_b", false, '{"a.b":1}'],
    ["n", true, "n=1"],
    ["n", false, "n=1 n=2"],
    ["n", false, "x=1"],
    ["a_b", true, "a.b=1"],
  ])("are those of the key %s: %s, with a row like %s", (name, isKeyed, line) => {
    const usual = line.startsWith("{") ? '{"n":1,"a_b":1,"odd":' : "n=1 a_b=1 odd=";
    const end = line.startsWith("{") ? "}" : "";
    const lines = rows(300, (i) => (i === 7 ? line : `${usual}${i % 5}${end}`));
    const fields = merge(lines, 1).facts(0)?.fields;
    expect(fields?.names).toContain(name);
    expect(fields?.isKeyed(name)).toBe(isKeyed);
    expect(damageOf(path)).toEqual([]);
  });

  it("are told apart by stream, and are there for streams of either kind", () => {
    const segment = merge(
      [
        ...rows(300, (i) => `{"level":"info","a":${i % 3}}`, "json"),
        ...rows(300, (i) => `level=warn a=${i % 3} b="x y"`, "logfmt"),
        ...rows(300, () => "GET / HTTP/1.1", "none"),
      ],
      1,
    );
    const fields = segment.facts(0)?.fields;
    expect([0, 1, 2].map((stream) => fields?.familyOf(stream))).toEqual([1, 2, 0]);
    expect(valuesOf(segment, "level").filter((level) => level !== "")).toHaveLength(600);
    expect(valuesOf(segment, "b").filter((b) => b === "x y")).toHaveLength(300);
  });

  it("are those that are asked for, where the share allows few", () => {
    const line = (i: number) =>
      `{"id":"${(i * 2654435761) >>> 0}","constant":"c","other":${i % 7}}`;
    expect(merge(rows(9000, line), 0.12).facts(0)?.fields?.names).not.toContain("id");
    const asked = new Map([["id", 1000]]);
    expect(merge(rows(9000, line), 0.2, asked).facts(0)?.fields?.names).toContain("id");
    expect(merge(rows(9000, line), 0, asked).facts(0)).toBeUndefined();
  });

  it("hold their share whatever the lines are: names without end, long values, types that change", () => {
    const random = seededRandom(testSeed());
    const hostile: Record<string, (i: number) => string> = {
      names: (i) =>
        JSON.stringify({ [`n${i * 4}`]: 1, [`n${i * 4 + 1}`]: 2, [`m${random(1e5)}`]: 3 }),
      values: (i) => (i % 900 === 3 ? `{"v":"${"x".repeat(1_000_000)}"}` : '{"v":"y"}'),
      types: (i) => [`{"v":${i}}`, `{"v":"${i}"}`, `{"v":{"v":${i}}}`, '{"v":[]}'][i % 4]!,
      noise: () => `{"v":"${random(2 ** 31)}${random(2 ** 31)}","w":${random(2 ** 31)}}`,
    };
    for (const [name, lineOf] of Object.entries(hostile)) {
      const all = rows(25_000, lineOf);
      const lineBytes = all.reduce((sum, { line }) => sum + line.length, 0);
      const segment = merge(all, 0.012);
      expect([name, fieldBytes() <= lineBytes * 0.013 + 4096]).toEqual([name, true]);
      const { names = [] } = segment.facts(0)?.fields ?? {};
      expect(names.length).toBeLessThanOrEqual(maxFieldColumns);
    }
  }, 60_000);

  it("end before the last block where they turn out to take more than their share", () => {
    // 128 rows are a block, of which the sample has every sixth.
    const value = (i: number) => ((i % 128) % 6 === 0 ? 1e9 : 1e9 + ((i * 2654435761) >>> 3));
    const line = (i: number) =>
      `{"v":${String(value(i)).padEnd(10, "0").slice(0, 10)}}`.padEnd(2048);
    const segment = merge(rows(24_000, line), 0.0003);
    const covered = Array.from({ length: segment.blockCount }, (_, block) =>
      segment.facts(block)?.fields === undefined ? 0 : 1,
    );
    expect([covered[0], covered.at(-1)]).toEqual([1, 0]);
    const lineBytes = 24_000 * 2048;
    expect(fieldBytes()).toBeLessThan(lineBytes * 0.0003 + segment.blockCount * 64 + 2048);
    expect(damageOf(path)).toEqual([]);
  });

  it("are read by others", async () => {
    const segment = merge(
      rows(3000, (i) => `{"level":"${i % 3 ? "info" : "error"}","status":${200 + (i % 5)}}`),
      1,
    );
    const want = valuesOf(segment, "status");
    const objects = await parquetReadObjects({
      file: new Uint8Array(readFileSync(path)).buffer,
      compressors: { ZSTD: (stored, rawBytes) => zstd.decompress(stored, rawBytes) },
    });
    expect(objects.map(({ fields }) => fields.status)).toEqual(want);
    const connection = await (await DuckDBInstance.create(":memory:")).connect();
    const answer = await connection.runAndReadAll(
      `SELECT fields.level AS level, count(*)::INT AS n FROM '${path}' GROUP BY 1 ORDER BY 1`,
    );
    expect(answer.getRowObjects()).toEqual([
      { level: "error", n: 1000 },
      { level: "info", n: 2000 },
    ]);
  });

  it.each(["fields", "bounds", "codes", "texts", "blooms"])(
    "of the golden file with %s are read",
    (name) => {
      const file = goldenPath(`segment-v1-${name}.parquet`);
      const segment = openAt(file, golden);
      expect(rowsOf(segment)).toHaveLength(goldenFieldRows().length);
      expect(segment.facts(0)?.fields?.names).toEqual(["http_status", "level", "n", "took"]);
      expect(valuesOf(segment, "took").slice(38, 42)).toEqual(["", "", "40ms", "41ms"]);
      expect(valuesOf(segment, "http_status").slice(5, 9)).toEqual([
        "201",
        "200",
        undefined,
        "200",
      ]);
      expect(damageOf(file)).toEqual([]);
      const kindOf = (...coded: readonly string[]) =>
        coded.includes(name) ? "dictionary" : "bytes";
      const level = segment.block(0).field?.("level")?.kind;
      expect(level).toBe(kindOf("codes", "texts", "blooms"));
      const user = segment.block(0).metadata("user")?.kind;
      expect(user).toBe(name === "fields" ? undefined : kindOf("texts", "blooms"));
    },
  );

  it("are in no file that is older", () => {
    expect(openAt(goldenPath("segment-v1-sets.parquet"), golden).facts(0)?.fields).toBeUndefined();
  });

  it("have a dictionary for a row group, unless there are too many values for one", () => {
    const few = (i: number) => (i * 2654435761) % 4999;
    const many = (i: number) => (i * 2654435761) % 2 ** 31;
    const lineOf = (i: number) =>
      i % 7 === 0 ? `{"few":${few(i)}}` : `{"few":${few(i)},"many":${many(i)},"turns":${i >> 15}}`;
    const count = 110_000;
    const asked = new Map(["few", "many", "turns"].map((name) => [name, 9]));
    const segment = merge(rows(count, lineOf), 1, asked);
    const has = (i: number, value: number) => (i % 7 === 0 ? "" : String(value));
    const numbers = Array.from({ length: count }, (_, i) => i);
    expect(valuesOf(segment, "few")).toEqual(numbers.map((i) => String(few(i))));
    expect(valuesOf(segment, "many")).toEqual(numbers.map((i) => has(i, many(i))));
    expect(valuesOf(segment, "turns")).toEqual(numbers.map((i) => has(i, i >> 15)));
    const column = (block: number, name: string) => segment.block(block).field?.(name);
    const dictionaryOf = (block: number, name: string) => {
      const found = column(block, name);
      return found?.kind === "dictionary" ? found.dictionary : undefined;
    };
    expect(dictionaryOf(0, "few")?.offsets).toHaveLength(4999 + 2);
    expect(dictionaryOf(1, "few")).toBe(dictionaryOf(0, "few"));
    expect(column(0, "many")?.kind).toBe("bytes");
    expect(damageOf(path)).toEqual([]);
  });

  it("have none where a block has as many values as rows, even if they come again", () => {
    const lineOf = (i: number) => `{"id":${i % 14_000},"few":${i % 5000}}`;
    const asked = new Map(["id", "few"].map((name) => [name, 9]));
    const segment = merge(rows(60_000, lineOf), 1, asked);
    expect(segment.block(0).rowCount).toBeGreaterThan(5300);
    expect(segment.block(0).rowCount).toBeLessThan(14_000);
    expect(segment.block(0).field?.("few")?.kind).toBe("dictionary");
    expect(segment.block(0).field?.("id")?.kind).toBe("bytes");
    const values = rows(60_000, (i) => String(i % 14_000)).map(({ line }) => line);
    expect(valuesOf(segment, "id")).toEqual(values);
    expect(damageOf(path)).toEqual([]);
  });

  it("with a damaged dictionary are refused", () => {
    merge(
      rows(500, (i) => `{"level":"${i % 3 ? "info" : "warning"}"}`),
      1,
    );
    const file = readFileSync(path);
    // The first value of the dictionary stands behind its length.
    const at = file.indexOf(Buffer.from("\x07\0\0\0warning", "latin1"));
    expect(at).toBeGreaterThan(0);
    file[at + 4]! ^= 1;
    const segment = openSegment(bytesRange("damaged", file), identity);
    expect(() => asBytes(segment.block(0).field!("level")!)).toThrow(
      /the dictionary of fields.level, at byte \d+ does not match its checksum/,
    );
  });
});
