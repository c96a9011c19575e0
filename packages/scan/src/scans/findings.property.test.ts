import { afterAll, describe, expect, it } from "@jest/globals";
import type { RowMask } from "@skald/contracts";
import {
  type Findings,
  findingsKey,
  joinLines,
  mergeLogPartials,
  mergeMetricPartials,
} from "@skald/logql";
import { openSegmentFile } from "@skald/storage";
import { type Random, seededRandom, testRuns, testSeed } from "@skald/testkit";
import { type Source, segmentSource } from "../source/source.js";
import { contextOf, countReads, leafOf, logPlan } from "../testing/scans.js";
import { makeDirectory, makeSegment, row } from "../testing/sources.js";
import { scanLog } from "./log.js";
import { scanMetric } from "./metric.js";

const directory = makeDirectory();
const closers: (() => void)[] = [];
afterAll(() => {
  for (const close of closers) close();
  directory.remove();
});
const ms = 1_000_000;
const rowCount = 600;
/** Times a row: with the second, blocks have slices of time. */
const paces = [ms, 100 * ms] as const;

const pattern = "| pattern `<_>=<method> <_>=<status> <_>`";
const queries = [
  'sum by (app) (count_over_time({app=~".+"} |= "GET" [100ms]))',
  'sum(count_over_time({app="a"} |~ "status=5[0-9]" != "x7" [50ms]))',
  `sum by (status) (count_over_time({app=~".+"} ${pattern} [100ms]))`,
  `sum by (status, app) (count_over_time({app=~"b|c"} ${pattern} | status != "200" [70ms]))`,
  'sum by (method) (count_over_time({app=~".+"} | regexp "m=(?P<method>[A-Z]+)" [100ms]))',
  'sum by (status) (count_over_time({app=~".+"} | logfmt | took > 20ms [100ms]))',
  'count_over_time({app="a"} | logfmt | trace="t1" [100ms])',
  'sum by (took) (count_over_time({app=~".+"} | logfmt [100ms]))',
  'sum without (took, n) (count_over_time({app=~".+"} | logfmt | status="500" [100ms]))',
  'sum by (app) (sum_over_time({app=~".+"} | logfmt | unwrap n | __error__="" [100ms]))',
  'avg_over_time({app=~".+"} | logfmt | unwrap duration(took) | __error__="" [100ms]) by (status)',
  'first_over_time({app=~".+"} | logfmt | unwrap n | __error__="" [100ms]) by (app)',
  'quantile_over_time(0.9, {app=~".+"} | logfmt | unwrap n | __error__="" [100ms]) by (app)',
  'count_over_time({app=~".+"} |= "status=5000" [100ms])',
  'avg by (app) (sum_over_time({app=~".+"} | logfmt | unwrap n | __error__="" [100ms]))',
  'sum by (app) (rate_counter({app=~".+"} | logfmt | unwrap n | __error__="" [100ms]))',
];
const unkept = [
  'sum_over_time({app=~".+"} | logfmt | unwrap n [100ms])',
  'sum by (app) (bytes_over_time({app=~".+"} |= "GET" [100ms]))',
  'count_over_time({app=~".+"} | line_format "{{.app}}{{__timestamp__}}" |= "a1" [100ms])',
];

const logQueries = [
  '{app=~".+"} |= "GET"',
  '{app="a"} |~ "status=5[0-9]" != "x7"',
  '{app=~".+"} | logfmt | took > 20ms | status != "200"',
  '{app=~".+"} |= "POST" | logfmt | n > 50 | line_format "{{.n}} {{.app}}" | drop took',
  `{app=~".+"} ${pattern} | status="404"`,
  '{app=~".+"} | trace="t1"',
];
const unkeptLogs = [
  '{app=~".+"}',
  '{app=~".+"} | logfmt',
  '{app=~".+"} | line_format "{{.app}}{{__timestamp__}}" |= "a1"',
];

function randomLine(random: Random): string {
  const status = [200, 200, 404, 500][random(4)];
  const n = random(20) === 0 ? "odd" : random(1000) / 10;
  const method = ["GET", "POST", "PUT"][random(3)];
  return `m=${method} status=${status} took=${random(90)}ms n=${n} x${random(9)}${" ".repeat(random(20_000))}`;
}

function segmentOf(random: Random, id: string, pace: number = ms): Source {
  const rows = Array.from({ length: rowCount }, (_, i) => {
    const made = row("abc"[random(3)]!, (i - (i % 3)) * pace, randomLine(random));
    return random(3) === 0 ? { ...made, metadata: { trace: `t${random(3)}` } } : made;
  });
  const { segment, close } = openSegmentFile(makeSegment(directory.path, rows, { id }));
  closers.push(close);
  return segmentSource(segment);
}

