import { labelsToObject } from "@skald/model";
import { compilePipeline } from "../pipeline/compile.js";
import type { LogExpr } from "../syntax/ast.js";
import { parseQuery } from "../syntax/parser.js";
import { allRows, makeBlock } from "./memory-block.js";

/** What stages make of one line. */
export interface StagedRow {
  readonly line: string;
  /** Parsed labels and errors; those of the stream and of metadata only when a stage changed them. */
  readonly labels: Readonly<Record<string, string>>;
}

export interface StagedInput {
  readonly labels?: Readonly<Record<string, string>>;
  readonly metadata?: Readonly<Record<string, string>>;
  readonly ts?: bigint;
}

/** Runs stages, written as in a query, on one line; undefined when the line is dropped. */
export function runStages(
  stages: string,
  line: string | Uint8Array,
  { labels = {}, metadata = {}, ts = 1_710_239_400_123_000_000n }: StagedInput = {},
): StagedRow | undefined {
  const query = parseQuery(`{a="b"} ${stages}`) as LogExpr;
  const run = compilePipeline({ stages: query.stages, output: { kind: "log" } }).start();
  const { block, streamLabels } = makeBlock([{ labels, metadata, ts, line }]);
  const batch = run.process(block, streamLabels, allRows(block));
  if (batch.count === 0) return undefined;
  const { lines } = batch;
  const text =
    lines === undefined
      ? Buffer.from(line)
      : Buffer.from(lines.bytes.subarray(lines.offsets[0], lines.offsets[1]));
  const all = labelsToObject(run.series.get(batch.series[0] as number).labels);
  const own = { ...labels, ...metadata };
  const found = Object.entries(all).filter(([name, value]) => own[name] !== value);
  return { line: text.toString(), labels: Object.fromEntries(found) };
}
