import type { DroppedRow } from "@skald/contracts";
import {
  compilePipeline,
  type LogResult,
  linesOf,
  type PipelineRun,
  type RowBatch,
  type RowLabels,
  type Stage,
} from "@skald/logql";
import {
  type Block,
  type BytesColumn,
  type ErrorCode,
  emptyLabels,
  type Labels,
  lowerBound,
  type MetadataColumn,
  paddingBytes,
  parseStreamText,
  type RunTable,
  SkaldError,
} from "@skald/model";
import { type HeadBlockRef, openHeadBlock } from "@skald/storage";
import { LRUCache } from "lru-cache";

/** Pipelines that a thread keeps between tasks, with the label sets that they have seen. */
const maxRuns = 256;
/** Label sets that a run may see before it starts over. */
const maxSeries = 20_000;
/** Parsed labels of streams that a thread keeps. */
const maxLabels = 50_000;
/** Bytes of lines that a pipeline may make from one block for one tail. */
const maxLineBytes = 32 * 1024 * 1024;

/** Runs tails over new rows on one thread, and remembers what the next task needs again. */
export class TailRunner {
  readonly #runs = new LRUCache<string, PipelineRun>({ max: maxRuns });
  readonly #labels = new LRUCache<string, Labels>({ max: maxLabels });
  /** The check of the current task. */
  #check: () => void = () => undefined;

  /** Finds the rows for each tail, in the order of the tails. */
  run(task: TailTask, check: () => void): TailFound[] {
    const blocks = task.blocks.map(({ ref, rowFrom, rowTo }) => {
      const block = blockPart(openHeadBlock(ref), rowFrom, rowTo);
      return { block, runsOf: runsByStream(block) };
    });
    const labels = new Map<number, Labels>();
    for (const [i, stream] of task.streams.entries()) {
      const text = task.texts[i]!;
      if (text !== "") labels.set(stream, this.#labelsOf(text));
    }
    // Stages read the labels of all streams of a block, but only the rows of wanted streams.
    const labelsOf = (stream: number) => labels.get(stream) ?? emptyLabels;
    this.#check = check;
    return task.tails.map((tail) => {
      check();
      try {
        return this.#runTail(tail, { task, blocks, labelsOf });
      } catch (error) {
        // The run may have stopped in the middle of a block.
        this.#runs.delete(JSON.stringify(tail.stages));
        if (!(error instanceof SkaldError) || error.code === "cancelled") throw error;
        return { dropped: [], error: { code: error.code, message: error.message } };
      }
    });
  }

  #runTail({ stages, wanted }: TailPart, input: TailInput): TailFound {
    const { task, blocks, labelsOf } = input;
    const streams = task.streams.filter((_, i) => wanted[i] === 1);
    const found = new FoundRows(task.bounds);
    for (const { block, runsOf } of blocks) {
      const selection = selectStreams(block, runsOf, streams);
      if (selection.count === 0) continue;
      const run = this.#runOf(stages);
      found.add(block, run.process(block, labelsOf, selection), run);
    }
    return found.finish();
  }

  #runOf(stages: readonly Stage[]): PipelineRun {
    const key = JSON.stringify(stages);
    const known = this.#runs.get(key);
    if (known !== undefined && known.series.count <= maxSeries) return known;
    const nowNs = BigInt(Date.now()) * 1_000_000n;
    const pipeline = compilePipeline({ stages, output: { kind: "log" }, nowNs });
    const run = pipeline.start({ check: () => this.#check(), maxLineBytes });
    this.#runs.set(key, run);
    return run;
  }

  #labelsOf(text: string): Labels {
    const known = this.#labels.get(text);
    if (known !== undefined) return known;
    const labels = parseStreamText(text);
    this.#labels.set(text, labels);
    return labels;
  }
}

interface TailInput {
  readonly task: TailTask;
  readonly blocks: readonly { readonly block: Block; readonly runsOf: RunsByStream }[];
  readonly labelsOf: (stream: number) => Labels;
}

type RunsByStream = ReadonlyMap<number, readonly number[]>;

/** Runs by stream, so that a tail of one stream skips all others. */
function runsByStream({ runs }: Block): RunsByStream {
  const found = new Map<number, number[]>();
  for (let run = 0; run < runs.count; run++) {
    const stream = runs.stream[run]!;
    const known = found.get(stream);
    if (known === undefined) found.set(stream, [run]);
    else known.push(run);
  }
  return found;
}

