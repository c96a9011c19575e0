import { describe, expect, it } from "@jest/globals";
import type { RangeAggregation } from "../../syntax/ast.js";
import { parseQuery } from "../../syntax/parser.js";
import { allRows, makeBlock } from "../../testing/memory-block.js";
import { compilePipeline } from "../compile.js";

function unwrap(stages: string, line: string) {
  const expr = parseQuery(`max_over_time({a="b"} ${stages} [1m])`) as RangeAggregation;
  const run = compilePipeline({
    stages: expr.log.stages,
    ...(expr.unwrap === undefined ? {} : { unwrap: expr.unwrap }),
    output: { kind: "metric" },
  }).start();
  const { block, streamLabels } = makeBlock([{ labels: { app: "x" }, ts: 0n, line }]);
  const batch = run.process(block, streamLabels, allRows(block));
  if (batch.count === 0) return undefined;
  const { labels, error } = run.series.get(batch.series[0]!);
  return { value: batch.values?.[0], names: labels.names, error: error?.kind };
}

describe("unwrap", () => {
  it.each([
    ["| unwrap v", "v=1.5", 1.5],
    ["| unwrap v", "v=-1e3", -1000],
    ["| unwrap v", "v=+7", 7],
    ["| unwrap v", "v=NaN", Number.NaN],
    ["| unwrap duration(v)", "v=1h30m", 5400],
    ["| unwrap duration_seconds(v)", "v=250ms", 0.25],
    ["| unwrap bytes(v)", "v=1.5KiB", 1536],
    ["| unwrap bytes(v)", "v=512", 512],
  ])("%s of %s", (stages, line, value) => {
    expect(unwrap(`| logfmt ${stages}`, line)).toEqual({ value, names: ["app"], error: undefined });
  });

  it("skips rows without the label, or with an empty one", () => {
    expect(unwrap("| logfmt --keep-empty | unwrap v", "x=1")).toBeUndefined();
    expect(unwrap("| logfmt --keep-empty | unwrap v", "v=")).toBeUndefined();
  });

  it("sets an error for what it cannot read, which filters see", () => {
    expect(unwrap("| logfmt | unwrap v", "v=0x10")).toEqual({
      value: 0,
      names: ["__error__", "__error_details__", "app", "v"],
      error: "SampleExtractionErr",
    });
    expect(unwrap('| logfmt | unwrap v | __error__=""', "v=0x10")).toBeUndefined();
    expect(unwrap("| logfmt | unwrap v | v > 3", "v=2")).toBeUndefined();
  });
});
