import { describe, expect, it } from "@jest/globals";
import type { Block, DictionaryColumn } from "@skald/model";
import type { LogExpr, RangeAggregation } from "../../syntax/ast.js";
import { parseQuery } from "../../syntax/parser.js";
import { allRows, makeBlock } from "../../testing/memory-block.js";
import { compilePipeline } from "../compile.js";

const rowCount = 600;
const values = ["7", "12", "x", "500"];

/** A block whose rows have values by turns, and a count of how often one of them was looked at. */
function countedBlock() {
  const rows = Array.from({ length: rowCount }, (_, i) => ({
    ...{ labels: { app: i < 400 ? "a" : "b" }, ts: BigInt(i), line: "" },
    metadata: { n: values[i % 4]!, other: `o${i % 2}` },
  }));
  const { block, streamLabels } = makeBlock(rows);
  const column = block.metadata("n") as DictionaryColumn & { readonly kind: "dictionary" };
  const { bytes, offsets } = column.dictionary;
  const looks = { count: 0 };
  const dictionary = {
    offsets,
    get bytes() {
      looks.count++;
      return bytes;
    },
  };
  const counted: Block = {
    ...block,
    metadata: (name) => (name === "n" ? { ...column, dictionary } : block.metadata(name)),
  };
  return { block: counted, streamLabels, looks };
}

function runOf(query: string, groups: readonly string[] = []) {
  const expr = parseQuery(query) as LogExpr | RangeAggregation;
  const { stages } = "log" in expr ? expr.log : expr;
  const unwrap = "unwrap" in expr && expr.unwrap !== undefined ? { unwrap: expr.unwrap } : {};
  const grouping = { without: false, labels: groups };
  return compilePipeline({ stages, ...unwrap, output: { kind: "metric", grouping } }).start();
}

describe("values of a dictionary", () => {
  it.each([
    ['{app=~".+"} | n != "x" | n >= 500 | n < 900', [], 150],
    ['{app=~".+"} | n != "x" | n > 10 and n < 100', [], 150],
    ['{app=~".+"} | n != "x" | n > 10', [], 300],
    ['max_over_time({app=~".+"} | n != "x" | unwrap n [1m])', ["other"], 450],
    ['max_over_time({app=~".+"} | unwrap n | __error__="" | n > 8 [1m])', ["n"], 300],
  ])("are read once for a block after the other: %s", (query, groups, passed) => {
    const { block, streamLabels, looks } = countedBlock();
    const run = runOf(query, groups);
    for (let i = 0; i < 3; i++)
      expect(run.process(block, streamLabels, allRows(block)).count).toBe(passed);
    // Each part of a query looks at four values, once for a stream at most.
    expect(looks.count).toBeLessThan(4 * 2 * values.length);
  });

  it("that cannot be read make an error of each row that has one", () => {
    const { block, streamLabels } = countedBlock();
    for (const query of ['{app=~".+"} | n >= 500', 'max_over_time({app=~".+"} | unwrap n [1m])']) {
      const run = runOf(query);
      for (let i = 0; i < 2; i++) {
        const { count, rows, series } = run.process(block, streamLabels, allRows(block));
        const failed = Array.from(rows.subarray(0, count)).filter(
          (_, at) => run.series.get(series[at]!).error !== undefined,
        );
        expect(failed).toEqual(Array.from({ length: 150 }, (_, at) => at * 4 + 2));
      }
    }
  });
});
