import { describe, expect, it } from "@jest/globals";
import { compileMatchers, formatLabels, labelsFromObject } from "@skald/model";
import { testRuns } from "@skald/testkit";
import fc from "fast-check";
import type { LogResult, QueryParams } from "../plan/plan.js";
import type { LogExpr } from "../syntax/ast.js";
import { parseQuery } from "../syntax/parser.js";
import type { PlainRow } from "../testing/memory-block.js";
import { type Layout, runQuery } from "../testing/run-query.js";
import { streamKey } from "./block-selection.js";
import { groupLogRows, lineAt } from "./log-rows.js";

const second = 1_000_000_000n;
const t0 = 1_700_006_400n * second - 5n * second;

const row: fc.Arbitrary<PlainRow> = fc.record({
  labels: fc.record({ app: fc.constantFrom("a", "b"), pod: fc.constantFrom("p", "q") }),
  ts: fc.integer({ min: 0, max: 20 }).map((half) => t0 + (BigInt(half) * second) / 2n),
  line: fc.constantFrom("", "hit", "another hit", "miss"),
  metadata: fc.record({ level: fc.constantFrom("info", "error") }, { requiredKeys: [] }),
});
const rows = fc.array(row, { maxLength: 60, size: "max" });

const query = fc.constantFrom(
  '{app="a"}',
  '{app=~".+"}',
  '{app=~".+"} |= "hit"',
  '{pod="q"} |= "hit"',
);

const params: fc.Arbitrary<QueryParams> = fc
  .record({
    start: fc.integer({ min: -1, max: 8 }),
    length: fc.integer({ min: 0, max: 12 }),
    limit: fc.constantFrom(1, 2, 5, 1000),
    direction: fc.constantFrom("forward" as const, "backward" as const),
    intervalNs: fc.constantFrom(0n, 0n, second, (7n * second) / 2n),
  })
  .map(({ start, length, ...rest }) => ({
    ...rest,
    startNs: t0 + BigInt(start) * second,
    endNs: t0 + BigInt(start + length) * second,
    stepNs: second,
  }));

/** Rows as objects: filtered, ordered by time (equal times by stream, then as given; reversed backward), thinned, cut. */
function naive(expr: LogExpr, all: readonly PlainRow[], asked: QueryParams): PlainRow[] {
  const matches = compileMatchers(expr.matchers);
  const wanted = all.filter(
    ({ labels, ts, line }) =>
      matches(labelsFromObject(labels)) &&
      ts >= asked.startNs &&
      ts < asked.endNs &&
      (expr.stages.length === 0 || String(line).includes("hit")),
  );
  const keyOf = ({ labels }: PlainRow) => streamKey(labelsFromObject(labels));
  wanted.sort((a, b) => (a.ts === b.ts ? keyOf(a) - keyOf(b) : a.ts < b.ts ? -1 : 1));
  if (asked.direction === "backward") wanted.reverse();
  const out: PlainRow[] = [];
  for (const one of wanted) {
    const last = out.at(-1);
    const distance = last === undefined ? asked.intervalNs : abs(one.ts - last.ts);
    if (distance >= asked.intervalNs) out.push(one);
  }
  return out.slice(0, asked.limit);
}

function abs(value: bigint): bigint {
  return value < 0n ? -value : value;
}

function textsOf(result: LogResult): string[] {
  return Array.from(result.timestamps, (ts, i) => {
    const line = new TextDecoder().decode(lineAt(result.lines, i));
    return `${ts} ${formatLabels(result.labels[result.labelSet[i]!]!.labels)} ${line}`;
  });
}

function textOf({ labels, metadata, ts, line }: PlainRow): string {
  return `${ts} ${formatLabels(labelsFromObject({ ...labels, ...metadata }))} ${line}`;
}

function run(
  text: string,
  all: readonly PlainRow[],
  asked: QueryParams,
  layout: Layout,
): LogResult {
  const result = runQuery(parseQuery(text), all, asked, layout);
  if (result.kind !== "streams") throw new Error("not a log query");
  return result;
}

describe("log scans", () => {
  it("answer as rows sorted as objects, equal times by stream, then in order of arrival", () => {
    fc.assert(
      fc.property(query, rows, params, fc.constantFrom(1, 4, 1000), (text, all, asked, size) => {
        // One head: rows of a block, and blocks, are in order of arrival.
        const got = run(text, all, asked, { sources: 1, blockRows: size, sealed: false });
        const want = naive(parseQuery(text) as LogExpr, all, asked);
        expect(textsOf(got)).toEqual(want.map(textOf));
      }),
      { numRuns: testRuns(120) },
    );
  });

  it("keep the same times however rows are spread, and of one source the same rows in one order", () => {
    const layout = fc.record({
      sources: fc.integer({ min: 1, max: 4 }),
      blockRows: fc.constantFrom(1, 4, 1000),
      sealed: fc.boolean(),
      texts: fc.subarray(["hit", "hi", "t", "absent"]),
    });
    fc.assert(
      fc.property(query, rows, params, layout, (text, all, asked, laidOut) => {
        const got = run(text, all, asked, laidOut);
        const want = naive(parseQuery(text) as LogExpr, all, asked);
        expect([...got.timestamps]).toEqual(want.map(({ ts }) => ts));
        // Rows of one source are in order of arrival, or as they were sealed: no answer shows which.
        if (laidOut.sources === 1) expect(textsOf(got)).toEqual(want.map(textOf));
      }),
      { numRuns: testRuns(120) },
    );
  });

  it("group every row into one stream, sorted by label text", () => {
    const by = fc.constantFrom("all" as const, "stream" as const);
    fc.assert(
      fc.property(rows, params, by, (all, asked, key) => {
        const layout = { sources: 2, blockRows: 5, sealed: true };
        const result = run('{app=~".+"}', all, asked, layout);
        const streams = groupLogRows(result, key);
        const texts = streams.map(({ labels }) => formatLabels(labels));
        expect(texts).toEqual([...new Set(texts)].sort());
        const numbers = streams.flatMap((stream) => [...stream.rows]);
        expect(numbers.sort((a, b) => a - b)).toEqual([...result.timestamps.keys()]);
        for (const { labels, rows: own } of streams) {
          for (const number of own) {
            const set = result.labels[result.labelSet[number]!]!;
            expect(key === "all" ? set.labels : set.categories.stream).toEqual(labels);
          }
          expect([...own]).toEqual([...own].sort((a, b) => a - b));
        }
      }),
      { numRuns: testRuns(80) },
    );
  });
});
