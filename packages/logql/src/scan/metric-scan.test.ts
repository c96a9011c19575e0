import { describe, expect, it } from "@jest/globals";
import { type Block, formatLabels, type TimeSlices } from "@skald/model";
import { mergeMetricPartials } from "../engine/range.js";
import type { LeafPlan, QueryParams } from "../plan/plan.js";
import { planQuery } from "../plan/planner.js";
import { parseQuery } from "../syntax/parser.js";
import { type MemoryBlock, makeBlock, type PlainRow } from "../testing/memory-block.js";
import type { RunHeader } from "./block-selection.js";
import { startMetricScan } from "./metric-scan.js";
import type { MetricPartial } from "./partial.js";

const t0 = 1_700_006_400_000_000_000n;
const second = 1_000_000_000n;

function leafOf(query: string, over: Partial<QueryParams> = {}): LeafPlan {
  const plan = planQuery(parseQuery(query), {
    startNs: t0 + 60n * second,
    endNs: t0 + 120n * second,
    stepNs: 60n * second,
    limit: 1,
    direction: "backward",
    intervalNs: 0n,
    ...over,
  });
  if (plan.kind !== "metric") throw new Error("a log query");
  return plan.leaves[0]!;
}

function rowAt(seconds: number, over: Partial<PlainRow> = {}): PlainRow {
  return { labels: { app: "a" }, ts: t0 + BigInt(seconds) * second, line: "line", ...over };
}

/** A block that fails a test which reads one of its columns. */
function headerOnly(memory: MemoryBlock): MemoryBlock {
  const refuse = () => {
    throw new Error("a column was read");
  };
  const block: Block = {
    ...memory.block,
    timestamps: refuse,
    lines: refuse,
    metadata: refuse,
  };
  return { ...memory, block };
}

function scanBlocks(leaf: LeafPlan, ...blocks: MemoryBlock[]): MetricPartial {
  const scan = startMetricScan(leaf);
  for (const { block, streamLabels } of blocks) {
    const runs = Uint32Array.from({ length: block.runs.count }, (_, run) => run);
    scan.addBlock(block, streamLabels, { runs });
  }
  return scan.finish();
}

/** `{app="a"} 2 3`: the values of a leaf's points. */
function answer(leaf: LeafPlan, ...partials: MetricPartial[]): string[] {
  const { labels, values, present } = mergeMetricPartials(leaf, partials)[0]!;
  return labels.map((set, s) =>
    [formatLabels(set), ...[...values[s]!].map((v, p) => (present[s]![p] === 1 ? v : "-"))].join(
      " ",
    ),
  );
}

