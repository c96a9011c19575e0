import { copyBytes } from "@skald/kernels";
import { type BytesColumn, firstIndex, paddingBytes } from "@skald/model";
import { maxMetadataCells } from "../head/layout.js";
import type { MapRows, SortedBlock } from "../segment/layout.js";
import { lengthsHeadroom } from "../segment/write/columns.js";
import type { MoreRows, RowBlocks, SealBlock } from "./open-heads.js";
import { RowRanges, type RowSink } from "./order-rows.js";

/** A block is full at this many bytes of lines or rows, whichever comes first; a longer line gets a block of its own. */
const maxBlockLineBytes = 256 * 1024;
const maxBlockRows = 16 * 1024;
/** Bounds blocks of rows with short lines and long metadata. */
const maxBlockMetadataBytes = 1024 * 1024;

/** Cuts rows that come in their final order into blocks, and copies their columns together. */
export class BlockCutter implements RowSink {
  readonly #blocks: readonly SealBlock[];
  readonly #names: readonly string[];
  readonly #emit: (block: SortedBlock) => void;
  readonly #ranges = new RowRanges();
  readonly #more: MoreGatherer;
  #streams: number[] = [];
  #rows = 0;
  #lineBytes = 0;
  #metadataBytes = 0;
  #lineTarget = new Uint8Array(0);

  /** The blocks that `emit` gets are valid during the call. */
  constructor(heads: RowBlocks, emit: (block: SortedBlock) => void) {
    this.#blocks = heads.blocks;
    this.#names = heads.metadataNames.columns;
    this.#more = new MoreGatherer(heads.metadataNames.more.length);
    this.#emit = emit;
  }

  take(stream: number, block: number, from: number, to: number): void {
    let row = from;
    while (row < to) {
      const end = this.#fitNames(block, row, this.#fit(block, row, to));
      if (end === row) {
        this.#flush();
        continue;
      }
      const source = this.#blocks[block]!;
      this.#ranges.push(block, row, end);
      this.#streams.push(stream);
      this.#rows += end - row;
      this.#lineBytes += bytesOf(source.lines, row, end);
      this.#metadataBytes += metadataBytesOf(source, row, end);
      row = end;
    }
  }

  /** Emits what is left. */
  finish(): void {
    if (this.#rows > 0) this.#flush();
  }

  /** Where the rows that still fit end; an empty block takes at least one. */
  #fit(block: number, from: number, to: number): number {
    const source = this.#blocks[block]!;
    const limit = Math.min(to, from + maxBlockRows - this.#rows);
    const fits = (end: number) =>
      this.#lineBytes + bytesOf(source.lines, from, end) <= maxBlockLineBytes &&
      this.#metadataBytes + metadataBytesOf(source, from, end) <= maxBlockMetadataBytes;
    if (fits(limit)) return limit;
    const end = firstIndex(from + 1, limit, (at) => !fits(at)) - 1;
    return end === from && this.#rows === 0 ? from + 1 : end;
  }

  /** Where the rows end whose names still fit beside those of the block so far; notes them. */
  #fitNames(block: number, from: number, to: number): number {
    return from + this.#more.note(this.#blocks[block]!.more, from, to, this.#rows);
  }

  #flush(): void {
    const rowCount = this.#rows;
    const timestamps = this.#gatherTimes();
    const headroom = lengthsHeadroom(rowCount);
    this.#lineTarget = grown(this.#lineTarget, headroom + this.#lineBytes + paddingBytes);
    const lines = this.#gather((block) => block.lines, this.#lineTarget.subarray(headroom));
    this.#emit({
      rowCount,
      runs: this.#runs(timestamps, lines),
      timestamps,
      lines,
      lineHeadroom: headroom,
      metadata: this.#gatherMetadata(),
      more: this.#more.gather(this.#blocks, this.#ranges, rowCount),
    });
    this.#ranges.clear();
    this.#streams = [];
    this.#rows = 0;
    this.#lineBytes = 0;
    this.#metadataBytes = 0;
  }

  #gatherTimes(): Float64Array {
    const ranges = this.#ranges;
    const timestamps = new Float64Array(this.#rows);
    let at = 0;
    for (let i = 0; i < ranges.count; i++) {
      const source = this.#blocks[ranges.block[i]!]!.timestamps;
      const from = ranges.from[i]!;
      const to = ranges.to[i]!;
      for (let row = from; row < to; row++) timestamps[at++] = source[row]!;
    }
    return timestamps;
  }

  #gatherMetadata(): Map<string, BytesColumn> {
    const ranges = this.#ranges;
    const columns = new Map<string, BytesColumn>();
    for (const name of this.#names) {
      let bytes = 0;
      for (let i = 0; i < ranges.count; i++) {
        const column = this.#blocks[ranges.block[i]!]!.metadata.get(name);
        if (column !== undefined) {
          bytes += bytesOf(column, ranges.from[i]!, ranges.to[i]!);
        }
      }
      if (bytes === 0) continue;
      const target = new Uint8Array(bytes + paddingBytes);
      columns.set(
        name,
        this.#gather((block) => block.metadata.get(name), target),
      );
    }
    return columns;
  }

  /** Copies one column of all ranges; rows of blocks without the column are empty. */
  #gather(columnOf: (block: SealBlock) => BytesColumn | undefined, bytes: Uint8Array): BytesColumn {
    const ranges = this.#ranges;
    const offsets = new Uint32Array(this.#rows + 1);
    let row = 0;
    let end = 0;
    for (let i = 0; i < ranges.count; i++) {
      const column = columnOf(this.#blocks[ranges.block[i]!]!);
      const from = ranges.from[i]!;
      const to = ranges.to[i]!;
      if (column === undefined) {
        offsets.fill(end, row + 1, row + 1 + to - from);
        row += to - from;
        continue;
      }
      const source = column.offsets;
      const start = source[from]!;
      const shift = end - start;
      for (let r = from; r < to; r++) offsets[++row] = source[r + 1]! + shift;
      copyBytes(column.bytes, start, source[to]!, bytes, end);
      end = offsets[row]!;
    }
    return { bytes, offsets };
  }

  #runs(timestamps: Float64Array, lines: BytesColumn): SortedBlock["runs"] {
    const ranges = this.#ranges;
    const streams: number[] = [];
    const starts: number[] = [];
    let row = 0;
    for (let i = 0; i < ranges.count; i++) {
      const stream = this.#streams[i]!;
      if (stream !== streams.at(-1)) {
        streams.push(stream);
        starts.push(row);
      }
      row += ranges.to[i]! - ranges.from[i]!;
    }
    starts.push(row);
    const count = streams.length;
    const at = (run: number) => starts[run]!;
    const byRun = (of: (run: number) => number) =>
      Float64Array.from({ length: count }, (_, r) => of(r));
    return {
      count,
      stream: Uint32Array.from(streams),
      rowStart: Uint32Array.from(starts),
      minTime: byRun((r) => timestamps[at(r)]!),
      maxTime: byRun((r) => timestamps[at(r + 1) - 1]!),
      lineBytes: byRun((r) => bytesOf(lines, at(r), at(r + 1))),
    };
  }
}