/** The rows of streams, ascending. */
function selectStreams({ runs }: Block, runsOf: RunsByStream, streams: Uint32Array) {
  const wanted: number[] = [];
  for (const stream of streams) wanted.push(...(runsOf.get(stream) ?? []));
  wanted.sort((a, b) => a - b);
  const { rowStart } = runs;
  const count = wanted.reduce((sum, run) => sum + rowStart[run + 1]! - rowStart[run]!, 0);
  const rows = new Uint32Array(count);
  let at = 0;
  for (const run of wanted)
    for (let row = rowStart[run]!; row < rowStart[run + 1]!; row++) rows[at++] = row;
  return { rows, count };
}

/** The rows that one tail gets from one task, within its bounds. */
class FoundRows {
  readonly #bounds: TailTask["bounds"];
  readonly #times: bigint[] = [];
  readonly #sets: number[] = [];
  readonly #lines: Uint8Array[] = [];
  readonly #labels: RowLabels[] = [];
  readonly #dropped: DroppedRow[] = [];
  #unnamed = 0;
  #lineBytes = 0;

  constructor(bounds: TailTask["bounds"]) {
    this.#bounds = bounds;
  }

  add(block: Block, batch: RowBatch, run: PipelineRun): void {
    const times = block.timestamps();
    const lines = batch.count === 0 ? undefined : (batch.lines ?? block.lines());
    const setOf = new Map<number, number>();
    for (let i = 0; i < batch.count; i++) {
      const row = batch.rows[i]!;
      const at = batch.lines === undefined ? row : i;
      const { bytes, offsets } = lines as NonNullable<typeof lines>;
      const line = bytes.subarray(offsets[at]!, offsets[at + 1]!);
      const timestampNs = block.baseNs + BigInt(times[row]!);
      const series = batch.series[i]!;
      if (!this.#fits(line.length)) {
        this.#drop(timestampNs, run, series);
        continue;
      }
      let set = setOf.get(series);
      if (set === undefined) {
        set = this.#labels.push(rowLabels(run, series)) - 1;
        setOf.set(series, set);
      }
      this.#times.push(timestampNs);
      this.#sets.push(set);
      // Made lines are overwritten by the next block.
      this.#lines.push(batch.lines === undefined ? line : line.slice());
      this.#lineBytes += line.length;
    }
  }