describe("a metric scan", () => {
  it("keeps labels that nobody reads as a hash", () => {
    const leaf = leafOf('avg by (pod) (count_over_time({app="a"} | json [1m]))');
    const line = (id: number) => `{"id": "${"x".repeat(1000)}${id}", "pod": "p${id % 2}"}`;
    const rows = [1, 2, 3, 4, 4].map((id, i) => rowAt(i + 1, { line: line(id) }));
    const { labels, count } = scanBlocks(leaf, makeBlock(rows));
    expect(labels.map(({ names }) => names)).toEqual(Array(4).fill(["", "pod"]));
    expect(labels.map(({ values }) => values[1])).toEqual(["p1", "p0", "p1", "p0"]);
    expect(new Set(labels.map(({ values }) => values[0])).size).toBe(4);
    expect([...count]).toEqual([1, 1, 1, 2]);
  });

  it("counts a block inside one bucket without a column", () => {
    const leaf = leafOf('sum by (app) (count_over_time({app="a"}[1m]))');
    const memory = headerOnly(makeBlock([rowAt(1), rowAt(30), rowAt(60)]));
    expect(answer(leaf, scanBlocks(leaf, memory))).toEqual(['{app="a"} 3 -']);
  });

  it.each([
    'sum(count_over_time({app="a"}[1m]))',
    'sum by (app) (count_over_time({app="a"}[1m]))',
    'sum by (app, __error__) (count_over_time({app="a"}[1m]))',
    'count_over_time({app="a"}[1m])',
    'sum(count_over_time({app="a"} | app="a" [1m]))',
  ])("fails for an error in metadata: %s", (query) => {
    const memory = makeBlock([rowAt(1), rowAt(2, { metadata: { __error__: "E" } })]);
    expect(() => scanBlocks(leafOf(query), memory)).toThrow("pipeline error: 'E' for series");
  });

  it("reads timestamps alone where a run crosses an edge", () => {
    const leaf = leafOf('sum by (app) (count_over_time({app="a"}[1m]))');
    const memory = makeBlock([rowAt(30), rowAt(60), rowAt(61)]);
    const { timestamps } = memory.block;
    const plain = headerOnly(memory);
    const block = { ...plain.block, timestamps };
    expect(answer(leaf, scanBlocks(leaf, { ...plain, block }))).toEqual(['{app="a"} 2 1']);
  });

  const header = { baseNs: t0, metadataNames: ["level", "trace_id"] };
  const run: RunHeader = {
    stream: 0,
    rows: 7,
    minTime: 1e9,
    maxTime: 60e9,
    lineBytes: 70,
  };

  it.each([
    ['sum by (app) (count_over_time({app="a"}[1m]))', run, true, ['{app="a"} 7 -']],
    ['sum(bytes_over_time({app="a"}[1m]))', run, true, ["{} 70 -"]],
    ['sum(rate({app="a"}[1m]))', { ...run, minTime: 0 }, false, []],
    ['sum(rate({app="a"}[1m]))', { ...run, maxTime: 61e9 }, false, []],
    ['sum(rate({app="a"}[30s]))', { ...run, maxTime: 20e9 }, true, []],
    ['sum by (level) (count_over_time({app="a"}[1m]))', run, false, []],
    ['sum by (level_extracted) (count_over_time({app="a"}[1m]))', run, false, []],
    ['sum without (app) (count_over_time({app="a"}[1m]))', run, false, []],
    ['count_over_time({app="a"}[1m])', run, false, []],
    ['sum(count_over_time({app="a"} | json | logfmt [1m]))', run, true, ["{} 7 -"]],
    ['sum(bytes_over_time({app="a"} | unpack [1m]))', run, false, []],
    ['sum by (x) (count_over_time({app="a"} | json [1m]))', run, false, []],
    ['sum(count_over_time({app="a"} | json | x="y" [1m]))', run, false, []],
    ['absent_over_time({app="a"} | json [1m])', run, true, ['{app="a"} - 1']],
    ['absent_over_time({app="a"} | json | x="y" [1m])', run, false, ['{app="a"} 1 1']],
    ['sum(count_over_time({app="a"} |= "x" [1m]))', run, false, []],
  ])("answers %s from a header where it can", (query, given, want, series) => {
    const leaf = leafOf(query);
    const scan = startMetricScan(leaf);
    const streamLabels = () => ({ names: ["app"], values: ["a"] });
    expect(scan.addRun(streamLabels, header, given)).toBe(want);
    expect(answer(leaf, scan.finish())).toEqual(series);
  });

  const levels = ["", "info", "warn"];
  const counted = { ...run, levels: () => ({ levels, rows: [2, 5, 0], lineBytes: [20, 50, 0] }) };
  it.each([
    [
      'sum by (app, detected_level) (count_over_time({app="a"}[1m]))',
      ["detected_level", "trace_id"],
      ['{app="a", detected_level="info"} 5 -', '{app="a"} 2 -'],
    ],
    [
      'sum by (detected_level) (bytes_over_time({app="a"}[1m]))',
      ["detected_level"],
      ['{detected_level="info"} 50 -', "{} 20 -"],
    ],
    [
      'count_over_time({app="a"}[1m])',
      ["detected_level"],
      ['{app="a", detected_level="info"} 5 -', '{app="a"} 2 -'],
    ],
    ['rate({app="a"}[1m])', ["detected_level", "trace_id"], []],
    ['sum by (detected_level_extracted) (count_over_time({app="a"}[1m]))', ["detected_level"], []],
  ])("answers %s with %j from counts by level where it can", (query, metadataNames, series) => {
    const leaf = leafOf(query);
    const scan = startMetricScan(leaf);
    const labelsOf = () => ({ names: ["app"], values: ["a"] });
    const isAnswered = scan.addRun(labelsOf, { baseNs: t0, metadataNames }, counted);
    expect(isAnswered).toBe(series.length > 0);
    expect(answer(leaf, scan.finish()).sort()).toEqual([...series].sort());
  });

  it.each([
    ["1m", true],
    ["59s", false],
  ])("answers windows of %s that cut a run from counts by slices: %s", (range, isAnswered) => {
    const rows: TimeSlices["rows"] = Uint32Array.of(3, 4, 5, 0, 6);
    const lineBytes = rows.map((count) => 10 * count);
    const slices = () => ({ stepNs: 20e9, first: 0, rows, lineBytes, from: 0, to: 5 });
    const long = { ...run, rows: 18, minTime: 1e9, maxTime: 100e9, slices };
    const leaf = leafOf(`sum by (app) (count_over_time({app="a"}[${range}]))`);
    const scan = startMetricScan(leaf);
    const labelsOf = () => ({ names: ["app"], values: ["a"] });
    expect(scan.addRun(labelsOf, header, long)).toBe(isAnswered);
    expect(answer(leaf, scan.finish())).toEqual(isAnswered ? ['{app="a"} 12 6'] : []);
  });

  it("does not take the level of rows whose stream has such a label", () => {
    const scan = startMetricScan(leafOf('sum by (detected_level) (rate({app="a"}[1m]))'));
    const labelsOf = () => ({ names: ["app", "detected_level"], values: ["a", "x"] });
    expect(scan.addRun(labelsOf, { baseNs: t0, metadataNames: ["detected_level"] }, counted)).toBe(
      false,
    );
  });

  it("answers a count by all labels from a header when there is no metadata", () => {
    const scan = startMetricScan(leafOf('count_over_time({app="a"}[1m])'));
    const streamLabels = () => ({ names: ["app"], values: ["a"] });
    expect(scan.addRun(streamLabels, { baseNs: t0, metadataNames: [] }, run)).toBe(true);
  });

  it.each([
    ["first_over_time", '{app="a"} 1 -'],
    ["last_over_time", '{app="a"} 3 -'],
  ])("%s breaks ties by the order in which rows are added", (op, want) => {
    const leaf = leafOf(`${op}({app="a"} | unwrap v [1m]) by (app)`);
    const rows = ["1", "2", "3"].map((v) => rowAt(5, { metadata: { v } }));
    expect(answer(leaf, scanBlocks(leaf, makeBlock(rows)))).toEqual([want]);
    const blocks = rows.map((row) => makeBlock([row]));
    expect(answer(leaf, scanBlocks(leaf, ...blocks))).toEqual([want]);
    const partials = blocks.map((block) => scanBlocks(leaf, block));
    expect(answer(leaf, ...partials)).toEqual([want]);
  });

  it.each(["first_over_time", "last_over_time"])(
    "%s breaks ties between streams by the streams, however they are stored",
    (op) => {
      const leaf = leafOf(`${op}({app="a"} | unwrap v [1m]) by (app)`);
      const rows = ["1", "2", "3", "4"].map((v) =>
        rowAt(5, { labels: { app: "a", pod: v }, metadata: { v } }),
      );
      const [want] = answer(leaf, scanBlocks(leaf, makeBlock(rows)));
      for (const order of [rows.toReversed(), [2, 0, 3, 1].map((i) => rows[i]!)]) {
        expect(answer(leaf, scanBlocks(leaf, makeBlock(order)))).toEqual([want]);
        const partials = order.map((row) => scanBlocks(leaf, makeBlock([row])));
        expect(answer(leaf, ...partials)).toEqual([want]);
      }
    },
  );

  it("counts the bytes of lines as stages left them", () => {
    const leaf = leafOf('sum(bytes_over_time({app="a"} | line_format "ab" [1m]))');
    const rows = [rowAt(5), rowAt(6, { line: "a very long line" })];
    expect(answer(leaf, scanBlocks(leaf, makeBlock(rows)))).toEqual(["{} 4 -"]);
  });

  it("tells apart rows whose few bytes are the same, or alike", () => {
    const leaf = leafOf('sum by (a, b) (count_over_time({app="a"} | logfmt | drop b="x" [1m]))');
    const lines = ["a=1 b=23", "a=12 b=3", "a=123", "b=123", "c=1", "a=1234 b=5678", "b=x"].concat(
      ...["a=12345678", "a=123456789", "a=1234 b=56789", "a=ä b=3", "a=1 b=x"],
    );
    const others = [
      { labels: { app: "a", b: "3" }, line: "a=12" },
      { metadata: { a: "12" }, line: "b=3" },
      { labels: { app: "a", a: "1", b: "23" }, line: "c=1" },
    ];
    const rows = [...lines.map((line) => ({ line })), ...others].map((row) => rowAt(1, row));
    // The second block finds what the first has met.
    const twice = [makeBlock(rows), makeBlock(rows)];
    expect(answer(leaf, scanBlocks(leaf, ...twice)).sort()).toEqual([
      '{a="1", b="23"} 4 -',
      '{a="1"} 2 -',
      '{a="12", b="3"} 6 -',
      '{a="123"} 2 -',
      '{a="1234", b="5678"} 2 -',
      '{a="1234", b="56789"} 2 -',
      '{a="12345678"} 2 -',
      '{a="123456789"} 2 -',
      '{a="ä", b="3"} 2 -',
      '{b="123"} 2 -',
      "{} 4 -",
    ]);
  });

  it("counts more short values than it keeps at hand", () => {
    const leaf = leafOf('sum by (app, n) (count_over_time({app="a"} | logfmt [1m]))');
    const lines = Array.from({ length: 2000 }, (_, i) => `n=${(i * 7) % 400}`);
    const memory = makeBlock(lines.map((line) => rowAt(1, { line })));
    const found = answer(leaf, scanBlocks(leaf, memory));
    expect(found).toHaveLength(400);
    expect(found.filter((one) => !one.endsWith(" 5 -"))).toEqual([]);
  });

  describe("with rows that end in an error", () => {
    const bad = makeBlock([rowAt(5, { line: "not json" }), rowAt(6, { line: '{"v":"x"}' })]);
    const skip =
      'Use a label filter to intentionally skip this error. (e.g | __error__!="JSONParserErr").\n' +
      'To skip all potential errors you can match empty errors.(e.g __error__="")\n' +
      'The label filter can also be specified after unwrap. (e.g | unwrap latency | __error__="" )';

    it.each([
      'count_over_time({app="a"} | json [1m])',
      'sum by (v) (count_over_time({app="a"} | json [1m]))',
      'max by (app) (max_over_time({app="a"} | json | unwrap v [1m]))',
    ])("fails %s", (query) => {
      expect(() => scanBlocks(leafOf(query), bad)).toThrow(
        /^pipeline error: '(JSONParserErr|SampleExtractionErr)' for series: '\{__error__=/,
      );
    });

    it("names the level that was found, with all other labels of the series", () => {
      const leaf = leafOf('count_over_time({app="a"} | json [1m])');
      const metadata = { detected_level: "info", trace_id: "t" };
      const block = makeBlock([rowAt(5, { line: "{", metadata })]);
      expect(() => scanBlocks(leaf, block)).toThrow(
        /__error_details__="[^}]*", app="a", detected_level="info", trace_id="t"\}'/,
      );
    });

    it("says how to skip them", () => {
      const leaf = leafOf('count_over_time({app="a"} | json [1m])');
      expect(() => scanBlocks(leaf, bad)).toThrow(skip);
    });

    it.each([
      ['sum(count_over_time({app="a"} | json [1m]))', ["{} 2 -"]],
      ['absent_over_time({app="a"} | json [1m])', ['{app="a"} - 1']],
      [
        'sum by (__error__) (count_over_time({app="a"} | json | __error__!="" [1m]))',
        ['{__error__="JSONParserErr"} 1 -'],
      ],
      [
        'sum by (__error__, constructor) (count_over_time({app="a"} | json | __error__!="" [1m]))',
        ['{__error__="JSONParserErr"} 1 -'],
      ],
      ['count_over_time({app="a"} | json | __error__="" [1m])', ['{app="a", v="x"} 1 -']],
    ])("answers %s", (query, want) => {
      const leaf = leafOf(query);
      expect(answer(leaf, scanBlocks(leaf, bad))).toEqual(want);
    });

    it.each([
      ['sum(count_over_time({app="a"} | unpack | json | level="" [1m]))', false],
      ['sum(count_over_time({app="a"} != "x" | unpack | json [1m]))', true],
      ['sum(count_over_time({app="a"} | unpack | json != "x" [1m]))', false],
      ['sum(bytes_over_time({app="a"} != "x" | unpack | json [1m]))', false],
      ['sum by (app) (count_over_time({app="a"} != "x" | unpack [1m]))', false],
    ])("unpacks in %s only what is used", (query, isLeftOut) => {
      const scan = () => answer(leafOf(query), scanBlocks(leafOf(query), bad));
      if (isLeftOut) expect(scan()).toEqual(["{} 1 -"]);
      else expect(scan).toThrow("pipeline error: 'JSONParserErr'");
    });

    it("does not mind those outside of every window", () => {
      const leaf = leafOf('count_over_time({app="a"} | json [1m])', {
        startNs: t0 + 100n * second,
      });
      expect(answer(leaf, scanBlocks(leaf, bad))).toEqual([]);
    });
  });
});
