import { expect, it } from "@jest/globals";
import type { QueryAnswer, QueryFunctions } from "@skald/contracts";
import { querierOf } from "@skald/contracts/testing/fakes";
import { type LogResult, lineAt, parseQuery, type QueryParams } from "@skald/logql";
import { type PlainRow, runQuery } from "@skald/logql/testing/run-query";
import { formatLabels, joinQueryStats } from "@skald/model";
import { testRuns, testSeed } from "@skald/testkit";
import fc from "fast-check";
import { Frontend } from "../frontend.js";
import { contextOf, limits, logs, stats } from "../testing/api.js";
import { answerLogs } from "./log-query.js";

const seed = testSeed();
const second = 1_000_000_000n;
const t0 = 1_700_006_400n * second;
const minute = 60n * second;
const never = new AbortController().signal;
const plenty = 1e9;

const row: fc.Arbitrary<PlainRow> = fc.record({
  labels: fc.record({ app: fc.constantFrom("a", "b"), pod: fc.constantFrom("p", "q") }),
  ts: fc.integer({ min: 0, max: 600 }).map((n) => t0 + BigInt(n) * second),
  line: fc.constantFrom("hit", "miss", "a longer line", ""),
  metadata: fc.record({ v: fc.integer({ min: 0, max: 3 }).map(String) }, { requiredKeys: [] }),
});

const params: fc.Arbitrary<QueryParams> = fc
  .record({
    start: fc.integer({ min: -50, max: 600 }),
    length: fc.integer({ min: 0, max: 700 }),
    limit: fc.integer({ min: 1, max: 60 }),
    direction: fc.constantFrom("backward" as const, "forward" as const),
    interval: fc.constantFrom(0n, 0n, 0n, 7n),
  })
  .map(({ start, length, limit, direction, interval }) => ({
    startNs: t0 + BigInt(start) * second,
    endNs: t0 + BigInt(start + length) * second,
    ...{ stepNs: 0n, intervalNs: interval * second, limit, direction },
  }));

const queries = ['{app=~".+"}', '{app="a"} |= "hit"', '{app=~".+"} | v > 1', '{app="c"}'];

/** The rows as a client sees them. */
function seen({ result }: QueryAnswer): readonly string[] {
  const { timestamps, labelSet, labels, lines } = result as LogResult;
  return Array.from(timestamps, (ns, i) => {
    const set = labels[labelSet[i] as number];
    const line = Buffer.from(lineAt(lines, i));
    const categories = Object.values(set?.categories ?? {}).map(formatLabels);
    return `${ns} ${formatLabels(set?.labels as never)} ${categories} ${line}`;
  });
}

interface Asked {
  readonly answer: QueryAnswer;
  readonly parts: readonly QueryParams[];
}

interface Split {
  readonly params: QueryParams;
  readonly splitNs: bigint;
  readonly parallelism: number;
  /** What each part reads, as it says. */
  readonly partBytes: number;
}

async function answered(
  query: string,
  rows: readonly PlainRow[],
  { params: asked, splitNs, parallelism, partBytes }: Split,
): Promise<Asked> {
  const parts: QueryParams[] = [];
  const expr = parseQuery(query);
  const ask = async (part: QueryParams): Promise<QueryAnswer> => {
    parts.push(part);
    const stats = joinQueryStats([]);
    const store = { ...stats.store, decompressedBytes: partBytes };
    return { result: runQuery(expr, rows, part), stats: { ...stats, store } };
  };
  const split = { params: asked, splitNs, parallelism, maxMemoryBytes: plenty };
  return { answer: await answerLogs({ ...split, ask }, never), parts };
}

it("is the answer of the whole, whatever parts it is asked for in", async () => {
  const given = fc.record({
    rows: fc.array(row, { maxLength: 120 }),
    query: fc.constantFrom(...queries),
    params,
    splitNs: fc.constantFrom(13n, 60n, 97n, 3600n).map((n) => n * second),
    parallelism: fc.constantFrom(1, 3, 32),
    partBytes: fc.constantFrom(0, 1e8, 1e9),
  });
  const property = fc.asyncProperty(given, async ({ rows, query, ...asked }) => {
    const whole = await answered(query, rows, { ...asked, splitNs: 0n });
    const split = await answered(query, rows, asked);
    expect(seen(split.answer)).toEqual(seen(whole.answer));
    expect(split.answer.result.warnings).toEqual([]);
  });
  await fc.assert(property, { seed, numRuns: testRuns(100) });
});

