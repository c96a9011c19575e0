import { describe, expect, it } from "@jest/globals";
import type { HeadRef } from "@skald/contracts";
import type { LeafPlan, LogPlan, MetricPlan } from "@skald/logql";
import { emptyReadStats, type SegmentRef } from "@skald/model";
import type { PlannedSource } from "../find/order-sources.js";
import { planOf } from "../testing/requests.js";
import { KnownGrowths, type QueryTask, TaskCutter } from "./cut-tasks.js";

const mib = 1024 * 1024;

function segment(
  id: string,
  mibStored: number,
  side: PlannedSource["side"] = "store",
): PlannedSource {
  const ref: SegmentRef = {
    kind: "segment",
    id,
    tenant: "t",
    minNs: 0n,
    maxNs: 0n,
    sizeBytes: mibStored * mib,
    location: { kind: "file", path: id },
  };
  return { ref, side, sequence: 0, older: [] };
}

function head(id: string, blocks: number): PlannedSource {
  const ref: HeadRef = {
    ...{ kind: "head", id, tenant: "t", minNs: 0n, maxNs: 0n },
    view: "v",
    sizeBytes: blocks * mib,
  };
  return { ref, side: "ingester", sequence: 0, older: [] };
}

const cut = (sources: readonly PlannedSource[], split = true) =>
  new TaskCutter(sources, { split, threads: 2 });

const nameOf = ({ side, sources }: QueryTask) =>
  [
    side,
    ...sources.map(({ source: { ref }, part }) =>
      part === undefined
        ? ref.id
        : `${ref.id}:${Math.round(100 * part.from)}-${Math.round(100 * part.to)}`,
    ),
  ].join(" ");

const told = (sources: readonly PlannedSource[], split = true) =>
  [...cut(sources, split).take()].map(nameOf);

describe("TaskCutter", () => {
  it("puts small sources together and cuts large ones, in their order", () => {
    const sources = [
      segment("a", 0.5),
      segment("b", 0.5),
      segment("c", 7),
      segment("d", 0.1),
      head("e", 30),
    ];
    expect(told(sources)).toEqual([
      "store a b",
      "store c:0-50",
      "store c:50-100",
      "store d",
      "ingester e:0-50",
      "ingester e:50-100",
    ]);
  });

  it("leaves something for every thread", () => {
    const four = [segment("a", 0.2), segment("b", 0.2), segment("c", 0.2), segment("d", 0.2)];
    expect(told(four)).toEqual(["store a", "store b", "store c", "store d"]);
    const tiny = four.map(({ ref }) => segment(ref.id, 0.002));
    expect(told(tiny)).toEqual(["store a b c d"]);
  });

  it("leaves large ones whole when asked to", () => {
    expect(told([segment("a", 7), segment("b", 7), head("c", 1)], false)).toEqual([
      "store a",
      "store b",
      "ingester c",
    ]);
  });

  it("keeps the sides apart and bounds the sources of a task", () => {
    const many = Array.from({ length: 130 }, (_, i) => segment(`${i}`, 0));
    expect([...cut(many).take()].map(({ sources }) => sources.length)).toEqual([64, 64, 2]);
    expect(told([segment("a", 0), segment("b", 0, "ingester"), segment("c", 0)])).toEqual([
      "store a",
      "ingester b",
      "store c",
    ]);
    expect(told([])).toEqual([]);
  });

  it("makes larger tasks of what is hardly read, and smaller ones of the last", () => {
    const sources = Array.from({ length: 40 }, (_, i) => segment(`${i}`, 7));
    const cutter = cut(sources);
    const sizes = () => [...cutter.take()].map(({ bytes }) => Math.round(bytes / mib));
    const first = cutter.next() as QueryTask;
    expect(nameOf(first)).toBe("store 0:0-50");
    cutter.learn(first, { ...emptyReadStats(), decompressedBytes: first.bytes / 10 });
    expect(nameOf(cutter.next() as QueryTask)).toBe("store 0:50-100 1 2 3 4");
    expect(sizes()).toEqual([
      ...[140, 140, 140, 140, 140, 105, 105, 70],
      ...[35, 35, 35, 35, 35, 35, 35],
    ]);
  });

  it("makes few tasks where headers are enough, and the usual ones of heads", () => {
    const sources = [...Array.from({ length: 30 }, (_, i) => segment(`${i}`, 7)), head("h", 64)];
    const tasks = [
      ...new TaskCutter(sources, { split: true, threads: 2, onlyHeaders: true }).take(),
    ];
    expect(tasks.map(({ sources }) => sources.length)).toEqual([14, 14, 2, 1, 1, 1, 1]);
  });

  it("counts a row less where rows are counted and hardly a page was read", () => {
    const rows = mib / 64;
    const growth = (onlyCounts: boolean, compressedBytes: number) => {
      const cutter = new TaskCutter([segment("a", 7)], { split: true, threads: 2, onlyCounts });
      const first = cutter.next() as QueryTask;
      const stats = { ...emptyReadStats(), decompressedLines: rows, compressedBytes };
      cutter.learn(first, stats);
      return Math.round((cutter.growth! * mib) / first.bytes);
    };
    const all = [growth(false, 0), growth(true, 0), growth(true, rows), growth(true, 2 * rows)];
    expect(all).toEqual([1, 8, 2, 1]);
  });

  it("does not learn from tasks that read everything, nor from those that may stop early", () => {
    const sources = Array.from({ length: 4 }, (_, i) => segment(`${i}`, 7));
    for (const [split, read] of [
      [true, 1],
      [false, 0],
    ] as const) {
      const cutter = cut(sources, split);
      const first = cutter.next() as QueryTask;
      cutter.learn(first, { ...emptyReadStats(), headBytes: first.bytes * read });
      expect(cutter.next()?.bytes).toBeCloseTo(first.bytes);
    }
  });
});