function bytesOf({ offsets }: BytesColumn, from: number, to: number): number {
  return offsets[to]! - offsets[from]!;
}

function metadataBytesOf({ metadata, more }: SealBlock, from: number, to: number): number {
  let bytes = more.offsets[more.start[to]!]! - more.offsets[more.start[from]!]!;
  for (const column of metadata.values()) bytes += bytesOf(column, from, to);
  return bytes;
}

function grown(target: Uint8Array<ArrayBuffer>, size: number): Uint8Array<ArrayBuffer> {
  return target.byteLength >= size ? target : new Uint8Array(size * 2);
}

/** Copies the metadata without columns of the rows of one block together, and bounds its distinct names. */
class MoreGatherer {
  /** By name: the block that has it last, counted from one. */
  readonly #blockOf: Uint32Array;
  #block = 1;
  #used: number[] = [];

  constructor(nameCount: number) {
    this.#blockOf = new Uint32Array(nameCount);
  }

  /**
   * Notes the names of the rows `from .. to)` as far as they fit beside `rows` other rows, and returns how many rows those
   * are; the first row of a block always fits. This bounds the columns of all names of a block.
   */
  note(more: MoreRows, from: number, to: number, rows: number): number {
    if (this.#blockOf.length === 0) return to - from;
    for (let row = from; row < to; row++) {
      const start = more.start[row]!;
      const end = more.start[row + 1]!;
      let added = 0;
      for (let pair = start; pair < end; pair++) {
        if (this.#blockOf[more.names[pair]!] !== this.#block) added++;
      }
      const rowsThen = rows + row - from + 1;
      const cells = rowsThen * (this.#used.length + added);
      if (rowsThen > 1 && cells > maxMetadataCells) return row - from;
      for (let pair = start; added > 0 && pair < end; pair++) this.#use(more.names[pair]!);
    }
    return to - from;
  }

  /** Ends the block: its pairs, of all rows in the ranges. */
  gather(blocks: readonly SealBlock[], ranges: RowRanges, rowCount: number): MapRows {
    const used = Uint32Array.from(this.#used).sort();
    this.#used = [];
    this.#block++;
    const pairStart = new Uint32Array(rowCount + 1);
    const counts = used.length === 0 ? { pairs: 0, bytes: 0 } : countOf(blocks, ranges);
    const names = new Uint32Array(counts.pairs);
    const valueLengths = new Uint32Array(counts.pairs);
    const values = new Uint8Array(counts.bytes);
    const more = { rowCount, pairStart, names, valueLengths, values, used: [...used] };
    if (counts.pairs === 0) return more;
    let row = 0;
    let at = 0;
    let valueAt = 0;
    for (let i = 0; i < ranges.count; i++) {
      const source = blocks[ranges.block[i]!]!.more;
      const first = source.start[ranges.from[i]!]!;
      const end = source.start[ranges.to[i]!]!;
      for (let r = ranges.from[i]!; r < ranges.to[i]!; r++) {
        pairStart[++row] = at + source.start[r + 1]! - first;
      }
      for (let pair = first; pair < end; pair++, at++) {
        names[at] = source.names[pair]!;
        valueLengths[at] = source.offsets[pair + 1]! - source.offsets[pair]!;
      }
      const bytes = source.bytes.subarray(source.offsets[first], source.offsets[end]);
      values.set(bytes, valueAt);
      valueAt += bytes.length;
    }
    return more;
  }

  #use(name: number): void {
    if (this.#blockOf[name] === this.#block) return;
    this.#blockOf[name] = this.#block;
    this.#used.push(name);
  }
}

function countOf(blocks: readonly SealBlock[], ranges: RowRanges) {
  let pairs = 0;
  let bytes = 0;
  for (let i = 0; i < ranges.count; i++) {
    const { start, offsets } = blocks[ranges.block[i]!]!.more;
    const from = start[ranges.from[i]!]!;
    const to = start[ranges.to[i]!]!;
    pairs += to - from;
    bytes += offsets[to]! - offsets[from]!;
  }
  return { pairs, bytes };
}
