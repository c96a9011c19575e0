import { firstIndex, lowerBound, type RunTable } from "@skald/model";
import type { NameSplit } from "../segment/layout.js";
import type { PageSet, Segment } from "../segment/segment.js";
import {
  type MoreNumbers,
  type PairedBlock,
  type RowBlocks,
  type SealBlock,
  sealBlock,
} from "./open-heads.js";
import type { RowRanges } from "./order-rows.js";

/** Rows of a segment that do not go on: block numbers, ascending, and for each its row numbers, ascending. */
export interface DroppedRows {
  readonly blocks: Uint32Array;
  readonly rows: readonly Uint32Array[];
}

export interface MergeInput {
  readonly segment: Segment;
  /** Rows that do not go on. */
  readonly dropped?: DroppedRows | undefined;
}

/** Rows `from .. to)` of a block of the window, all of one stream, ascending in time. */
interface Piece {
  readonly number: number;
  readonly from: number;
  readonly to: number;
  /** Whether the block has nothing behind it. */
  readonly endsBlock: boolean;
}

/** Stored pages are read for this many blocks at a time. */
const blocksPerRead = 4;
const noRows = new Uint32Array(0);

/**
 * Goes through the runs of a segment in order. Headers say what comes next; a block is read when one of its rows is taken.
 */
export class InputCursor {
  /** Stream of the next rows, by the number that all inputs share; infinite at the end. */
  stream = 0;
  /** Times of the next run, ns since the base. The first is that of the next row once some rows of it were taken. */
  min = 0;
  max = 0;
  readonly #segment: Segment;
  readonly #numbers: Uint32Array;
  readonly #dropped: DroppedRows | undefined;
  readonly #window: BlockWindow;
  /** Runs that were read, with rows that were not taken. */
  #pieces: Piece[] = [];
  #block = 0;
  #run = -1;
  #runs: RunTable;
  /** The block that was read last, and its number in the window. */
  #read = { block: -1, number: -1 };
  #pages: { readonly to: number; readonly set: PageSet } | undefined;
  #droppedAt = 0;

  constructor(options: {
    readonly segment: Segment;
    /** By stream of the segment, the number that all inputs share. */
    readonly numbers: Uint32Array;
    readonly dropped: DroppedRows | undefined;
    readonly window: BlockWindow;
  }) {
    this.#segment = options.segment;
    this.#numbers = options.numbers;
    this.#dropped = options.dropped;
    this.#window = options.window;
    this.#runs = this.#segment.runs(0);
    this.#advance();
  }

  /** Whether rows of the stream follow those of the next run; undefined when none do, else their first time. */
  get minAfter(): number | undefined {
    const last = this.#run + 1 < this.#runs.count;
    const runs = last ? this.#runs : this.#runsOf(this.#block + 1);
    const run = last ? this.#run + 1 : 0;
    if (runs === undefined || this.#numbers[runs.stream[run]!] !== this.stream) return undefined;
    return runs.minTime[run];
  }

  /**
   * Takes all rows up to a time, which must not lie behind the end of the next run unless the stream has no more, as ranges.
   * The rows of later runs that have exactly this time come along.
   */
  takeUpTo(time: number, ranges: RowRanges): void {
    const { stream } = this;
    while (this.stream === stream && this.min <= time) {
      if (this.#pieces.length === 0) this.#pieces.push(this.#readRun());
      const piece = this.#pieces[0]!;
      const to = this.max <= time ? piece.to : this.#rowBehind(piece, time);
      this.#pushKept(piece, to, ranges);
      if (to < piece.to) {
        this.#pieces[0] = { ...piece, from: to };
        this.min = this.#window.blocks[piece.number]!.timestamps[to]!;
        return;
      }
      this.#pieces = [];
      if (piece.endsBlock) this.#window.pass(piece.number);
      this.#advance();
    }
  }

  #advance(): void {
    this.#run++;
    if (this.#run === this.#runs.count) {
      this.#block++;
      this.#run = 0;
      const next = this.#runsOf(this.#block);
      if (next === undefined) {
        this.stream = Number.POSITIVE_INFINITY;
        return;
      }
      this.#runs = next;
    }
    this.stream = this.#numbers[this.#runs.stream[this.#run]!]!;
    this.min = this.#runs.minTime[this.#run]!;
    this.max = this.#runs.maxTime[this.#run]!;
  }

  #runsOf(block: number): RunTable | undefined {
    return block < this.#segment.blockCount ? this.#segment.runs(block) : undefined;
  }

