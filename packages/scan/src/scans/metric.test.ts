import { afterAll, describe, expect, it } from "@jest/globals";
import {
  contextOf,
  countReads,
  leafOf,
  sampleMask as mask,
  ms,
  sampleBytes,
  sampleSources,
  valuesOf,
} from "../testing/scans.js";
import { measureScan, scanMetric } from "./metric.js";

const { refs, open, close } = sampleSources();
afterAll(close);
const context = contextOf();
/** An instant query that many ms after midnight. */
const at = (to: number) => ({ from: to * ms, to: to * ms });

describe.each(refs)("scanMetric over %s", (_name, ref) => {
  const scan = (leaf = leafOf("sum by (app) (count_over_time({app=~`.+`}[1s]))"), more = {}) =>
    scanMetric({ plan: leaf, sources: [{ ref, sequence: 0, ...more }] }, open, context);

  it.each([
    ["counts", "sum by (app) (count_over_time({app=~`.+`}[1s]))", 100, { a: 6, b: 6 }],
    ["a selector", "sum by (app) (count_over_time({app=`b`}[1s]))", 100, { b: 6 }],
    [
      "a window: the start is not in it, the end is",
      "sum by (app) (count_over_time({app=~`.+`}[20ms]))",
      30,
      { a: 2, b: 2 },
    ],
    ["a filter", "sum by (app) (count_over_time({app=~`.+`} |= `even`[1s]))", 100, { a: 3, b: 3 }],
    [
      "metadata",
      "sum by (app) (count_over_time({app=~`.+`} | trace=`t0` [1s]))",
      100,
      { a: 2, b: 2 },
    ],
    ["no stream", "sum by (app) (count_over_time({app=`z`}[1s]))", 100, {}],
    ["no time", "sum by (app) (count_over_time({app=~`.+`}[10ms]))", 500, {}],
  ])("%s", (_case, query, to, want) => {
    const leaf = leafOf(query, at(to));
    const byApp = Object.fromEntries(Object.entries(want).map(([app, n]) => [`{app="${app}"}`, n]));
    expect(valuesOf(leaf, [scan(leaf).partial])).toEqual(byApp);
  });

  it("leaves out excluded rows, and counts them", () => {
    const leaf = leafOf("sum by (app) (count_over_time({app=~`.+`}[1s]))", at(100));
    const { partial, stats } = scan(leaf, { mask });
    expect(valuesOf(leaf, [partial])).toEqual({ '{app="a"}': 5, '{app="b"}': 5 });
    expect(stats.duplicates).toBe(2);
  });

  it("does not read blocks of which everything is excluded, and counts the others", () => {
    const leaf = leafOf("sum by (app) (count_over_time({app=~`.+`}[1s]))", at(100));
    const whole = [0, 1, 4].map(() => Uint32Array.of(0, 1));
    const spied = countReads(open(ref));
    const sources = [{ ref, sequence: 0, mask: { blocks: Uint32Array.of(0, 1, 4), rows: whole } }];
    const { partial, stats } = scanMetric({ plan: leaf, sources }, () => spied.source, context);
    expect(valuesOf(leaf, [partial])).toEqual({ '{app="a"}': 2, '{app="b"}': 4 });
    expect([spied.lines, spied.times, stats.duplicates]).toEqual([[], [], 6]);
  });

  it.each([
    "sum by (level) (count_over_time({app=~`.+`} | app > 5 [1s]))",
    "sum (count_over_time({app=~`.+`} | app > 5 [1s]))",
    "max without (trace) (bytes_over_time({app=~`.+`} | app > 5 [1s]))",
    "count_over_time({app=~`.+`} | app > 5 [1s])",
  ])("tells all labels of a row that ends in an error, whichever are asked for: %s", (query) => {
    expect(() => scan(leafOf(query, at(100)))).toThrow(
      /^pipeline error: 'LabelFilterErr' for series: '\{__error__="LabelFilterErr", __error_details__=".+", app="a", trace="t0"\}'/,
    );
  });

  it("adds the tenant to the streams", () => {
    const query = "sum by (__tenant_id__) (count_over_time({app=~`.+`}[1s]))";
    const leaf = leafOf(query, at(100));
    const { partial } = scan(leaf, { tenantLabel: "fake" });
    expect(valuesOf(leaf, [partial])).toEqual({ '{__tenant_id__="fake"}': 12 });
  });

  it("gives in parts what it gives as a whole", () => {
    const leaf = leafOf("count_over_time({app=~`.+`} |= `even` [1s])", at(100));
    const whole = valuesOf(leaf, [scan(leaf).partial]);
    expect(Object.keys(whole)).toHaveLength(6);
    for (const count of [2, 4, 9]) {
      const parts = Array.from({ length: count }, (_, index) =>
        scan(leaf, { part: { from: index / count, to: (index + 1) / count } }),
      );
      expect(
        valuesOf(
          leaf,
          parts.map(({ partial }) => partial),
        ),
      ).toEqual(whole);
      expect(parts.reduce((sum, { stats }) => sum + stats.sourcesScanned, 0)).toBe(1);
    }
  });

  it("counts by shard: every stream is in one", () => {
    const leaf = leafOf("sum by (app) (count_over_time({app=~`.+`}[1s]))", at(100));
    const partials = [0, 1, 2].map(
      (index) => scan({ ...leaf, shard: { index, count: 3 } }).partial,
    );
    expect(valuesOf(leaf, partials)).toEqual({ '{app="a"}': 6, '{app="b"}': 6 });
  });

  it("ends between blocks when the query was cancelled", () => {
    let left = 3;
    const check = () => {
      if (left-- === 0) throw new Error("cancelled");
    };
    const leaf = leafOf("sum(count_over_time({app=~`.+`} |= `even` [1s]))", at(100));
    const spied = countReads(open(ref));
    const task = { plan: leaf, sources: [{ ref, sequence: 0 }] };
    expect(() => scanMetric(task, () => spied.source, { check })).toThrow("cancelled");
    expect(spied.lines.length).toBeLessThan(4);
  });

  it("counts from headers alone when it can, and says what it would read", () => {
    const measure = (plan: ReturnType<typeof leafOf>) =>
      measureScan({ plan, sources: [{ ref, sequence: 0 }] }, open, context);
    const count = leafOf("sum by (app) (count_over_time({app=~`.+`}[1s]))", at(100));
    const spied = countReads(open(ref));
    const task = { plan: count, sources: [{ ref, sequence: 0 }] };
    const { stats } = scanMetric(task, () => spied.source, context);
    expect([spied.lines, spied.times, stats.headLines + stats.decompressedLines]).toEqual([
      [],
      [],
      0,
    ]);
    expect(measure(count)).toMatchObject({ bytes: 0, blocksToRead: 0 });
    expect(measure(count).blocks).toBeGreaterThan(0);
    const filter = leafOf("sum(count_over_time({app=`a`} |= `x` [1s]))", at(100));
    const { stats: read } = scan(filter);
    const { bytes, blocks, blocksToRead } = measure(filter);
    expect(bytes).toBe(read.headBytes + read.decompressedBytes);
    expect(bytes).toBeGreaterThan(sampleBytes);
    expect(blocksToRead).toBe(blocks);
  });
});
