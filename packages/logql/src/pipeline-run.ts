import { type Block, type Labels, labelsToObject } from "@skald/model";
import { labelsWithEmpty } from "./label-set.js";
import type {
  PipelineOptions,
  PipelineRun,
  RowBatch,
  RowSelection,
  Series,
  SeriesTable,
} from "./pipeline.js";
import { bytesColumn } from "./testing/memory-block.js";
import { type NaiveResult, runNaive } from "./testing/naive-pipeline.js";

/** Runs the stages row by row. */
export function startRun(options: PipelineOptions): PipelineRun {
  const series: Series[] = [];
  const ids = new Map<string, number>();
  const table: SeriesTable = {
    get count() {
      return series.length;
    },
    get: (id) => series[id] as Series,
  };
  const intern = (result: NaiveResult): number => {
    const key = JSON.stringify([labelsWithEmpty(Object.entries(result.labels)), result.error]);
    const known = ids.get(key);
    if (known !== undefined) return known;
    ids.set(key, series.length);
    return series.push(seriesOf(options, result)) - 1;
  };
  return {
    series: table,
    process: (block, streamLabels, selection) =>
      process(options, block, streamLabels, selection, intern),
  };
}

function seriesOf({ output }: PipelineOptions, { labels, categories, error }: NaiveResult): Series {
  const of = (object: Readonly<Record<string, string>>) => labelsWithEmpty(Object.entries(object));
  return {
    labels: of(labels),
    ...(output.kind === "log"
      ? {
          categories: {
            stream: of(categories.stream),
            structuredMetadata: of(categories.structuredMetadata),
            parsed: of(categories.parsed),
          },
        }
      : {}),
    ...(error === undefined ? {} : { error }),
  };
}

function process(
  options: PipelineOptions,
  block: Block,
  streamLabels: (stream: number) => Labels,
  selection: RowSelection,
  intern: (result: NaiveResult) => number,
): RowBatch {
  const decoder = new TextDecoder();
  const rows: number[] = [];
  const ids: number[] = [];
  const values: number[] = [];
  const texts: string[] = [];
  const { bytes, offsets } = block.lines();
  let run = 0;
  for (let i = 0; i < selection.count; i++) {
    const row = selection.rows[i] as number;
    while (row >= (block.runs.rowStart[run + 1] as number)) run++;
    const metadata: Record<string, string> = {};
    for (const name of block.metadataNames()) {
      const column = block.metadata(name);
      if (column === undefined) continue;
      metadata[name] =
        column.kind === "dictionary"
          ? (column.dictionary[column.codes[row] as number] as string)
          : decoder.decode(column.bytes.subarray(column.offsets[row], column.offsets[row + 1]));
    }
    const result = runNaive(options, {
      labels: labelsToObject(streamLabels(block.runs.stream[run] as number)),
      metadata,
      ts: block.baseNs + BigInt(block.timestamps()[row] as number),
      line: decoder.decode(bytes.subarray(offsets[row], offsets[row + 1])),
    });
    if (result === undefined) continue;
    rows.push(row);
    ids.push(intern(result));
    values.push(result.value);
    texts.push(result.line);
  }
  return {
    count: rows.length,
    rows: Uint32Array.from(rows),
    series: Uint32Array.from(ids),
    ...(options.unwrap === undefined ? {} : { values: Float64Array.from(values) }),
    lines: bytesColumn(texts),
  };
}
