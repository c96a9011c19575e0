import { describe, expect, it } from "@jest/globals";
import { type LogResult, linesOf, type QueryResult, type RowLabels } from "@skald/logql";
import { emptyReadStats, labelsFromObject, type QueryStats } from "@skald/model";
import fc from "fast-check";
import { encodeLegacyNaively, encodeNaively } from "../testing/naive-json.js";
import { encodeLegacyStreams, encodeList, encodeQueryResult, encodeSeries } from "./json.js";
import { jsonText, type Pieces, pieceBytes } from "./pieces.js";

const stats: QueryStats = {
  ingester: emptyReadStats(),
  store: emptyReadStats(),
  ingestersReached: 1,
  streams: 1,
  execSeconds: 0,
  queueSeconds: 0,
  entriesReturned: 1,
  shards: 1,
};

const word = fc.string({
  unit: fc.constantFrom(
    "a",
    "B",
    " ",
    '"',
    "\\",
    "<",
    "&",
    "\n",
    "\u0001",
    "\u2028",
    "\ufeff",
    "ü",
    "😀",
  ),
  maxLength: 12,
});
const labels = fc
  .dictionary(fc.constantFrom("app", "env", "trace_id", "__proto", "ü"), word, { maxKeys: 3 })
  .map(labelsFromObject);
const rowLabels: fc.Arbitrary<RowLabels> = fc.record({
  labels,
  categories: fc.record({ stream: labels, structuredMetadata: labels, parsed: labels }),
});
/** Lines of any bytes, some longer than a piece, whose borders then lie anywhere in them. */
const line = fc.oneof(
  { weight: 8, arbitrary: word.map((text) => new TextEncoder().encode(text)) },
  { weight: 2, arbitrary: fc.uint8Array({ maxLength: 40 }) },
  {
    weight: 1,
    arbitrary: fc
      .tuple(word, fc.integer({ min: 60_000, max: 140_000 }))
      .map(([text, size]) => new TextEncoder().encode(text.padEnd(size, text === "" ? "x" : text))),
  },
);

const logs: fc.Arbitrary<LogResult> = fc
  .record({
    sets: fc.array(rowLabels, { minLength: 1, maxLength: 4 }),
    rows: fc.array(fc.tuple(fc.nat(), line, fc.bigInt({ min: 0n, max: 2n ** 62n })), {
      maxLength: 30,
      size: "max",
    }),
    warnings: fc.array(word, { maxLength: 1 }),
  })
  .map(({ sets, rows, warnings }) => {
    // Lines lie in two columns, from the last to the first.
    const half = rows.length >> 1;
    const bytes = rows.map(([, one]) => one).reverse();
    return {
      kind: "streams",
      rowCount: rows.length,
      timestamps: BigInt64Array.from(rows, ([, , time]) => time),
      labelSet: Uint32Array.from(rows, ([set]) => set % sets.length),
      lines: {
        columns: [columnOf(bytes.slice(0, half)), columnOf(bytes.slice(half))],
        column: Uint32Array.from(bytes, (_, i) => (i < half ? 0 : 1)).reverse(),
        value: Uint32Array.from(bytes, (_, i) => (i < half ? i : i - half)).reverse(),
      },
      labels: sets,
      warnings,
    };
  });

const value = fc.oneof(fc.double(), fc.integer());
const matrix: fc.Arbitrary<QueryResult> = fc
  .record({
    kind: fc.constant("matrix" as const),
    points: fc.constant({ startNs: 1_700_000_000_123_000_000n, stepNs: 250_000_000n, count: 9000 }),
    series: fc.array(
      fc.record({
        labels,
        values: fc.oneof(
          fc.array(value, { maxLength: 5 }).map((all) => Float64Array.from(all)),
          fc.integer({ min: 2000, max: 9000 }).map((n) => new Float64Array(n).fill(0.1)),
        ),
      }),
      { maxLength: 4 },
    ),
    warnings: fc.array(word, { maxLength: 2 }),
  })
  .map((result) => ({
    ...result,
    series: result.series.map((one) => ({ ...one, at: Uint32Array.from(one.values, (_, i) => i) })),
  }));
const vector: fc.Arbitrary<QueryResult> = fc.record({
  kind: fc.constant("vector" as const),
  atNs: fc.constant(1_700_000_000_123_456_789n),
  samples: fc.array(fc.record({ labels, value }), { maxLength: 20 }),
  warnings: fc.constant([]),
});
const scalar: fc.Arbitrary<QueryResult> = value.map((one) => ({
  kind: "scalar",
  atNs: 1_700_000_000_123_456_789n,
  value: one,
  warnings: [],
}));

const run = { seed: Number(process.env.SEED ?? 1_700_006_403), numRuns: 25 };

function joined(pieces: Pieces): string {
  const all = [...pieces];
  for (const { length } of all) {
    expect(length).toBeGreaterThan(0);
    expect(length).toBeLessThanOrEqual(pieceBytes);
  }
  // Pieces are full but the last, but for a character of several bytes that begins the next one.
  for (const { length } of all.slice(0, -1)) expect(length).toBeGreaterThan(pieceBytes - 4);
  return Buffer.concat(all).toString();
}

