import { copyBytes } from "@skald/kernels";
import { type Batch, type BytesColumn, paddingBytes, type RunTable } from "@skald/model";
import type { HeadBlockRef, OpenHeadBlock } from "./head-view.js";
import {
  createHeadColumns,
  type HeadBlockCapacity,
  type HeadBlockColumns,
  headBlockBytes,
  maxMetadataCells,
  openHeadColumns,
} from "./layout.js";
import { HeadMetadata, metadataOffsetsOf } from "./metadata.js";

/**
 * One growing block of one tenant and UTC day: all columns in one SharedArrayBuffer, rows in order of arrival.
 * Appended rows stay hidden until they are published, so that a reader sees only what the write-ahead log holds;
 * a view carries its own counts, so that it never sees a row that is being written.
 */
export class HeadBlock {
  readonly memory: SharedArrayBuffer;
  readonly baseNs: bigint;
  readonly #columns: HeadBlockColumns;
  readonly #baseSeconds: number;
  readonly #metaNames: string[] = [];
  readonly #metaNameIndex = new Map<string, number>();
  #nameBytes = 0;
  #namesOfBatch: readonly string[] | undefined;
  #nameMap = new Int32Array(0);
  #rows = 0;
  #runs = 0;
  #publishedRows = 0;
  #publishedRuns = 0;

  /** Takes `memory` when it is given (at least `headBlockBytes(capacity)` long), else makes its own. */
  constructor(baseNs: bigint, capacity: HeadBlockCapacity, memory?: SharedArrayBuffer) {
    this.baseNs = baseNs;
    this.memory = memory ?? new SharedArrayBuffer(headBlockBytes(capacity));
    this.#columns = createHeadColumns(this.memory, capacity);
    this.#baseSeconds = Number(baseNs / 1_000_000_000n);
  }

  /** Rows appended, published or not. */
  get rowCount(): number {
    return this.#rows;
  }

  get runCount(): number {
    return this.#runs;
  }

  get publishedRows(): number {
    return this.#publishedRows;
  }

  /** Bytes of the lines appended. */
  get lineBytes(): number {
    return this.#columns.lineOffset[this.#rows]!;
  }

  /** Bytes of the rows of a run, roughly. */
  sizeOf(run: number): number {
    const { runStart, lineOffset } = this.#columns;
    const from = runStart[run]!;
    const to = run + 1 < this.#runs ? runStart[run + 1]! : this.#rows;
    return lineOffset[to]! - lineOffset[from]! + (to - from) * bytesPerRow;
  }

  /** The columns, for checks on the thread that appends. */
  get columns(): HeadBlockColumns {
    return this.#columns;
  }

  /** Memory of the names of its metadata, which is not in `memory`; never less than before. */
  get nameBytes(): number {
    return this.#nameBytes;
  }

  /** Distinct names of metadata. */
  get nameCount(): number {
    return this.#metaNames.length;
  }

  /** Name of a metadata pair, by the index that `columns.pairName` has. */
  metaName(index: number): string {
    return this.#metaNames[index]!;
  }

