import { type Batch, dayNs } from "@skald/model";
import {
  HeadBlock,
  type HeadBlockCapacity,
  type HeadBlockRef,
  headBlockBytes,
  maxMetadataCells,
} from "@skald/storage";
import type { HashedStream } from "./duplicates.js";
import { RunChains } from "./run-chains.js";

/** Where a head ends: blocks, and rows of the last one. */
export interface HeadMark {
  readonly blocks: number;
  readonly rows: number;
}

/**
 * The rows of one tenant and UTC day that are not in a segment yet, as a list of head blocks. Grows until it is
 * frozen; from then on it waits to be sealed, under the same id.
 */
export class Head {
  /** Also the id of its segment. Replay changes it when it must seal before the last row is read. */
  id: string;
  readonly tenant: string;
  /** Days since the epoch. */
  readonly day: number;
  readonly baseNs: bigint;
  readonly createdMs: number;
  lastAppendMs: number;
  /** Log file with the last row. */
  lastFile = 0;
  /** Pushes whose rows are appended and not in the log yet. */
  pendingPushes = 0;
  /** Its rows are on their way to a later log file. */
  forwarding = false;
  /** Set once a query got a view: the memory may be read for long. */
  viewed = false;
  readonly #memory: HeadMemory;
  readonly #files: PinnedFiles;
  #firstFile = Number.POSITIVE_INFINITY;
  readonly #blocks: HeadBlock[] = [];
  readonly chains = new RunChains(this.#blocks);
  /** Streams whose rows are hashed, because duplicates among them are costly to find otherwise. */
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

  /** Takes notice that rows of it are in a log file; files ascend. */
  noteFile(file: number): void {
    this.lastFile = file;
    if (this.#firstFile <= file) return;
    this.#firstFile = file;
    this.#files.pin(file);
  }

  /** Its rows are in a later file as a whole: those before it may be cut as far as it goes. */
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

  /** Distinct names of metadata; one that several blocks have counts in each. */
  get nameCount(): number {
    return this.#fullNames + (this.#last()?.nameCount ?? 0);
  }

  /** Memory held: shared memory, and the names of metadata. */
  get memoryBytes(): number {
    return this.#memoryBytes + this.#nameBytes;
  }

  get blocks(): readonly HeadBlock[] {
    return this.#blocks;
  }

  /** Copies rows of one stream and of this day behind the others; they are not visible yet. */
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

  /** Takes back what was appended since a mark. */
  truncate(mark: HeadMark): void {
    for (const block of this.#blocks.splice(mark.blocks)) this.#memory.give(block.memory, true);
    this.#last()?.truncate(mark.rows);
    this.#memoryBytes = 0;
    this.#fullRows = 0;
    this.#fullLineBytes = 0;
    this.#fullNames = 0;
    this.#countNames(-this.#nameBytes);
    for (const block of this.#blocks) this.#countNames(block.nameBytes);
    for (const [i, block] of this.#blocks.entries()) {
      this.#memoryBytes += block.memory.byteLength;
      if (i === mark.blocks - 1) break;
      this.#fullRows += block.rowCount;
      this.#fullLineBytes += block.lineBytes;
      this.#fullNames += block.nameCount;
    }
    this.chains.rebuild();
    this.hashed.clear();
  }

  /** Forgets all rows, which nobody has seen yet, and the log files that they are in. */
  clear(): void {
    this.truncate({ blocks: 0, rows: 0 });
    this.#files.unpin(this.#firstFile);
    this.#firstFile = Number.POSITIVE_INFINITY;
  }

  /** The published rows of blocks that have some in the range, `[fromTime, toTime)`, ns since the start of the day. */
  view(fromTime: number, toTime: number): HeadBlockRef[] {
    const refs: HeadBlockRef[] = [];
    for (const block of this.#blocks) {
      if (block.publishedRows === 0 || !overlaps(block, fromTime, toTime)) continue;
      refs.push(block.view());
    }
    return refs;
  }

  /** Gives memory and log back; the memory is used again unless a query may still read it. The head is empty after it. */
  release(): void {
    this.#files.unpin(this.#firstFile);
    for (const block of this.#blocks) this.#memory.give(block.memory, !this.viewed);
    this.#blocks.length = 0;
    this.#fullRows = 0;
    this.#fullLineBytes = 0;
    this.#memoryBytes = 0;
    this.#fullNames = 0;
    this.#countNames(-this.#nameBytes);
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

  #countNames(bytes: number): void {
    this.#nameBytes += bytes;
    this.#memory.count(bytes);
  }

  #addBlock(batch: Batch, row: number): void {
    const last = this.#last();
    this.#fullRows += last?.rowCount ?? 0;
    this.#fullLineBytes += last?.lineBytes ?? 0;
    this.#fullNames += last?.nameCount ?? 0;
    const wanted = Math.max(
      this.#nextLineBytes,
      Math.min(lineBytesOfDay(batch, this.day), maxHeadBlockLineBytes),
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

/** A head that a push appended to, and where it ended before and after. */
export interface HeadGrowth {
  readonly head: Head;
  readonly before: HeadMark;
  after: HeadMark;
}

/** Runs are few beside rows, so their bounds are looked through. */
function overlaps(block: HeadBlock, fromTime: number, toTime: number): boolean {
  const { runMin, runMax } = block.columns;
  for (let run = 0; run < block.runCount; run++) {
    if (runMin[run]! < toTime && runMax[run]! >= fromTime) return true;
  }
  return false;
}

/** Line bytes of the first block of a head, and of a block of a busy one. */
export const minBlockLineBytes = 4 * 1024;
export const maxHeadBlockLineBytes = 1024 * 1024;
/** Rows of one block at most, also for lines that are short or empty; and per byte of line. */
const maxBlockRows = 65_536;
const minMeanLine = 32;
/** Room beyond the proportions of the batch, because the next one differs a little. */
const slack = 1.25;

/**
 * Capacity of a block for `lineBytes` of lines in the proportions of a batch: rows, runs and metadata per byte of
 * line. Always has room for the row at `rowFrom`.
 */
export function capacityFor(
  batch: Batch,
  rowFrom: number,
  wantedLineBytes: number,
): HeadBlockCapacity {
  const perRow = (total: number) => total / batch.rowCount;
  const meanLine = Math.max(minMeanLine, perRow(batch.lineBytes));
  const { valueBytes: batchValueBytes } = shapeOf(batch);
  const maxRows = rowsOfNames(batch.metaNames.length, perRow(batch.metaName.length));
  const lineBytes = Math.min(wantedLineBytes, Math.ceil(slack * maxRows * meanLine));
  const rows = Math.min(maxRows, Math.ceil((slack * lineBytes) / meanLine) + 16);
  const runs = Math.min(rows, Math.ceil(slack * rows * perRow(batch.streams.length)) + 16);
  const first = sizeOfRow(batch, rowFrom);
  const pairs = Math.ceil(slack * rows * perRow(batch.metaName.length));
  const valueBytes = Math.ceil(slack * rows * perRow(batchValueBytes));
  return {
    rows,
    runs,
    pairs: Math.max(pairs, first.pairs),
    lineBytes: Math.max(lineBytes, first.lineBytes),
    valueBytes: Math.max(valueBytes, first.valueBytes),
  };
}

/** Rows that a block can have with so many names of metadata, if each row brings new ones until all are there. */
function rowsOfNames(names: number, pairsPerRow: number): number {
  if (names === 0) return maxBlockRows;
  const rows = Math.max(maxMetadataCells / names, Math.sqrt(maxMetadataCells / pairsPerRow));
  return Math.min(maxBlockRows, Math.ceil(rows));
}

/** Bytes of the lines of a batch in one UTC day. */
export function lineBytesOfDay(batch: Batch, day: number): number {
  return shapeOf(batch).lineBytesOfDay.get(day) ?? 0;
}

/** What blocks are sized by; measured once for all heads that a batch goes to. */
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

function sizeOfRow(batch: Batch, row: number) {
  const from = batch.metaStart[row]!;
  const to = batch.metaStart[row + 1]!;
  return {
    pairs: to - from,
    lineBytes: batch.lineLength[row]!,
    valueBytes: sum(batch.metaValueLength.subarray(from, to)),
  };
}

function sum(values: Uint32Array): number {
  let total = 0;
  for (let i = 0; i < values.length; i++) total += values[i]!;
  return total;
}

/**
 * Shared memory of heads that are sealed, for the next ones: the pages are there already, which saves the kernel's
 * clearing of a gigabyte per gigabyte pushed, and shared memory is freed late because the garbage collector does not
 * see its size. Only memory that nobody can read any more may come back.
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

  /** Taken and not given back. */
  get usedBytes(): number {
    return this.#usedBytes;
  }

  /** Kept for the next heads. */
  get freeBytes(): number {
    return this.#freeBytes;
  }

  /** Counts memory that heads hold elsewhere, or a negative number when they hold it no more. */
  count(bytes: number): void {
    this.#usedBytes += bytes;
  }

  /** Memory of at least this size, not cleared. */
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

  /** Takes memory back: to be used again, or only to be counted as gone, because a query may still read it. */
  give(memory: SharedArrayBuffer, reuse: boolean): void {
    this.#usedBytes -= memory.byteLength;
    if (!reuse || this.#freeBytes + memory.byteLength > this.#maxBytes) return;
    const alike = this.#free.get(memory.byteLength);
    if (alike === undefined) this.#free.set(memory.byteLength, [memory]);
    else alike.push(memory);
    this.#freeBytes += memory.byteLength;
  }
}

/** Steps of 1/8 of the size, so that blocks of like batches fit into each other's memory. */
function roundUp(sizeBytes: number): number {
  const step = Math.max(4096, 2 ** Math.floor(Math.log2(sizeBytes)) / 8);
  return Math.ceil(sizeBytes / step) * step;
}

/** Which log files heads have their first rows in: those and all behind them cannot be cut. */
export class PinnedFiles {
  /** Heads by their first file. */
  readonly #heads = new Map<number, number>();

  /** The oldest one; Infinity when there is none. */
  get first(): number {
    return Math.min(...this.#heads.keys());
  }

  pin(file: number): void {
    this.#heads.set(file, (this.#heads.get(file) ?? 0) + 1);
  }

  /** Takes a head's pin back; of no consequence for a head that has none. */
  unpin(file: number): void {
    const left = (this.#heads.get(file) ?? 0) - 1;
    if (left > 0) this.#heads.set(file, left);
    else this.#heads.delete(file);
  }
}