/** The answer to a query with what earlier scans found, and what this one finds. */
function scan(query: string, source: Source, findings: readonly Findings[], options: object = {}) {
  const { pace = ms, ...rest } = options as { pace?: number };
  const { from = 0, to = rowCount * pace, ...scanned } = rest as { from?: number; to?: number };
  const paced = query.replace(/(\d+)ms\]/, (_, range) => `${(range * pace) / ms}ms]`);
  const leaf = leafOf(paced, { from, to, stepNs: BigInt(100 * pace) });
  const location = { kind: "file", path: "p" };
  const ref = { ...source, location, findings } as never;
  const made: Findings[] = [];
  const context = { ...contextOf(), onFindings: (_: string, one: Findings) => made.push(one) };
  const task = { plan: leaf, sources: [{ ref, sequence: 0, ...scanned }] };
  try {
    const { partial } = scanMetric(task, () => source, context);
    return { answer: mergeMetricPartials(leaf, [partial]), made };
  } catch (error) {
    return { answer: (error as Error).message, made };
  }
}

/** The same of a log query: its rows with all of their labels. */
function scanLogs(query: string, source: Source, findings: readonly Findings[], options: object) {
  const asked = options as Parameters<typeof logPlan>[1] & object;
  const plan = logPlan(query, { from: 0, to: rowCount * ms, limit: 5000, ...asked });
  const { mask, tenantLabel } = options as { mask?: RowMask; tenantLabel?: string };
  const scanned = { ...(mask && { mask }), ...(tenantLabel === undefined ? {} : { tenantLabel }) };
  const ref = { ...source, location: { kind: "file", path: "p" }, findings } as never;
  const made: Findings[] = [];
  const context = { ...contextOf(), onFindings: (_: string, one: Findings) => made.push(one) };
  const task = { plan, sources: [{ ref, sequence: 0, ...scanned }] };
  const { partial } = scanLog(task, () => source, context);
  const { lines: found, timestamps, labels, labelSet } = mergeLogPartials(plan, [partial]);
  const lines = joinLines(found);
  const text = Buffer.from(lines.bytes).toString("latin1");
  const rest = JSON.stringify([timestamps.join(), [...lines.offsets], labels, [...labelSet]]);
  return { answer: rest + text, rowCount: timestamps.length, made };
}

function randomMask(random: Random, { blockCount, runs }: Source) {
  const blocks = Uint32Array.from({ length: blockCount }, (_, block) => block);
  const rows = Array.from(blocks, (block) => {
    const count = runs(block).rowStart.at(-1)!;
    const all = Uint32Array.from({ length: count }, (_, i) => i);
    return all.filter(() => random(4) === 0);
  });
  return { blocks, rows };
}

it("scans with findings of others answer as scans without, whatever their ranges, streams and masks", () => {
  for (let run = 0; run < testRuns(4); run++) {
    const random = seededRandom(testSeed() * 1000 + run);
    const pace = paces[run % 2]!;
    const source = segmentOf(random, `s${run}`, pace);
    for (const query of [...queries, ...unkept]) {
      const findings: Findings[] = [];
      for (let i = 0; i < 6; i++) {
        const from = random(2) * random(rowCount) * pace;
        const to = from + (1 + random(rowCount)) * pace;
        const mask = random(3) === 0 ? { mask: randomMask(random, source) } : {};
        const options = { pace, ...(random(3) === 0 ? {} : { from, to }), ...mask };
        const app = ["a", "b", ".+"][random(3)];
        const asked = query.replace(/app=~?"[^"]*"/, `app=~"${app}"`);
        const found = scan(asked, source, findings, options);
        expect([asked, found.answer]).toEqual([asked, scan(asked, source, [], options).answer]);
        findings.push(...found.made);
      }
    }
  }
});

it("the same of log queries, whatever their limits and directions", () => {
  for (let run = 0; run < testRuns(4); run++) {
    const random = seededRandom(testSeed() * 1000 + run);
    const source = segmentOf(random, `l${run}`);
    for (const query of [...logQueries, ...unkeptLogs]) {
      const findings: Findings[] = [];
      for (let i = 0; i < 8; i++) {
        const from = random(2) * random(rowCount) * ms;
        const options = {
          ...(random(3) === 0 ? {} : { from, to: from + (1 + random(rowCount)) * ms }),
          ...(random(3) === 0 ? { mask: randomMask(random, source) } : {}),
          direction: random(2) === 0 ? "forward" : "backward",
          limit: random(2) === 0 ? 1 + random(40) : 5000,
        };
        const app = ["a", "b", ".+"][random(3)];
        const asked = query.replace(/app=~?"[^"]*"/, `app=~"${app}"`);
        const found = scanLogs(asked, source, findings, options);
        expect(found.answer === scanLogs(asked, source, [], options).answer || asked).toBe(true);
        findings.push(...found.made);
      }
    }
  }
});

