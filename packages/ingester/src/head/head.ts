import { type Batch, dayNs } from "@skald/model";
import {
  HeadBlock,
  type HeadBlockCapacity,
  type HeadBlockRef,
  headBlockBytes,
  maxMetadataCells,
  type SharedStreams,
} from "@skald/storage";
import type { HashedStream } from "./duplicates.js";
import { RunChains } from "./run-chains.js";

/** The end of a head: its number of blocks, and of rows of the last one. */
export interface HeadMark {
  readonly blocks: number;
  readonly rows: number;
}

/** Streams of a head in memory that threads share: with 40,000 of them a copy takes 10 ms and 3 MB. */
export interface SelectedStreams extends SharedStreams {
  /** The streams of the tenant that they were chosen from, and how many of all were in the head. */
  readonly matched: Uint32Array;
  readonly streamCount: number;
}

/**
 * The rows of one tenant and UTC day that are not in a segment yet, as a list of head blocks. It grows until it is frozen;
 * from then on it waits to be sealed, under the same id.
 */
export class Head {
  /** Also the id of its segment. Replay changes it when it must seal the head before its last row is read. */
  id: string;
  readonly tenant: string;
  /** Days since the epoch. */
  readonly day: number;
  readonly baseNs: bigint;
  readonly createdMs: number;
  lastAppendMs: number;
  /** Log file with the last row. */
  lastFile = 0;
  /** Number of pushes whose rows are appended and not in the log yet. */
  pendingPushes = 0;
  /** Its rows are being written to a later log file. */
  forwarding = false;
  /** True once a query has a view, which may read the memory for long. */
  viewed = false;
  /** What the last query selected of it. */
  selected: SelectedStreams | undefined;
  readonly #memory: HeadMemory;
  readonly #files: PinnedFiles;
  #firstFile = Number.POSITIVE_INFINITY;
  readonly #blocks: HeadBlock[] = [];
  readonly chains = new RunChains(this.#blocks);
  /** Streams whose rows are hashed, because duplicates are costly to find without it. */
  readonly hashed = new Map<number, HashedStream>();
  #fullRows = 0;
  #fullLineBytes = 0;
  #memoryBytes = 0;
  #fullNames = 0;
  #nameBytes = 0;
  #nextLineBytes = minBlockLineBytes;

  constructor(init: HeadInit) {
    this.id = init.id;
    this.tenant = init.tenant;
    this.day = init.day;
    this.baseNs = BigInt(init.day) * dayNs;
    this.createdMs = init.nowMs;
    this.lastAppendMs = init.nowMs;
    this.#memory = init.memory;
    this.#files = init.files;
  }

  /** Log file with the first row; Infinity before it. */
  get firstFile(): number {
    return this.#firstFile;
  }

  /** Notes that a log file has rows of it; files must ascend. */
  noteFile(file: number): void {
    this.lastFile = file;
    if (this.#firstFile <= file) return;
    this.#firstFile = file;
    this.#files.pin(file);
  }

  /** Notes that a later file has all of its rows, so that it does not need the earlier ones. */
  forwardTo(file: number): void {
    if (this.#blocks.length === 0 || file <= this.#firstFile) return;
    this.#files.unpin(this.#firstFile);
    this.#firstFile = file;
    this.#files.pin(file);
  }

  /** Bytes of the lines, published or not. */
  get lineBytes(): number {
    return this.#fullLineBytes + (this.#last()?.lineBytes ?? 0);
  }

  get rowCount(): number {
    return this.#fullRows + (this.#last()?.rowCount ?? 0);
  }

  /** Number of distinct metadata names of each block, summed. */
  get nameCount(): number {
    return this.#fullNames + (this.#last()?.nameCount ?? 0);
  }

  /** Its size: shared memory, and the names of metadata. */
  get memoryBytes(): number {
    return this.#memoryBytes + this.#nameBytes;
  }

  get blocks(): readonly HeadBlock[] {
    return this.#blocks;
  }

  /** Appends a copy of rows of one stream and of this day; they are not visible yet. */
  append(batch: Batch, rowFrom: number, rowTo: number, stream: number): void {
    let row = rowFrom;
    while (row < rowTo) {
      const block = this.#last();
      const namesBefore = block?.nameBytes ?? 0;
      const taken = block?.append(batch, row, rowTo, stream) ?? 0;
      if (block !== undefined) this.#countNames(block.nameBytes - namesBefore);
      if (block === undefined || taken === 0) {
        this.#addBlock(batch, row);
        continue;
      }
      this.chains.add(stream);
      row += taken;
    }
  }

  mark(): HeadMark {
    return { blocks: this.#blocks.length, rows: this.#last()?.rowCount ?? 0 };
  }

  /** Makes everything up to a mark visible. Marks are published in the order they were taken. */
  publish(mark: HeadMark): void {
    for (let i = mark.blocks - 2; i >= 0; i--) {
      const block = this.#blocks[i] as HeadBlock;
      if (block.publishedRows === block.rowCount) break;
      block.publish(block.rowCount);
    }
    this.#blocks[mark.blocks - 1]?.publish(mark.rows);
  }

  /** Removes the rows that were appended since a mark. */
  truncate(mark: HeadMark): void {
    for (const block of this.#blocks.splice(mark.blocks)) this.#memory.give(block.memory, true);
    this.#last()?.truncate(mark.rows);
    this.#recount();
    this.chains.rebuild();
    this.hashed.clear();
  }

  /** Removes all rows, which nobody has seen yet, and its pin of the log. */
  clear(): void {
    this.truncate({ blocks: 0, rows: 0 });
    this.#files.unpin(this.#firstFile);
    this.#firstFile = Number.POSITIVE_INFINITY;
  }

  /** The published rows of blocks that have rows in `[fromTime, toTime)`, ns since the start of the day. */
  view(fromTime: number, toTime: number): HeadBlockRef[] {
    const refs: HeadBlockRef[] = [];
    for (const [number, block] of this.#blocks.entries()) {
      if (block.publishedRows === 0 || !overlaps(block, fromTime, toTime)) continue;
      refs.push(block.view(number));
    }
    return refs;
  }

  /** Bytes of the rows of some streams, roughly. */
  sizeOf(streams: Uint32Array): number {
    return streams.reduce((bytes, stream) => bytes + this.chains.sizeOf(stream), 0);
  }

  /** Frees memory and log; the memory is reused unless a query may still read it. The head is empty afterwards. */
  release(): void {
    this.#files.unpin(this.#firstFile);
    for (const block of this.#blocks.splice(0)) this.#memory.give(block.memory, !this.viewed);
    this.#recount();
  }

  /** Earliest and latest time, ns since the start of the day. */
  bounds(): { minTime: number; maxTime: number } {
    let minTime = Number.POSITIVE_INFINITY;
    let maxTime = Number.NEGATIVE_INFINITY;
    for (const block of this.#blocks) {
      const { runMin, runMax } = block.columns;
      for (let run = 0; run < block.runCount; run++) {
        minTime = Math.min(minTime, runMin[run]!);
        maxTime = Math.max(maxTime, runMax[run]!);
      }
    }
    return { minTime, maxTime };
  }

  #last(): HeadBlock | undefined {
    return this.#blocks[this.#blocks.length - 1];
  }

  #recount(): void {
    this.#memoryBytes = 0;
    this.#fullRows = 0;
    this.#fullLineBytes = 0;
    this.#fullNames = 0;
    this.#countNames(-this.#nameBytes);
    for (const [i, block] of this.#blocks.entries()) {
      this.#countNames(block.nameBytes);
      this.#memoryBytes += block.memory.byteLength;
      if (i < this.#blocks.length - 1) this.#countFull(block);
    }
  }

  #countFull(block: HeadBlock): void {
    this.#fullRows += block.rowCount;
    this.#fullLineBytes += block.lineBytes;
    this.#fullNames += block.nameCount;
  }

  #countNames(bytes: number): void {
    this.#nameBytes += bytes;
    this.#memory.count(bytes);
  }

  #addBlock(batch: Batch, row: number): void {
    const last = this.#last();
    if (last !== undefined) this.#countFull(last);
    const wanted = Math.max(
      this.#nextLineBytes,
      Math.min(shapeOf(batch).lineBytesOfDay.get(this.day) ?? 0, maxHeadBlockLineBytes),
    );
    this.#nextLineBytes = Math.min(2 * wanted, maxHeadBlockLineBytes);
    const capacity = capacityFor(batch, row, wanted);
    const memory = this.#memory.take(headBlockBytes(capacity));
    this.#memoryBytes += memory.byteLength;
    this.#blocks.push(new HeadBlock(this.baseNs, capacity, memory));
  }
}

export interface HeadInit {
  readonly id: string;
  readonly tenant: string;
  readonly day: number;
  readonly nowMs: number;
  readonly memory: HeadMemory;
  readonly files: PinnedFiles;
}

/** A head that a push appended to, with its ends before and after. */
export interface HeadGrowth {
  readonly head: Head;
  readonly before: HeadMark;
  after: HeadMark;
}

/** Checks the bounds of runs, which are few compared to rows. */
function overlaps(block: HeadBlock, fromTime: number, toTime: number): boolean {
  const { runMin, runMax } = block.columns;
  for (let run = 0; run < block.runCount; run++) {
    if (runMin[run]! < toTime && runMax[run]! >= fromTime) return true;
  }
  return false;
}

/** Line bytes of the first block of a head, and of a block of a busy head. */
const minBlockLineBytes = 4 * 1024;
export const maxHeadBlockLineBytes = 1024 * 1024;
/** Most rows of one block, also for empty lines, and the least mean length of a line that is assumed. */
const maxBlockRows = 65_536;
const minMeanLine = 32;
/** Blocks are larger than the proportions of the batch, because the next one differs a little. */
const slack = 1.25;

/**
 * The capacity of a block for `wantedLineBytes` of lines with the rows, runs and metadata per byte of line that a batch
 * has. It always has room for the row at `rowFrom`.
 */
function capacityFor(batch: Batch, rowFrom: number, wantedLineBytes: number): HeadBlockCapacity {
  const perRow = (total: number) => total / batch.rowCount;
  const meanLine = Math.max(minMeanLine, perRow(batch.lineBytes));
  const { valueBytes: batchValueBytes } = shapeOf(batch);
  const maxRows = rowsOfNames(batch.metaNames.length, perRow(batch.metaName.length));
  const lineBytes = Math.min(wantedLineBytes, Math.ceil(slack * maxRows * meanLine));
  const rows = Math.min(maxRows, Math.ceil((slack * lineBytes) / meanLine) + 16);
  const runs = Math.min(rows, Math.ceil(slack * rows * perRow(batch.streams.length)) + 16);
  const pairFrom = batch.metaStart[rowFrom]!;
  const pairTo = batch.metaStart[rowFrom + 1]!;
  const firstValueBytes = sum(batch.metaValueLength.subarray(pairFrom, pairTo));
  const pairs = Math.ceil(slack * rows * perRow(batch.metaName.length));
  const valueBytes = Math.ceil(slack * rows * perRow(batchValueBytes));
  return {
    rows,
    runs,
    pairs: Math.max(pairs, pairTo - pairFrom),
    lineBytes: Math.max(lineBytes, batch.lineLength[rowFrom]!),
    valueBytes: Math.max(valueBytes, firstValueBytes),
  };
}

/** Most rows of a block with this many metadata names, if each row brings new ones until all have come. */
function rowsOfNames(names: number, pairsPerRow: number): number {
  if (names === 0) return maxBlockRows;
  const rows = Math.max(maxMetadataCells / names, Math.sqrt(maxMetadataCells / pairsPerRow));
  return Math.min(maxBlockRows, Math.ceil(rows));
}

/** The measures of a batch that decide about block sizes; taken once for all of its heads. */
interface BatchShape {
  readonly valueBytes: number;
  readonly lineBytesOfDay: ReadonlyMap<number, number>;
}

const shapes = new WeakMap<Batch, BatchShape>();

function shapeOf(batch: Batch): BatchShape {
  const known = shapes.get(batch);
  if (known !== undefined) return known;
  const lineBytesOfDay = new Map<number, number>();
  let day = Number.NaN;
  let bytes = 0;
  for (let row = 0; row < batch.rowCount; row++) {
    const dayOfRow = Math.floor(batch.seconds[row]! / 86_400);
    if (dayOfRow !== day) {
      if (bytes > 0) lineBytesOfDay.set(day, bytes);
      day = dayOfRow;
      bytes = lineBytesOfDay.get(day) ?? 0;
    }
    bytes += batch.lineLength[row]!;
  }
  lineBytesOfDay.set(day, bytes);
  const shape = { valueBytes: sum(batch.metaValueLength), lineBytesOfDay };
  shapes.set(batch, shape);
  return shape;
}

function sum(values: Uint32Array): number {
  let total = 0;
  for (let i = 0; i < values.length; i++) total += values[i]!;
  return total;
}

/**
 * Reuses the shared memory of sealed heads. Its pages are mapped already, which saves the kernel from clearing a gigabyte
 * per gigabyte pushed, and shared memory is freed late because the garbage collector does not see its size. Only memory
 * that nobody can read any more may be reused.
 */
export class HeadMemory {
  readonly #maxBytes: number;
  /** By size. */
  readonly #free = new Map<number, SharedArrayBuffer[]>();
  #freeBytes = 0;
  #usedBytes = 0;

  constructor(options: { readonly maxBytes: number }) {
    this.#maxBytes = options.maxBytes;
  }

  /** Size of the memory that heads use. */
  get usedBytes(): number {
    return this.#usedBytes;
  }

  /** Size of the memory that is kept for later heads. */
  get freeBytes(): number {
    return this.#freeBytes;
  }

  /** Adds other memory of heads to the used size, or subtracts it when negative. */
  count(bytes: number): void {
    this.#usedBytes += bytes;
  }

  /** Returns memory of at least this size with arbitrary content. */
  take(sizeBytes: number): SharedArrayBuffer {
    const wanted = roundUp(sizeBytes);
    for (let size = wanted; size <= 2 * wanted; size = roundUp(size + 1)) {
      const memory = this.#free.get(size)?.pop();
      if (memory === undefined) continue;
      this.#freeBytes -= size;
      this.#usedBytes += size;
      return memory;
    }
    this.#usedBytes += wanted;
    return new SharedArrayBuffer(wanted);
  }

  /** Takes memory back. With `reuse` false it is only subtracted, because a query may still read it. */
  give(memory: SharedArrayBuffer, reuse: boolean): void {
    this.#usedBytes -= memory.byteLength;
    if (!reuse || this.#freeBytes + memory.byteLength > this.#maxBytes) return;
    const alike = this.#free.get(memory.byteLength);
    if (alike === undefined) this.#free.set(memory.byteLength, [memory]);
    else alike.push(memory);
    this.#freeBytes += memory.byteLength;
  }
}

/** Rounds to steps of 1/8 of the size, so that blocks of similar batches fit into each other's memory. */
function roundUp(sizeBytes: number): number {
  const step = Math.max(4096, 2 ** Math.floor(Math.log2(sizeBytes)) / 8);
  return Math.ceil(sizeBytes / step) * step;
}

/** The log files with the first rows of heads: those files and later ones must not be cut. */
export class PinnedFiles {
  /** Number of heads by their first file. */
  readonly #heads = new Map<number, number>();

  /** The oldest file; Infinity when there is none. */
  get first(): number {
    return Math.min(...this.#heads.keys());
  }

  pin(file: number): void {
    this.#heads.set(file, (this.#heads.get(file) ?? 0) + 1);
  }

  /** Removes the pin of a head, if it has one. */
  unpin(file: number): void {
    const left = (this.#heads.get(file) ?? 0) - 1;
    if (left > 0) this.#heads.set(file, left);
    else this.#heads.delete(file);
  }
}