  /**
   * Copies the rows `rowFrom .. rowTo` of a batch, all of one stream and of this block's day, as far as there is
   * room, and returns how many were taken. Extends the last run when it is of the same stream.
   */
  append(batch: Batch, rowFrom: number, rowTo: number, stream: number): number {
    const c = this.#columns;
    const first = this.#rows;
    if (!this.#hasRunFor(stream)) return 0;
    const { lineStart, lineLength, seconds, nanos } = batch;
    const hasPairs = batch.metaStart[rowFrom] !== batch.metaStart[rowTo];
    const hasCells = hasPairs || this.#metaNames.length > 0;
    const rowLimit = Math.min(rowTo, rowFrom + c.capacity.rows - first);
    const baseSeconds = this.#baseSeconds;
    let at = first;
    let lineEnd = c.lineOffset[first]!;
    let pairEnd = c.metaStart[first]!;
    let min = Number.POSITIVE_INFINITY;
    let max = Number.NEGATIVE_INFINITY;
    // Lines that lie one behind the other are copied together.
    let copyFrom = 0;
    let copyTo = 0;
    for (let row = rowFrom; row < rowLimit; row++, at++) {
      const length = lineLength[row]!;
      if (lineEnd + length > c.capacity.lineBytes) break;
      if (hasCells && !this.#hasCellsFor(batch, row, at)) break;
      if (hasPairs) {
        const pairs = this.#appendPairs(batch, row, pairEnd);
        if (pairs < 0) break;
        pairEnd = pairs;
      }
      const start = lineStart[row]!;
      if (start !== copyTo) {
        copyBytes(batch.bytes, copyFrom, copyTo, c.lines, lineEnd - (copyTo - copyFrom));
        copyFrom = start;
      }
      copyTo = start + length;
      lineEnd += length;
      const time = (seconds[row]! - baseSeconds) * 1e9 + nanos[row]!;
      if (time < min) min = time;
      if (time > max) max = time;
      c.timestamps[at] = time;
      c.lineOffset[at + 1] = lineEnd;
      c.metaStart[at + 1] = pairEnd;
      c.levels[at] = batch.levels[row]!;
    }
    if (at === first) return 0;
    copyBytes(batch.bytes, copyFrom, copyTo, c.lines, lineEnd - (copyTo - copyFrom));
    this.#extendRun(stream, min, max);
    this.#rows = at;
    return at - first;
  }

  /** Makes the rows up to `rowCount` visible to views taken from now on. */
  publish(rowCount: number): void {
    const { runStart } = this.#columns;
    this.#publishedRows = rowCount;
    while (this.#publishedRuns < this.#runs && runStart[this.#publishedRuns]! < rowCount) {
      this.#publishedRuns++;
    }
  }

  /** Forgets the rows behind `rowCount`: they did not get into the log. They must not be published yet. */
  truncate(rowCount: number): void {
    const { timestamps, runStart, runMin, runMax } = this.#columns;
    this.#rows = rowCount;
    while (this.#runs > 0 && runStart[this.#runs - 1]! >= rowCount) this.#runs--;
    const last = this.#runs - 1;
    if (last < 0) return;
    const bounds = boundsOf(timestamps, runStart[last]!, rowCount);
    runMin[last] = bounds.min;
    runMax[last] = bounds.max;
  }

  /** The published rows, for any thread. `number` is the place of the block in its head. */
  view(number = 0): HeadBlockRef {
    return {
      number,
      memory: this.memory,
      rowCount: this.#publishedRows,
      runCount: this.#publishedRuns,
      pairCount: this.#columns.metaStart[this.#publishedRows]!,
      baseNs: this.baseNs,
      metaNames: this.#metaNames.slice(),
    };
  }

  #hasRunFor(stream: number): boolean {
    const { capacity, runStream } = this.#columns;
    return this.#runs < capacity.runs || runStream[this.#runs - 1] === stream;
  }

  #extendRun(stream: number, min: number, max: number): void {
    const { runStream, runStart, runMin, runMax } = this.#columns;
    const last = this.#runs - 1;
    if (last >= 0 && runStream[last] === stream) {
      runMin[last] = Math.min(runMin[last]!, min);
      runMax[last] = Math.max(runMax[last]!, max);
      return;
    }
    const run = this.#runs++;
    runStream[run] = stream;
    runStart[run] = this.#rows;
    runMin[run] = min;
    runMax[run] = max;
  }

  /** Whether the columns of all names stay small with one more row, whose names may all be new; the first row always fits. */
  #hasCellsFor(batch: Batch, row: number, at: number): boolean {
    const pairs = batch.metaStart[row + 1]! - batch.metaStart[row]!;
    return at === 0 || (at + 1) * (this.#metaNames.length + pairs) <= maxMetadataCells;
  }

  /** Copies the metadata of a row behind pair `at`; returns the end of its pairs, or -1 when they do not fit. */
  #appendPairs(batch: Batch, row: number, at: number): number {
    const from = batch.metaStart[row]!;
    const to = batch.metaStart[row + 1]!;
    const c = this.#columns;
    if (at + to - from > c.capacity.pairs) return -1;
    const { metaValueStart, metaValueLength } = batch;
    let valueEnd = c.valueOffset[at]!;
    let copyFrom = 0;
    let copyTo = 0;
    for (let pair = from; pair < to; pair++, at++) {
      const length = metaValueLength[pair]!;
      if (valueEnd + length > c.capacity.valueBytes) return -1;
      const start = metaValueStart[pair]!;
      if (start !== copyTo) {
        copyBytes(batch.bytes, copyFrom, copyTo, c.values, valueEnd - (copyTo - copyFrom));
        copyFrom = start;
      }
      copyTo = start + length;
      valueEnd += length;
      c.pairName[at] = this.#nameOf(batch, batch.metaName[pair]!);
      c.valueOffset[at + 1] = valueEnd;
    }
    copyBytes(batch.bytes, copyFrom, copyTo, c.values, valueEnd - (copyTo - copyFrom));
    return at;
  }