describe("answers in pieces", () => {
  it(`are to the byte what they were as one text (seed ${run.seed})`, () => {
    fc.assert(
      fc.property(fc.oneof(logs, matrix, vector, scalar), fc.boolean(), (result, categorize) => {
        const want = encodeNaively(result, stats, { categorize });
        expect(joined(encodeQueryResult(result, stats, { categorize }))).toBe(want);
        expect(() => JSON.parse(want)).not.toThrow();
      }),
      run,
    );
  });

  it("are so at the legacy endpoint", () => {
    fc.assert(
      fc.property(logs, (result) => {
        expect(joined(encodeLegacyStreams(result, stats))).toBe(encodeLegacyNaively(result, stats));
      }),
      run,
    );
  });

  it("are so for lists", () => {
    fc.assert(
      fc.property(fc.array(word), (data) => {
        expect(joined(encodeList(data))).toBe(`${jsonText({ status: "success", data })}\n`);
      }),
      run,
    );
    const many = Array.from({ length: 30_000 }, (_, i) => `label-${i}-ü`);
    expect(joined(encodeList(many))).toBe(`${jsonText({ status: "success", data: many })}\n`);
  });

  it("are so for series", () => {
    const sets = fc.array(
      fc.dictionary(
        fc.oneof(
          word.map((name) => `_${name}`),
          fc.constant("tenant"),
        ),
        word,
      ),
    );
    fc.assert(
      fc.property(sets, fc.boolean(), (data, isLabelled) => {
        const all = data.flatMap((set) => Object.entries(set));
        const starts = [0];
        for (const set of data) starts.push((starts.at(-1) as number) + Object.keys(set).length);
        const streams = {
          hashes: new Uint32Array(2 * data.length),
          starts: Uint32Array.from(starts),
          pairs: Uint32Array.from(all, (_, pair) => pair),
          names: all.map(([name]) => name),
          pairNames: Uint32Array.from(all, (_, pair) => pair),
          values: columnOf(all.map(([, value]) => value)),
          valueHashes: new Uint32Array(2 * all.length),
        };
        const label = isLabelled ? "tenant" : undefined;
        const renamed = (set: Readonly<Record<string, string>>) =>
          Object.entries(set).map(([name, value]) => [
            name === "tenant" ? "original_tenant" : name,
            value,
          ]);
        const want = data.map((set) =>
          isLabelled ? { tenant: "t", ...Object.fromEntries(renamed(set)) } : set,
        );
        expect(joined(encodeSeries([{ tenant: "t", streams: [streams] }], label))).toBe(
          `${jsonText({ status: "success", data: want })}\n`,
        );
      }),
      run,
    );
  });

  it.each([
    ["keep a byte order mark at the start of a line", Buffer.from("\ufeffline"), "\ufeffline"],
    [
      "show each byte that is no UTF-8 by itself",
      Buffer.from("a\xe6\x97b\xff\xc3\xa9", "latin1"),
      "a\ufffd\ufffdb\ufffd\u00e9",
    ],
  ])("%s", (_, bytes, line) => {
    const result: LogResult = {
      kind: "streams",
      rowCount: 1,
      timestamps: BigInt64Array.of(1n),
      labelSet: Uint32Array.of(0),
      lines: linesOf(columnOf([bytes])),
      labels: [
        {
          labels: labelsFromObject({ a: "b" }),
          categories: {
            stream: labelsFromObject({ a: "b" }),
            structuredMetadata: labelsFromObject({}),
            parsed: labelsFromObject({}),
          },
        },
      ],
      warnings: [],
    };
    const answer = joined(encodeQueryResult(result, stats, { categorize: false }));
    expect(JSON.parse(answer).data.result[0].values).toEqual([["1", line]]);
    const legacy = JSON.parse(joined(encodeLegacyStreams(result, stats)));
    expect(legacy.streams[0].entries[0].line).toBe(line);
  });

  it("are made when they are asked for", () => {
    const series = Array.from({ length: 1000 }, (_, i) => ({
      labels: labelsFromObject({ n: String(i) }),
      at: Uint32Array.from({ length: 100 }, (_unused, p) => p),
      values: new Float64Array(100),
    }));
    let read = 0;
    const watched = new Proxy(series, {
      get: (target, key) => {
        if (typeof key === "string" && /^\d+$/.test(key)) read++;
        return Reflect.get(target, key);
      },
    });
    const points = { startNs: 0n, stepNs: 1_000_000_000n, count: 100 };
    const result: QueryResult = { kind: "matrix", points, series: watched, warnings: [] };
    encodeQueryResult(result, stats, { categorize: false }).next();
    expect(read).toBeLessThan(100);
  });
});

function columnOf(values: readonly (string | Uint8Array)[]) {
  const encoded = values.map((one) => (typeof one === "string" ? Buffer.from(one) : one));
  let end = 0;
  const ends = encoded.map(({ length }) => (end += length));
  return { bytes: Buffer.concat(encoded), offsets: Uint32Array.of(0, ...ends) };
}