  finish(): TailFound {
    const dropped = this.#dropped;
    const left = this.#unnamed === 0 ? { dropped } : { dropped, unnamed: this.#unnamed };
    const rowCount = this.#times.length;
    if (rowCount === 0) return left;
    const order = this.#times.map((_, i) => i);
    order.sort((a, b) => compare(this.#times[a]!, this.#times[b]!) || a - b);
    const timestamps = BigInt64Array.from(order, (i) => this.#times[i]!);
    const labelSet = Uint32Array.from(order, (i) => this.#sets[i]!);
    const bytes = new Uint8Array(this.#lineBytes);
    const offsets = new Uint32Array(rowCount + 1);
    for (const [at, i] of order.entries()) {
      const line = this.#lines[i]!;
      bytes.set(line, offsets[at]!);
      offsets[at + 1] = offsets[at]! + line.length;
    }
    const rows: LogResult = {
      kind: "streams",
      ...{ rowCount, timestamps, labelSet, lines: linesOf({ bytes, offsets }) },
      ...{ labels: this.#labels, warnings: [] },
    };
    return { rows, ...left };
  }

  #fits(lineBytes: number): boolean {
    const { maxRows, maxBytes } = this.#bounds;
    return this.#times.length < maxRows && this.#lineBytes + lineBytes <= maxBytes;
  }

  #drop(timestampNs: bigint, run: PipelineRun, series: number): void {
    if (this.#dropped.length >= this.#bounds.maxDropped) this.#unnamed++;
    else this.#dropped.push({ timestampNs, labels: run.series.get(series).labels });
  }
}

function rowLabels(run: PipelineRun, series: number): RowLabels {
  const { labels, categories } = run.series.get(series);
  if (categories === undefined) throw new Error("log output without label categories");
  return { labels, categories };
}

function compare(a: bigint, b: bigint): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** New rows of one tenant and the tails to run over them: work for one thread. */
export interface TailTask {
  readonly blocks: readonly TailStretch[];
  /** Streams of the rows, as the runs of the blocks number them, ascending. */
  readonly streams: Uint32Array;
  /** Their label texts; empty for streams that no tail wants. */
  readonly texts: readonly string[];
  readonly tails: readonly TailPart[];
  readonly bounds: TailBounds;
}

/** The rows [rowFrom, rowTo) of a block. */
export interface TailStretch {
  readonly ref: HeadBlockRef;
  readonly rowFrom: number;
  readonly rowTo: number;
}

/** One tail and the streams of a task that it wants. */
export interface TailPart {
  readonly stages: readonly Stage[];
  /** 1 for each stream that its matchers take. */
  readonly wanted: Uint8Array;
}

/** What one tail may take from one task. Rows beyond these bounds are dropped. */
export interface TailBounds {
  readonly maxRows: number;
  /** Bytes of lines. */
  readonly maxBytes: number;
  /** Dropped rows to report. */
  readonly maxDropped: number;
}

/** The rows of a task for one tail. */
export interface TailFound {
  readonly rows?: LogResult;
  readonly dropped: readonly DroppedRow[];
  readonly unnamed?: number;
  /** Why the tail cannot go on. */
  readonly error?: { readonly code: ErrorCode; readonly message: string };
}

/** The rows [rowFrom, rowTo) of a block as a block of their own, so that stages see only them. */
function blockPart(block: Block, rowFrom: number, rowTo: number): Block {
  if (rowFrom === 0 && rowTo === block.rowCount) return block;
  let lines: BytesColumn | undefined;
  return {
    baseNs: block.baseNs,
    rowCount: rowTo - rowFrom,
    runs: cutRuns(block, rowFrom, rowTo),
    timestamps: () => block.timestamps().subarray(rowFrom, rowTo),
    lines: () => {
      lines ??= cutBytes(block.lines(), rowFrom, rowTo);
      return lines;
    },
    metadataNames: () => block.metadataNames(),
    metadata: (name) => cutMetadata(block.metadata(name), rowFrom, rowTo),
  };
}

function cutRuns({ runs, timestamps }: Block, rowFrom: number, rowTo: number): RunTable {
  const first = runOf(runs, rowFrom);
  let end = first;
  while (end < runs.count && runs.rowStart[end]! < rowTo) end++;
  const count = end - first;
  const rowStart = new Uint32Array(count + 1);
  for (let run = 0; run < count; run++) {
    rowStart[run] = Math.max(runs.rowStart[first + run]!, rowFrom) - rowFrom;
  }
  rowStart[count] = rowTo - rowFrom;
  const times = timestamps().subarray(rowFrom, rowTo);
  const minTime = new Float64Array(count).fill(Number.POSITIVE_INFINITY);
  const maxTime = new Float64Array(count).fill(Number.NEGATIVE_INFINITY);
  for (let run = 0; run < count; run++) {
    for (let row = rowStart[run]!; row < rowStart[run + 1]!; row++) {
      if (times[row]! < minTime[run]!) minTime[run] = times[row]!;
      if (times[row]! > maxTime[run]!) maxTime[run] = times[row]!;
    }
  }
  const stream = runs.stream.subarray(first, end);
  return { count, stream, rowStart, minTime, maxTime, lineBytes: runs.lineBytes.slice(first, end) };
}

/** Finds the run of a row. */
function runOf({ rowStart, count }: RunTable, row: number): number {
  return lowerBound(rowStart, row + 1, 0, count) - 1;
}

/** Starts at offset 0, as loops over whole columns expect. */
function cutBytes({ bytes, offsets }: BytesColumn, rowFrom: number, rowTo: number): BytesColumn {
  const start = offsets[rowFrom]!;
  const cut = offsets.slice(rowFrom, rowTo + 1);
  for (let i = 0; i < cut.length; i++) cut[i] = cut[i]! - start;
  return { bytes: bytes.subarray(start, offsets[rowTo]! + paddingBytes), offsets: cut };
}

function cutMetadata(
  column: MetadataColumn | undefined,
  rowFrom: number,
  rowTo: number,
): MetadataColumn | undefined {
  if (column === undefined) return undefined;
  if (column.kind === "bytes") return { kind: "bytes", ...cutBytes(column, rowFrom, rowTo) };
  return { ...column, codes: column.codes.subarray(rowFrom, rowTo) };
}