  #readRun(): Piece {
    if (this.#read.block !== this.#block) {
      this.#read = { block: this.#block, number: this.#window.add(this.#openBlock()) };
    }
    return {
      number: this.#read.number,
      from: this.#runs.rowStart[this.#run]!,
      to: this.#runs.rowStart[this.#run + 1]!,
      endsBlock: this.#run + 1 === this.#runs.count,
    };
  }

  #openBlock() {
    const block = this.#block;
    if (this.#pages === undefined || block >= this.#pages.to) {
      const to = Math.min(block + blocksPerRead, this.#segment.blockCount);
      const columns = { timestamps: true, lines: true, metadata: "all" } as const;
      this.#pages = { to, set: this.#segment.readPages({ from: block, to }, columns) };
    }
    return this.#segment.block(block, this.#pages.set);
  }

  /** The first row of a piece behind a time. */
  #rowBehind({ number, from, to }: Piece, time: number): number {
    const { timestamps } = this.#window.blocks[number]!;
    return firstIndex(from, to, (row) => timestamps[row]! > time);
  }

  #pushKept({ number, from }: Piece, to: number, ranges: RowRanges): void {
    let start = from;
    const rows = this.#droppedOf(this.#block);
    for (let i = lowerBound(rows, from); i < rows.length && rows[i]! < to; i++) {
      if (rows[i]! > start) ranges.push(number, start, rows[i]!);
      start = rows[i]! + 1;
    }
    if (start < to) ranges.push(number, start, to);
  }

  #droppedOf(block: number): Uint32Array {
    const { blocks, rows } = this.#dropped ?? { blocks: noRows, rows: [] };
    while (this.#droppedAt < blocks.length && blocks[this.#droppedAt]! < block) this.#droppedAt++;
    return blocks[this.#droppedAt] === block ? rows[this.#droppedAt]! : noRows;
  }
}

/**
 * The blocks of a merge that are in memory, by number; a number is used again once no row of its block is needed. Rows that
 * were handed on are needed until the block that they go to is written, so a block that was passed stays till then.
 */
export class BlockWindow implements RowBlocks {
  readonly blocks: SealBlock[] = [];
  readonly metadataNames: NameSplit;
  readonly #more: MoreNumbers;
  #free: number[] = [];
  #passed: number[] = [];
  #passing: number[] = [];

  constructor(metadataNames: NameSplit, more: MoreNumbers) {
    this.metadataNames = metadataNames;
    this.#more = more;
  }

  /** Blocks that are held. */
  get size(): number {
    return this.blocks.length - this.#free.length;
  }

  /** Reads the columns of a block and numbers it. */
  add(block: PairedBlock): number {
    const number = this.#free.pop() ?? this.blocks.length;
    this.blocks[number] = sealBlock(block, this.metadataNames, this.#more);
    return number;
  }

  /** No row of the block follows those that are being handed on. */
  pass(number: number): void {
    this.#passing.push(number);
  }

  /** The rows that were taken are handed on. */
  endRound(): void {
    for (const number of this.#passing) this.#passed.push(number);
    this.#passing.length = 0;
  }

  /** All rows that were handed on in earlier rounds are written. */
  release(): void {
    for (const number of this.#passed) {
      this.blocks[number] = nothing;
      this.#free.push(number);
    }
    this.#passed = [];
  }
}

const noBytes = { bytes: new Uint8Array(0), offsets: new Uint32Array(1) };

const nothing: SealBlock = {
  timestamps: new Float64Array(0),
  lines: noBytes,
  lineBuffer: Buffer.alloc(0),
  metadata: new Map(),
  more: { start: new Uint32Array(1), names: new Uint32Array(0), ...noBytes },
};
