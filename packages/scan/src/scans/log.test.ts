import { afterAll, describe, expect, it } from "@jest/globals";
import type { ScanSource } from "@skald/contracts";
import type { LocalRef } from "@skald/storage";
import { openHead } from "../source/source.js";
import {
  contextOf,
  countReads,
  logPlan,
  sampleMask as mask,
  ms,
  rowsOf,
  sampleBytes,
  sampleSources,
} from "../testing/scans.js";
import { makeHead, row } from "../testing/sources.js";
import { scanLog } from "./log.js";

const { refs, open, close } = sampleSources();
afterAll(close);
const context = contextOf();

describe.each(refs)("scanLog over %s", (_name, ref) => {
  const task = (plan = logPlan("{app=~`.+`}"), more: Partial<ScanSource<LocalRef>> = {}) => ({
    plan,
    sources: [{ ref, sequence: 0, ...more }],
  });
  const short = (plan: ReturnType<typeof logPlan>, more: Partial<ScanSource<LocalRef>> = {}) =>
    rowsOf(plan, [scanLog(task(plan, more), open, context).partial]).map(
      ([time, stream, line]) => `${time / ms} ${stream.slice(6, 7)} ${line.split(" ")[1]}`,
    );

  // By their hashes b comes before a.
  it.each([
    [
      "all forward",
      "{app=~`.+`}",
      {},
      [
        "0 b 6",
        "0 a 0",
        "10 b 7",
        "10 a 1",
        "20 b 8",
        "20 a 2",
        "30 b 9",
        "30 a 3",
        "40 b 10",
        "40 a 4",
        "50 b 11",
        "50 a 5",
      ],
    ],
    ["the first three", "{app=~`.+`}", { limit: 3 }, ["0 b 6", "0 a 0", "10 b 7"]],
    [
      "the last three",
      "{app=~`.+`}",
      { limit: 3, direction: "backward" },
      ["50 a 5", "50 b 11", "40 a 4"],
    ],
    [
      "a range: the start is in it, the end is not",
      "{app=`a`}",
      { from: 10 * ms, to: 30 * ms },
      ["10 a 1", "20 a 2"],
    ],
    [
      "a limit within a range",
      "{app=~`.+`}",
      { from: 10 * ms, to: 40 * ms, limit: 2, direction: "backward" },
      ["30 a 3", "30 b 9"],
    ],
    [
      "a filter",
      "{app=~`.+`} |= `even`",
      { limit: 2, direction: "backward" },
      ["40 a 4", "40 b 10"],
    ],
    ["a label filter", "{app=`b`} | trace=`t1`", {}, ["10 b 7", "40 b 10"]],
    ["nothing", "{app=`z`}", {}, []],
  ] as const)("%s", (_case, query, params, want) => {
    expect(short(logPlan(query, params))).toEqual(want);
  });

  it("leaves out excluded rows before it counts to the limit", () => {
    const plan = logPlan("{app=~`.+`}", { limit: 3 });
    expect(short(plan, { mask })).toEqual(["0 b 6", "0 a 0", "10 b 7"]);
  });

  it("leaves out rows worse than the bound, not those as good", () => {
    const plan = logPlan("{app=`a`}", { limit: 6 });
    const boundNs = plan.fromNs + 20n * BigInt(ms);
    const outcome = scanLog({ ...task(plan), boundNs }, open, context);
    expect(rowsOf(plan, [outcome.partial]).map(([time]) => time / ms)).toEqual([0, 10, 20]);
    const back = logPlan("{app=`a`} |= `x`", { limit: 6, direction: "backward" });
    const best = scanLog({ ...task(back), boundNs }, open, context);
    expect(rowsOf(back, [best.partial]).map(([time]) => time / ms)).toEqual([50, 40, 30, 20]);
  });

  it.each(["forward", "backward"] as const)(
    "reads only blocks with rows of the answer: %s",
    (direction) => {
      const spied = countReads(open(ref));
      const plan = logPlan("{app=~`.+`}", { limit: 2, direction });
      scanLog(task(plan), () => spied.source, context);
      expect(spied.lines).toEqual(direction === "forward" ? [0, 3] : [2, 5]);
    },
  );

  it.each(["forward", "backward"] as const)(
    "stops early when a filter lets enough pass: %s",
    (direction) => {
      const spied = countReads(open(ref));
      const plan = logPlan("{app=`a`} |= `x`", { limit: 2, direction });
      const { partial } = scanLog(task(plan), () => spied.source, context);
      expect(partial.rowCount).toBe(2);
      expect(spied.lines).toEqual(direction === "forward" ? [0] : [2]);
    },
  );

  it("ends between blocks when the query was cancelled", () => {
    let left = 2;
    const check = () => {
      if (left-- === 0) throw new Error("cancelled");
    };
    const spied = countReads(open(ref));
    const plan = logPlan("{app=~`.+`} |= `none`");
    expect(() => scanLog(task(plan), () => spied.source, { check })).toThrow("cancelled");
    expect(spied.lines).toHaveLength(2);
  });

  it("refuses lines that take more than the plan allows", () => {
    const plan = { ...logPlan("{app=~`.+`}"), maxLineBytes: 0.9 * sampleBytes };
    expect(() => scanLog(task(plan), open, context)).toThrow("lower the parameter limit");
    expect(scanLog(task({ ...plan, limit: 2 }), open, context).partial.rowCount).toBe(2);
  });
});

describe("scanLog over several sources", () => {
  it("finds the best rows of all, over days", () => {
    const days = 100;
    const dayNs = 86_400_000_000_000;
    const sources = Array.from({ length: days }, (_, day) => {
      const later = [1, 2, 3].map((i) => row("a", day * dayNs * 3 + i, `${day} ${i}`));
      return { ref: makeHead(later, { id: `d${day}` }), sequence: day };
    });
    const plan = logPlan("{app=`a`}", { to: days * 3 * dayNs, limit: 4, direction: "backward" });
    const outcome = scanLog({ plan, sources }, (ref) => openHead(ref as never), context);
    expect(rowsOf(plan, [outcome.partial]).map(([, , line]) => line)).toEqual([
      "99 3",
      "99 2",
      "99 1",
      "98 3",
    ]);
  });

  it("has no rows of no sources", () => {
    const plan = logPlan("{app=`a`}");
    expect(scanLog({ plan, sources: [] }, open, context).partial.rowCount).toBe(0);
  });
});
