import { join } from "node:path";
import { afterAll, describe, expect, it } from "@jest/globals";
import { type Findings, mergeLogPartials, mergeMetricPartials } from "@skald/logql";
import type { SegmentRef } from "@skald/model";
import { mergeSegments, openSegmentFile } from "@skald/storage";
import { type Random, seededRandom, testRuns, testSeed } from "@skald/testkit";
import { type Source, segmentSource } from "../source/source.js";
import { contextOf, countReads, leafOf, logPlan, rowsOf } from "../testing/scans.js";
import { makeDirectory, makeSegment, row } from "../testing/sources.js";
import { scanLog } from "./log.js";
import { measureScan, scanMetric } from "./metric.js";

const directory = makeDirectory();
afterAll(directory.remove);
const context = contextOf();

function mergeWithFields(ref: SegmentRef): SegmentRef {
  const path = join(directory.path, "merged.parquet");
  const { segment, close } = openSegmentFile(ref);
  const fields = { share: 1, asked: new Map() };
  const steps = mergeSegments({ tenant: "t", id: "m", path, inputs: [{ segment }], fields });
  while (!steps.next().done);
  close();
  return { ...ref, id: "m", location: { kind: "file", path } };
}

/** The answer to a query with what earlier scans found. What this one finds is added. */
function answer(query: string, source: Source, mask: object, findings: Findings[] = []): unknown {
  const leaf = leafOf(query, { from: 0, to: 400_000_000, stepNs: 100_000_000n });
  const ref = { ...source, location: { kind: "file", path: "p" }, findings: [...findings] };
  const sources = [{ ref: ref as never, sequence: 0, ...mask }];
  const onFindings = (_: string, one: Findings) => findings.push(one);
  try {
    const task = { plan: leaf, sources };
    const { partial } = scanMetric(task, () => source, { ...context, onFindings });
    return mergeMetricPartials(leaf, [partial]);
  } catch (error) {
    return (error as Error).message;
  }
}

function logAnswer(query: string, limit: number, source: Source, mask: object): unknown {
  const plan = { ...logPlan(query, { from: 0, to: 400_000_000 }), limit };
  const sources = [{ ref: source as never, sequence: 0, ...mask }];
  const { partial } = scanLog({ plan, sources }, () => source, context);
  return { rows: rowsOf(plan, [partial]), labels: mergeLogPartials(plan, [partial]).labels };
}

const keys = ["level", "status", "took"].map((key) => `${key}="${key}"`).join(", ");
const parsers = ["json", "logfmt", `json ${keys}`, `logfmt ${keys}`];

const logs = parsers.flatMap((parser) => [
  `{app=~".+"} | ${parser} | status >= 500`,
  `{app=~".+"} | ${parser} | status = "500" | took > 90 | http_code = "1"`,
  `{app=~".+"} |= "x" | ${parser} | level="info" or status="500"`,
  `{app=~".+"} | ${parser} | level!="warn" | absent="" | line_format "{{.took}}"`,
  `{app=~".+"} | ${parser} | took > 99 | trace="t1"`,
  `{app=~".+"} | ${parser} | level="none"`,
]);

const parsed = parsers.flatMap((parser) => [
  `sum by (level) (count_over_time({app=~".+"} | ${parser} [100ms]))`,
  `sum by (level, app) (count_over_time({app=~".+"} | ${parser} | status >= 500 [100ms]))`,
  `sum(count_over_time({app=~".+"} | ${parser} | status >= 500 | took > 20 [100ms]))`,
  `sum(count_over_time({app="plain"} | ${parser} | level="info" or status="500" [100ms]))`,
  `sum by (level) (count_over_time({app=~".+"} |= "x" | ${parser} | level!="warn" [100ms]))`,
  `max_over_time({app=~".+"} | ${parser} | unwrap took | __error__="" [100ms]) by (level)`,
  `sum by (http_code) (sum_over_time({app=~".+"} | ${parser} | unwrap status | __error__="" [100ms]))`,
  `first_over_time({app=~".+"} | ${parser} | unwrap took | __error__="" [100ms]) by (app)`,
  `quantile_over_time(0.9, {app=~".+"} | ${parser} | unwrap took | __error__="" [100ms]) by (app)`,
  `sum by (absent) (count_over_time({app=~".+"} | ${parser} [100ms]))`,
  `sum by (trace) (count_over_time({app=~".+"} | ${parser} [100ms]))`,
  `sum by (level) (bytes_over_time({app=~".+"} | ${parser} [100ms]))`,
]);

function randomLine(random: Random, isLogfmt: boolean): string {
  const odd = random(40);
  if (odd === 0) return '{"level":"info","status":50';
  if (odd === 1) return '{"level":"\\u0065rror","status":"500","took":"x"}';
  if (odd === 2) return `level="größe" status= took=5ms x`;
  if (odd === 3) return '{"status":{"status":500},"level":"a","level":"b","took":1}';
  const level = ["info", "warn", "error"][random(3)]!;
  const status = 200 + 100 * random(4);
  const took = random(1000) / 10;
  if (isLogfmt)
    return `level=${level} status=${status} took=${took} msg="x y" http.code=${random(3)}`;
  return JSON.stringify({ level, status, took, http: { code: random(3) }, list: ["x"] });
}

