import { afterAll, describe, expect, it } from "@jest/globals";
import type { RowFilter } from "@skald/contracts";
import { type LogExpr, parseQuery, parseSelector } from "@skald/logql";
import { maskRows } from "../source/row-mask.js";
import { contextOf, countReads, ms, sampleSources } from "../testing/scans.js";
import { testDayNs } from "../testing/sources.js";
import { scanMatches } from "./matches.js";

const { refs, open, close } = sampleSources();
afterAll(close);

function filter(query: string, from: number, to: number, more: Partial<RowFilter> = {}): RowFilter {
  return {
    fromNs: testDayNs + BigInt(from * ms),
    toNs: testDayNs + BigInt(to * ms),
    log: parseQuery(query) as LogExpr,
    nowNs: 0n,
    ...more,
  };
}

describe.each(refs)("scanMatches of a %s", (_, ref) => {
  const ids = (filters: readonly RowFilter[]) => {
    const source = open(ref);
    const { masks, rowCount } = scanMatches({ sources: [{ ref }], filters }, open, contextOf());
    expect(rowCount).toBe(12);
    return masks.map(({ blocks, rows }) =>
      [...blocks]
        .flatMap((block, i) => {
          const { bytes, offsets } = source.block(block).lines();
          return [...rows[i]!].map((row) =>
            Buffer.from(bytes.subarray(offsets[row], offsets[row + 1]))
              .toString()
              .split(" ", 2)
              .join(" "),
          );
        })
        .map((line) => Number(line.split(" ")[1]))
        .sort((a, b) => a - b),
    );
  };

  it.each<[string, RowFilter, number[]]>([
    ["a whole stream", filter("{app=`a`}", 0, 51), [0, 1, 2, 3, 4, 5]],
    ["all rows of a range, its end not among them", filter("{app=~`.+`}", 10, 30), [1, 2, 7, 8]],
    ["a range without rows", filter("{app=`a`}", 51, 99), []],
    ["no range at all", filter("{app=`a`}", 20, 20), []],
    ["another stream", filter("{app=`c`}", 0, 99), []],
    ["lines", filter("{app=`b`} |= `even`", 0, 99), [6, 8, 10]],
    [
      "a pattern, and not another",
      filter("{app=~`a|b`} |~ `odd [0-9] ` != `odd 3`", 0, 99),
      [1, 5, 7, 9],
    ],
    ["metadata", filter("{app=`a`} | trace=`t1`", 0, 99), [1, 4]],
    ["lines within a range", filter("{app=`a`} |= `even`", 20, 41), [2, 4]],
    ["what a stage changed", filter("{app=`a`} | line_format `{{.app}}` |= `a`", 0, 11), [0, 1]],
    [
      "streams that are not spared",
      filter("{app=~`.+`}", 0, 11, { unless: [parseSelector("{app=`a`}")] }),
      [6, 7],
    ],
  ])("finds %s", (_name, one, want) => {
    expect(ids([one])).toEqual([want]);
  });

  it("finds the rows of each filter, those outside a range not needed", () => {
    const filters = [filter("{app=`a`}", 0, 99), filter("{app=`b`} |= `odd`", 0, 99)];
    const range = { fromNs: testDayNs, toNs: testDayNs + 11n * BigInt(ms) };
    const { masks } = scanMatches({ sources: [{ ref }], filters, range }, open, contextOf());
    expect(masks.map(maskRows)).toEqual([2, 1]);
  });

  it("reads nothing of blocks of which headers tell enough", () => {
    const { source, lines, times } = countReads(open(ref));
    const task = { sources: [{ ref }], filters: [filter("{app=`a`}", 0, 30)] };
    const { masks } = scanMatches(task, () => source, contextOf());
    expect(masks.map(maskRows)).toEqual([3]);
    expect(lines).toEqual([]);
    expect(times.length).toBeLessThanOrEqual(1);
  });
});