describe("a log query whose stages ran over the blocks before", () => {
  const source = segmentOf(seededRandom(2), "known logs");
  const rare = '{app=~".+"} |~ "n=(7|8)[0-9.]* x5" | logfmt | took < 40ms';

  it("reads no block without a row that passes, and finds nothing anew", () => {
    const { made, answer, rowCount: found } = scanLogs(rare, source, [], {});
    const { source: spied, lines } = countReads(source);
    const again = scanLogs(rare, spied, made, {});
    expect([again.answer === answer, again.made]).toEqual([true, []]);
    expect(lines.length).toBeGreaterThan(0);
    expect(lines.length).toBeLessThanOrEqual(found);
    expect(lines.length).toBeLessThan(source.blockCount / 2);
  });

  it("shares it with those that only show the rows in another way", () => {
    const { made } = scanLogs(rare, source, [], {});
    const keyOf = (query: string) => findingsKey(logPlan(query, {}));
    expect(made).toHaveLength(1);
    expect(keyOf(`${rare} | line_format "{{.n}}"`)).toBe(keyOf(rare));
    expect(keyOf(`${rare} |= "x"`)).not.toBe(keyOf(rare));
  });

  it("is not shared by aggregations that read other labels", () => {
    const keyOf = (outer: string) =>
      findingsKey(leafOf(`${outer} (rate({app="a"} | logfmt [100ms]))`, { from: 0, to: ms }));
    expect(new Set(["avg", "avg by (app)", "avg by (n)", "sort"].map(keyOf)).size).toBe(4);
    expect(keyOf("max by (n)")).toBe(keyOf("avg by (n)"));
  });

  it.each(unkeptLogs)("%s leaves nothing", (query) => {
    expect(scanLogs(query, source, [], {}).made).toEqual([]);
  });

  it("leaves nothing when rows get a label of the query", () => {
    expect(scanLogs(rare, source, [], { tenantLabel: "t" }).made).toEqual([]);
  });
});

describe("a query whose stages ran over the blocks before", () => {
  const source = segmentOf(seededRandom(1), "known");

  it.each(queries)("%s reads no line", (query) => {
    const { made, answer } = scan(query, source, []);
    const { source: spied, lines } = countReads(source);
    expect(scan(query, spied, made)).toEqual({ answer, made: [] });
    expect([made.length, lines]).toEqual([1, []]);
  });

  it("reads times only where slices of time do not tell the buckets", () => {
    const slow = { pace: paces[1] };
    const sliced = segmentOf(seededRandom(3), "sliced", slow.pace);
    const timesOf = (query: string) => {
      const { made, answer } = scan(query, sliced, [], slow);
      const { source: spied, times } = countReads(sliced);
      expect(scan(query, spied, made, slow)).toEqual({ answer, made: [] });
      return times.length;
    };
    expect(timesOf(queries[2]!)).toBeLessThan(sliced.blockCount / 10);
    expect(timesOf(queries[2]!.replace("[100ms]", "[70ms]"))).toBeGreaterThan(
      sliced.blockCount / 2,
    );
  });

  it("counts each row once where an edge cuts a slice of a run behind one that lies in the window", () => {
    const rows = Array.from({ length: 600 }, (_, i) => {
      const app = Math.floor(i / 30);
      const time = ((i % 30) + 1) * (app % 2 === 0 ? 100 : 400) * ms;
      return row(String.fromCharCode(97 + app), time, `${i % 7 ? "yes" : "no"}${"-".repeat(4000)}`);
    });
    const { segment, close } = openSegmentFile(makeSegment(directory.path, rows, { id: "cut" }));
    closers.push(close);
    const cut = segmentSource(segment);
    const query = 'sum(count_over_time({app=~".+"} |= "yes" [20s]))';
    const at = (seconds: number) => ({ from: seconds * 1000 * ms, to: seconds * 1000 * ms });
    const { made } = scan(query, cut, [], at(13));
    expect(made).toHaveLength(1);
    expect(cut.slices(0, 1)).toBeDefined();
    expect(scan(query, cut, made, at(7)).answer).toEqual(scan(query, cut, [], at(7)).answer);
  });

  it.each(unkept)("%s leaves nothing, for its error, bytes or template", (query) => {
    expect(scan(query, source, []).made).toEqual([]);
  });

  it("serves other steps and functions with the same stages, and no other stages", () => {
    const byStatus = queries[2];
    const { made } = scan(byStatus!, source, []);
    const read = (query: string) => {
      const { source: spied, lines } = countReads(source);
      scan(query, spied, made);
      return lines.length;
    };
    expect(read(byStatus!.replace("[100ms]", "[30ms]").replace('".+"', '"b"'))).toBe(0);
    expect(read(byStatus!.replace("count_over_time", "rate"))).toBe(0);
  });

  it("leaves nothing when it reads few blocks, or gives rows a label of its own", () => {
    const [query] = queries;
    expect(scan(query!, source, [], { part: { from: 0, to: 0.1 } }).made).toEqual([]);
    expect(scan(query!, source, [], { tenantLabel: "t" }).made).toEqual([]);
    expect(scan(query!, source, []).made).toHaveLength(1);
  });
});
