import { describe, expect, it } from "@jest/globals";
import type { LogPlan, QueryParams } from "../plan/plan.js";
import { planQuery } from "../plan/planner.js";
import { parseQuery } from "../syntax/parser.js";
import { makeBlock } from "../testing/memory-block.js";
import { lineAt, mergeLogPartials, timestampNs } from "./log-rows.js";
import { startLogScan } from "./log-scan.js";

const t0 = 1_700_006_400_000_000_000n;

function logPlan(query: string, over: Partial<QueryParams> = {}): LogPlan {
  const plan = planQuery(parseQuery(query), {
    startNs: t0,
    endNs: t0 + 1000n,
    stepNs: 1n,
    limit: 3,
    direction: "backward",
    intervalNs: 0n,
    ...over,
  });
  if (plan.kind !== "log") throw new Error("a metric plan");
  return plan;
}

function block(times: readonly number[], line = "x") {
  return makeBlock(times.map((time) => ({ labels: { a: "b" }, ts: t0 + BigInt(time), line })));
}

const everyRun = { runs: Uint32Array.of(0) };

describe("a log scan", () => {
  it("knows the worst time once it has enough rows", () => {
    const scan = startLogScan(logPlan('{a="b"}'));
    const first = block([10, 20]);
    scan.addBlock(first.block, first.streamLabels, everyRun, 0);
    expect(scan.worstTime()).toBeUndefined();
    const second = block([30, 40]);
    scan.addBlock(second.block, second.streamLabels, everyRun, 1);
    expect(scan.worstTime()).toBe(t0 + 20n);
    const { places, truncated } = scan.finish();
    expect([0, 1, 2].map((i) => timestampNs(places, i))).toEqual([t0 + 40n, t0 + 30n, t0 + 20n]);
    expect(truncated).toBe(true);
  });

  it("does not read rows that are worse than those it has", () => {
    const scan = startLogScan(logPlan('{a="b"} | json', { limit: 1, direction: "forward" }));
    const first = block([10, 11], "{}");
    scan.addBlock(first.block, first.streamLabels, everyRun, 0);
    const { block: worse, streamLabels } = block([20, 21], "{}");
    const lines = () => {
      throw new Error("the lines of a worse block were read");
    };
    scan.addBlock({ ...worse, lines }, streamLabels, everyRun, 1);
    const { places, rowCount } = scan.finish();
    expect([rowCount, timestampNs(places, 0)]).toEqual([1, t0 + 10n]);
  });

  it("has the time of its plan for now, as every scan of the query", () => {
    const plan = logPlan('{a="b"} | line_format "{{ now | unixEpochNanos }}"', { nowNs: t0 - 7n });
    const scan = startLogScan(plan);
    const { block: one, streamLabels } = block([10]);
    scan.addBlock(one, streamLabels, everyRun, 0);
    const { lines } = scan.finish();
    expect(Buffer.from(lines.bytes.subarray(0, lines.offsets[1])).toString()).toBe(`${t0 - 7n}`);
  });

  it("drops the label sets of rows that it drops", () => {
    const scan = startLogScan(logPlan('{a="b"} | logfmt', { limit: 1 }));
    for (let i = 0; i < 20; i++) {
      const { block: one, streamLabels } = block([i], `n=${i}`);
      scan.addBlock(one, streamLabels, everyRun, i);
    }
    const { labels, labelSet } = scan.finish();
    expect(labels.map((set) => set.labels.values)).toEqual([["b", "19"]]);
    expect([...labelSet]).toEqual([0]);
  });

  it("returns lines as stages left them, with labels by origin", () => {
    const rows = [{ labels: { a: "b" }, ts: t0, line: "k=v", metadata: { level: "info" } }];
    const { block: one, streamLabels } = makeBlock(rows);
    const scan = startLogScan(logPlan('{a="b"} | logfmt | line_format "<{{.k}}>"'));
    scan.addBlock(one, streamLabels, everyRun, 0);
    const result = mergeLogPartials(logPlan('{a="b"}'), [scan.finish()]);
    expect(new TextDecoder().decode(lineAt(result.lines, 0))).toBe("<v>");
    expect(result.labels[0]?.categories).toEqual({
      stream: { names: ["a"], values: ["b"] },
      structuredMetadata: { names: ["level"], values: ["info"] },
      parsed: { names: ["k"], values: ["v"] },
    });
  });

  it("holds no more made lines of a block than it may", () => {
    const made = '{a="b"} | line_format "{{ repeat 100000 `x` }}"';
    const { block: one, streamLabels } = block(new Array<number>(100).fill(5));
    const scan = startLogScan({ ...logPlan(made, { limit: 100 }), maxLineBytes: 1_000_000 });
    expect(() => scan.addBlock(one, streamLabels, everyRun, 0)).toThrow(
      "the query needs more than 1000000 bytes of memory",
    );
  });

  it.each([
    [3, "takes"],
    [4, "refuses"],
  ])("holds rows up to half of what the query may: %s rows of 164 bytes of 1000", (rows, says) => {
    const { block: one, streamLabels } = block(new Array<number>(rows).fill(5), "x".repeat(100));
    const scan = startLogScan({ ...logPlan('{a="b"}', { limit: 100 }), maxLineBytes: 1000 });
    const add = () => scan.addBlock(one, streamLabels, everyRun, 0);
    if (says === "takes") expect(add).not.toThrow();
    else expect(add).toThrow("the query needs more than 1000 bytes of memory");
  });

  it.each([
    [1, [40]],
    // Rows of one time stay together.
    [150, [40, 30, 30, 30]],
    [450, [40, 30, 30, 30, 20]],
    [600, [40, 30, 30, 30, 20, 10]],
  ])("ends behind %s bytes of lines, at a time of which it has all rows", (scanBytes, want) => {
    const plan = { ...logPlan('{a="b"}', { limit: 100 }), scanBytes };
    const scan = startLogScan(plan);
    for (const times of [
      [40, 30],
      [30, 20],
      [30, 10],
    ]) {
      const { block: one, streamLabels } = block(times, "x".repeat(100));
      scan.addBlock(one, streamLabels, everyRun, times[1]!);
    }
    const { places, rowCount, truncated } = scan.finish();
    const held = Array.from({ length: rowCount }, (_, i) => Number(timestampNs(places, i) - t0));
    expect(held).toEqual(want);
    expect(truncated).toBe(want.length < 6);
  });

  it("takes at least a quarter of what it reads", () => {
    const scan = startLogScan({ ...logPlan('{a="b"}', { limit: 100 }), scanBytes: 1 });
    const { block: one, streamLabels } = block([1, 2, 3, 4, 5, 6, 7, 8], "x".repeat(100));
    scan.addBlock(one, streamLabels, everyRun, 0);
    expect(scan.finish()).toMatchObject({ rowCount: 2, truncated: true });
  });

  it("holds no more bytes of labels than it may", () => {
    const made = '{a="b"} | label_format x="{{ repeat 100000 __line__ }}"';
    const rows = Array.from({ length: 100 }, (_, i) => ({
      labels: { a: "b" },
      ts: t0 + BigInt(i),
      line: String(i),
    }));
    const { block: one, streamLabels } = makeBlock(rows);
    const scan = startLogScan({ ...logPlan(made, { limit: 100 }), maxLineBytes: 1_000_000 });
    expect(() => scan.addBlock(one, streamLabels, everyRun, 0)).toThrow(
      "the labels of the answer take more than 1000000 bytes",
    );
  });

  it.each([
    ['{a="b"} | line_format "{{ repeat 100000 `x` }}" |= "y"', 100],
    ['{a="b"} | logfmt | x="y"', 10_000],
  ])("looks within a block whether to stop %s", (query, count) => {
    const { block: one, streamLabels } = block(new Array<number>(count).fill(5), "x=z y");
    const stop = new Error("stopped");
    let asked = 0;
    const scan = startLogScan(logPlan(query, { limit: count }), () => {
      if (++asked === 2) throw stop;
    });
    expect(() => scan.addBlock(one, streamLabels, everyRun, 0)).toThrow(stop);
  });

  it.each([
    // 10 and 30 are no row of an interval, whatever rows other scans have: 0 was taken, and 20 before 30.
    ["forward", [0, 10, 20, 30, 40], 20n, 3, [0, 20, 40]],
    // 41 may be taken: another scan may have a row at 20. No row makes 38 one that is taken.
    ["forward", [0, 10, 22, 38, 41, 44, 50], 20n, 4, [0, 22, 41, 44]],
    ["backward", [999, 989, 979, 969, 959], 20n, 2, [999, 979]],
    ["forward", [25, 25, 25, 26], 10n, 3, [25, 26]],
    // Nobody knows what there is before 500: all rows may be taken.
    ["forward", [500, 510, 519, 521], 20n, 5, [500, 510, 519, 521]],
  ] as const)(
    "holds the rows that an interval may take, %s: %j",
    (direction, times, intervalNs, limit, want) => {
      const plan = logPlan('{a="b"}', { intervalNs, limit, direction });
      const scan = startLogScan(plan);
      const { block: one, streamLabels } = block(times);
      scan.addBlock(one, streamLabels, everyRun, 0);
      const { places, rowCount } = scan.finish();
      const held = Array.from({ length: rowCount }, (_, i) => Number(timestampNs(places, i) - t0));
      expect(held).toEqual(want);
    },
  );

  it("holds a thousand rows that an interval may take, and says that there are more", () => {
    const times = Array.from({ length: 3000 }, (_, i) => 10_000 + i);
    const plan = logPlan('{a="b"}', {
      ...{ endNs: t0 + 20_000n, intervalNs: 1000n },
      ...{ limit: 50, direction: "forward" },
    });
    const scan = startLogScan(plan);
    const { block: one, streamLabels } = block(times);
    scan.addBlock(one, streamLabels, everyRun, 0);
    expect(scan.worstTime()).toBe(t0 + 10_999n);
    expect(scan.finish()).toMatchObject({ rowCount: 1000, truncated: true });
  });

  it("has no worst time while an interval takes fewer rows than the limit", () => {
    const plan = logPlan('{a="b"}', { intervalNs: 20n, limit: 3, direction: "forward" });
    const scan = startLogScan(plan);
    const { block: one, streamLabels } = block([0, 10, 20, 30]);
    scan.addBlock(one, streamLabels, everyRun, 0);
    expect(scan.worstTime()).toBeUndefined();
    expect(scan.finish()).toMatchObject({ rowCount: 2, truncated: false });
  });
});