it("queries over merged segments with fields answer as they do without", () => {
  for (let run = 0; run < testRuns(6); run++) {
    const random = seededRandom(testSeed() * 1000 + run);
    const rows = Array.from({ length: 400 }, (_, i) => {
      const app = ["plain", "logfmt", "metadata", "label"][random(4)]!;
      const line = randomLine(random, app === "logfmt");
      const made = row(app, i * 1_000_000, `${line}${" ".repeat(random(4000))}`);
      if (app === "metadata") return { ...made, metadata: { trace: `t${random(3)}`, status: "1" } };
      return app === "label" ? { ...made, labels: { app, level: "own" } } : made;
    });
    const opened = [makeSegment(directory.path, rows, { id: "plain" })].flatMap((plain) =>
      [plain, mergeWithFields(plain)].map((ref) => openSegmentFile(ref)),
    );
    const [plain, merged] = opened.map(({ segment }) => segmentSource(segment));
    const mask = { mask: { blocks: Uint32Array.of(0), rows: [Uint32Array.of(0, 3, 4)] } };
    for (const query of parsed) {
      const findings: Findings[] = [];
      for (const hidden of [{}, mask, {}])
        expect([query, answer(query, merged!, hidden, findings)]).toEqual([
          ...[query, answer(query, plain!, hidden)],
        ]);
    }
    for (const query of logs)
      for (const limit of [5, 1000])
        for (const hidden of [{}, mask])
          expect([query, logAnswer(query, limit, merged!, hidden)]).toEqual([
            ...[query, logAnswer(query, limit, plain!, hidden)],
          ]);
    for (const { close } of opened) close();
  }
});

describe("a query of fields that are columns", () => {
  const rows = Array.from({ length: 60 }, (_, i) =>
    row(
      "a",
      i,
      `{"level":"${i % 3 ? "info" : "warn"}","n":${i},"pad":"${"p".repeat(14_000)}","o":{"n":1}}`,
    ),
  );
  const merged = openSegmentFile(
    mergeWithFields(makeSegment(directory.path, rows, { id: "whole" })),
  );
  afterAll(merged.close);

  it.each([
    ['sum by (level) (count_over_time({app="a"} | json [1s]))', true],
    ['sum by (level, app) (count_over_time({app="a"} | json | n > 7 [1s]))', true],
    ['max_over_time({app="a"} | json | unwrap n [1s]) by (level)', true],
    ['sum by (level) (count_over_time({app="a"} | json level="level" [1s]))', true],
    ['sum by (level) (count_over_time({app="a"} | json n="n", level | n > 7 [1s]))', true],
    ['sum by (level) (count_over_time({app="a"} | json level="n" [1s]))', true],
    ['sum by (level) (count_over_time({app="a"} | json level="o.n" [1s]))', false],
    ['sum by (level) (count_over_time({app="a"} | json level="n", level="o" [1s]))', false],
    ['sum by (o_n) (count_over_time({app="a"} | json [1s]))', true],
    ['sum by (o_n) (count_over_time({app="a"} | json o_n="o_n" [1s]))', false],
    ['sum by (level) (count_over_time({app="a"} | logfmt [1s]))', false],
    ['sum by (other) (count_over_time({app="a"} | json [1s]))', false],
    ['sum by (level) (bytes_over_time({app="a"} | json [1s]))', false],
    ['count_over_time({app="a"} | json [1s])', false],
  ])("reads no line, if they are all that it wants: %s", (query, spares) => {
    const { source, lines } = countReads(segmentSource(merged.segment));
    const plan = leafOf(query, { from: 100, to: 100 });
    const task = { plan, sources: [{ ref: source as never, sequence: 0 }] };
    scanMetric(task, () => source, context);
    expect(lines.length > 0).toBe(!spares);
    expect(measureScan(task, () => source, context).bytes > 0).toBe(!spares);
  });

  it.each([
    ['sum by (level) (count_over_time({app="a"} | json [1s]))', []],
    ['sum(count_over_time({app="a"} | json n="n" | n > 7 [1s]))', []],
    ['max_over_time({app="a"} | json | unwrap n [1s]) by (level)', [0]],
  ])(
    "reads at most the block with times of two windows, if a query asked the same before: %s",
    (query, wanted) => {
      const source = segmentSource(merged.segment);
      const findings: Findings[] = [];
      const first = answer(query, source, {}, findings);
      const read: number[] = [];
      const block: Source["block"] = (number, pages, memory) => {
        read.push(number);
        return source.block(number, pages, memory);
      };
      expect(answer(query, { ...source, block }, {}, findings)).toEqual(first);
      expect([findings.length, read]).toEqual([1, wanted]);
    },
  );

  it.each([
    ['{app="a"} | json | n > 57', 2],
    ['{app="a"} | json | n = "99"', 0],
    ['{app="a"} | json n="n" | n > 57', 2],
    ['{app="a"} | json level="n" | level > 57', 2],
    ['{app="a"} | json level="level" | n > 57', 60],
    ['{app="a"} | json | n > 57 | pad="q" | drop n | n > 1', 2],
    ['{app="a"} | json | n >= 0', 60],
    ['{app="a"} | logfmt | n > 57', 60],
    ['{app="a"} | json | drop n | n > 57', 60],
    ['{app="a"} | n != "1" | json | n > 57', 60],
    ['{app="a"} | json | n_extracted > 57', 60],
  ])("reads the lines of those blocks that columns leave: %s", (query, rows) => {
    const { source, lines } = countReads(segmentSource(merged.segment));
    const plan = { ...logPlan(query, { from: 0, to: 60 }), limit: 1000 };
    scanLog({ plan, sources: [{ ref: source as never, sequence: 0 }] }, () => source, context);
    const rowsPerBlock = source.runs(0).rowStart.at(-1)!;
    expect(lines.length).toBeLessThanOrEqual(Math.ceil(rows / rowsPerBlock) + 1);
    expect(lines.length > 0).toBe(rows > 0);
    if (rows === 60) expect(lines).toHaveLength(source.blockCount);
  });
});