it.each([
  ["backward", [9, 8, 7]],
  ["forward", [0, 1, 2]],
] as const)("asks %s for no more than it takes to have enough", async (direction, minutes) => {
  const rows = Array.from({ length: 600 }, (_, i) => ({
    ...{ labels: { app: "a", pod: "p" }, metadata: {}, line: String(i) },
    ts: t0 + BigInt(i) * second,
  }));
  const range = { startNs: t0, endNs: t0 + 600n * second, stepNs: 0n, intervalNs: 0n };
  const asked = { params: { ...range, limit: 100, direction }, splitNs: 60n * second };
  const { answer, parts } = await answered('{app="a"}', rows, {
    ...asked,
    ...{ parallelism: 32, partBytes: 1e9 },
  });
  const begins = parts.map(({ startNs }) => Number((startNs - t0) / second) / 60);
  expect(begins).toEqual(minutes);
  expect(parts.map(({ limit }) => limit)).toEqual([100, 40, 40]);
  expect(answer.stats.subqueries).toBe(3);
  expect(answer.stats.entriesReturned).toBe(100);
});

it("asks for the rest at once where there is little to read", async () => {
  const range = { startNs: 0n, endNs: t0 + minute, stepNs: 0n, intervalNs: 0n };
  const asked = { params: { ...range, limit: 5, direction: "backward" as const }, splitNs: minute };
  const { parts } = await answered('{app="a"}', [], { ...asked, parallelism: 32, partBytes: 1 });
  expect(parts.map(({ startNs, endNs }) => [startNs, endNs])).toEqual([
    [t0, t0 + minute],
    [0n, t0],
  ]);
});

it("asks for a range of less than two intervals at once", async () => {
  const range = { startNs: t0 + 1n, endNs: t0 + 2n * minute, stepNs: 0n, intervalNs: 0n };
  const asked = { params: { ...range, limit: 5, direction: "forward" as const }, splitNs: minute };
  const { parts } = await answered('{app="a"}', [], { ...asked, parallelism: 32, partBytes: 1e9 });
  expect(parts).toHaveLength(1);
});

it("holds no more than it may", async () => {
  const rows = Array.from({ length: 50 }, (_, i) => ({
    ...{ labels: { app: "a", pod: "p" }, metadata: {}, line: "x".repeat(100) },
    ts: t0 + BigInt(i) * second,
  }));
  const expr = parseQuery('{app="a"}');
  const range = { startNs: t0, endNs: t0 + 60n * second, stepNs: 0n, intervalNs: 0n };
  const ask = async (part: QueryParams) => ({
    ...{ result: runQuery(expr, rows, part), stats: joinQueryStats([]) },
  });
  const split = { splitNs: 10n * second, parallelism: 2, maxMemoryBytes: 4000, ask };
  const params = { ...range, limit: 1000, direction: "forward" as const };
  await expect(answerLogs({ ...split, params }, never)).rejects.toMatchObject({
    code: "invalid_argument",
    message: expect.stringContaining("max_query_memory_bytes"),
  });
});

it.each([
  [true, 0, 3],
  [false, 0, 1],
  [true, 5, 1],
])(
  "goes to queriers elsewhere in parts: %p, with a budget of bytes: %p",
  async (splitsByTime, max_query_bytes_read, calls) => {
    let asked = 0;
    const query: QueryFunctions["query"] = async () => {
      asked++;
      const store = { ...stats.store, decompressedBytes: 1e9 };
      return { result: logs, stats: { ...stats, store } };
    };
    const frontend = new Frontend({ clock: { nowMs: () => Number(t0 / 1_000_000n) } });
    const own = { ...limits, max_query_bytes_read };
    const context = contextOf({ querier: querierOf({ query }), limits: own, splitsByTime });
    const range = { startNs: t0 - 180n * minute, endNs: t0, stepNs: 0n, intervalNs: 0n };
    const params = { ...range, query: '{app="a"}', limit: 100, direction: "forward" as const };
    const { result } = await frontend.run(frontend.planRange(params, context), context);
    expect(asked).toBe(calls);
    expect((result as LogResult).rowCount).toBe(calls);
  },
);