  /** Index of a batch's metadata name in this block; the mapping is kept for the next ranges of the same batch. */
  #nameOf(batch: Batch, index: number): number {
    if (this.#namesOfBatch !== batch.metaNames) {
      this.#namesOfBatch = batch.metaNames;
      this.#nameMap = new Int32Array(batch.metaNames.length).fill(-1);
    }
    const known = this.#nameMap[index]!;
    if (known >= 0) return known;
    const name = batch.metaNames[index]!;
    let mapped = this.#metaNameIndex.get(name);
    if (mapped === undefined) {
      mapped = this.#metaNames.push(name) - 1;
      this.#metaNameIndex.set(name, mapped);
      this.#nameBytes += bytesPerName + 2 * name.length;
    }
    this.#nameMap[index] = mapped;
    return mapped;
  }
}

/** What a row costs a scan besides its line, in bytes of lines. */
const bytesPerRow = 64;
/** What a name takes beside its characters: its place in a list and in a map. */
const bytesPerName = 96;

/** Opens a view of a head block in any thread; nothing is copied but the run table, metadata is sorted out when asked for. */
export function openHeadBlock(ref: HeadBlockRef): OpenHeadBlock {
  const columns = openHeadColumns(ref.memory);
  const { rowCount } = ref;
  const lines: BytesColumn = {
    bytes: columns.lines.subarray(0, columns.lineOffset[rowCount]! + paddingBytes),
    offsets: columns.lineOffset.subarray(0, rowCount + 1),
  };
  const timestamps = columns.timestamps.subarray(0, rowCount);
  let metadata: HeadMetadata | undefined;
  const readMetadata = () => {
    metadata ??= new HeadMetadata(columns, ref);
    return metadata;
  };
  return {
    baseNs: ref.baseNs,
    rowCount,
    runs: runTableOf(columns, ref),
    timestamps: () => timestamps,
    lines: () => lines,
    metadataNames: () => readMetadata().names(),
    metadata: (name) => readMetadata().column(name),
    metadataPairs: () => ({
      names: ref.metaNames,
      start: columns.metaStart.subarray(0, rowCount + 1),
      name: columns.pairName.subarray(0, ref.pairCount),
      offsets: columns.valueOffset.subarray(0, ref.pairCount + 1),
      bytes: columns.values,
    }),
    metadataOffsets: () => metadataOffsetsOf(columns, ref),
  };
}

/** The last run may have grown since the view was taken: its bounds are taken from its rows. */
function runTableOf(columns: HeadBlockColumns, { rowCount, runCount }: HeadBlockRef): RunTable {
  const rowStart = new Uint32Array(runCount + 1);
  rowStart.set(columns.runStart.subarray(0, runCount));
  rowStart[runCount] = rowCount;
  const minTime = columns.runMin.slice(0, runCount);
  const maxTime = columns.runMax.slice(0, runCount);
  if (runCount > 0) {
    const last = boundsOf(columns.timestamps, rowStart[runCount - 1]!, rowCount);
    minTime[runCount - 1] = last.min;
    maxTime[runCount - 1] = last.max;
  }
  const lineBytes = new Float64Array(runCount);
  for (let run = 0; run < runCount; run++) {
    lineBytes[run] = columns.lineOffset[rowStart[run + 1]!]! - columns.lineOffset[rowStart[run]!]!;
  }
  const stream = columns.runStream.subarray(0, runCount);
  return { count: runCount, stream, rowStart, minTime, maxTime, lineBytes };
}

function boundsOf(
  timestamps: Float64Array,
  from: number,
  to: number,
): { min: number; max: number } {
  let min = Number.POSITIVE_INFINITY;
  let max = Number.NEGATIVE_INFINITY;
  for (let row = from; row < to; row++) {
    const time = timestamps[row]!;
    if (time < min) min = time;
    if (time > max) max = time;
  }
  return { min, max };
}