describe("KnownGrowths", () => {
  const plan = planOf("{app=`a`} |= `x`") as LogPlan;
  const one = [segment("s", 7), segment("t", 8)];

  it("let the same query begin with the tasks that an earlier one ended with", () => {
    const sources = Array.from({ length: 40 }, (_, i) => segment(`${i}`, 7));
    const growths = new KnownGrowths();
    const next = () =>
      new TaskCutter(sources, { split: true, threads: 2, growth: growths.of(plan, sources) });
    const first = next();
    const small = first.next() as QueryTask;
    expect([small.bytes, small.readBytes].map((bytes) => bytes / mib)).toEqual([17.5, 17.5]);
    first.learn(small, { ...emptyReadStats(), decompressedBytes: small.bytes / 50 });
    growths.note(plan, first.sources, first.growth);
    const large = next().next() as QueryTask;
    expect(large.bytes / mib).toBe(350);
    expect(Math.round(large.readBytes / mib)).toBe(7);
  });

  it("tell the last where nearly the same rows are counted again, and else the least", () => {
    const growths = new KnownGrowths();
    const leafOf = (from: number, to: number) => {
      const [leaf] = (planOf("sum(count_over_time({app=`a`} |= `x` [2s]))") as MetricPlan).leaves;
      return { ...leaf!, fromNs: BigInt(from), toNs: BigInt(to) };
    };
    growths.note(leafOf(0, 12), one, undefined);
    expect(growths.of(leafOf(0, 12), one)).toBeUndefined();
    // What the last found may be forgotten: it counts no more than eight times the least.
    for (const growth of [50, 8, 90]) growths.note(leafOf(0, 12), one, growth);
    expect(growths.of(leafOf(0, 12), [...one, segment("new", 1)])).toBe(64);
    expect(growths.of(leafOf(0, 12), [...one, segment("merged", 15)])).toBe(8);
    const others = [leafOf(0, 5), leafOf(2, 14), leafOf(4, 16), leafOf(0, 20)];
    expect(others.map((other) => growths.of(other, one))).toEqual([64, 64, 8, 8]);
    for (const growth of [8, 90]) growths.note(plan, one, growth);
    expect(growths.of(plan, one)).toBe(8);
  });

  it("are by all that makes a scan but its times", () => {
    const growths = new KnownGrowths();
    growths.note(plan, one, 8);
    const [leaf] = (planOf("sum(count_over_time({app=`a`} |= `x` [2s]))") as MetricPlan).leaves;
    growths.note(leaf as LeafPlan, one, 3);
    for (const other of ["{app=`a`} |= `y`", "{app=`b`} |= `x`", "{app=`a`} |= `x` | length > 5s"])
      expect(growths.of(planOf(other) as LogPlan, one)).toBeUndefined();
    const by = planOf("sum by (b) (count_over_time({app=`a`} |= `x` [2s]))") as MetricPlan;
    const known = [leaf as LeafPlan, by.leaves[0]!].map((plan) => growths.of(plan, one));
    expect(known).toEqual([3, undefined]);
  });

  it("forget the plans that were noted first", () => {
    const growths = new KnownGrowths();
    const planAt = (i: number) => planOf(`{app="a"} |= "${i}"`) as LogPlan;
    for (let i = 0; i <= 1000; i++) growths.note(planAt(i), one, i + 1);
    expect([0, 1, 1000].map((i) => growths.of(planAt(i), one))).toEqual([undefined, 2, 1001]);
  });
});
