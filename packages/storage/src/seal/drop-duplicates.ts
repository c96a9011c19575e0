import type { BytesColumn } from "@skald/model";
import type { MoreRows } from "./more-rows.js";
import type { RowBlocks, SealBlock } from "./open-heads.js";
import { RowRanges, type RowSink } from "./row-ranges.js";

/** Ties of up to this many rows are compared pair by pair, longer ones are grouped first. */
const maxPairwiseRows = 8;

/** Rows of one tie that are looked at together; a row number and its sample share the 53 bits of a number. */
const maxTieRows = 2 ** 21;

/** Drops rows that are equal in time, line and metadata to an earlier row of their stream. */
export class DuplicateFilter {
  readonly #blocks: readonly SealBlock[];
  readonly #names: readonly string[];
  readonly #kept = new RowRanges();
  /** The rows of the tie being looked at, in order. */
  readonly #tie = new RowRanges();

  constructor(heads: RowBlocks) {
    this.#blocks = heads.blocks;
    this.#names = heads.metadataNames.columns;
  }

  /** Hands the rows of a stream, sorted by time, to the sink without the duplicates. */
  emit(stream: number, ranges: RowRanges, sink: RowSink): void {
    const kept = this.#kept;
    const tie = this.#tie;
    kept.clear();
    tie.clear();
    let tieTime = Number.NaN;
    for (let i = 0; i < ranges.count; i++) {
      const block = ranges.block[i]!;
      const { timestamps } = this.#blocks[block]!;
      for (let row = ranges.from[i]!; row < ranges.to[i]!; row++) {
        const time = timestamps[row]!;
        if (time !== tieTime) {
          this.#endTie();
          tieTime = time;
        }
        if (tie.count === maxTieRows) this.#endTie();
        tie.push(block, row, row + 1);
      }
    }
    this.#endTie();
    kept.emit(stream, sink);
  }

  #endTie(): void {
    const tie = this.#tie;
    if (tie.count === 1) this.#kept.pushRow(tie.block[0]!, tie.from[0]!);
    else if (tie.count > maxPairwiseRows) this.#keepFirstGrouped();
    else this.#keepFirstPairwise();
    tie.clear();
  }

  #keepFirstPairwise(): void {
    const rows = Uint32Array.from({ length: this.#tie.count }, (_, i) => i);
    this.#keep(this.#dropPairwise(rows, new Uint8Array(rows.length)));
  }

  /**
   * Groups the rows by a few of their bytes, then compares within the groups. Sorting bounds the work of a stream
   * whose rows all have one time, even where the groups do not tell them apart.
   */
  #keepFirstGrouped(): void {
    const { count } = this.#tie;
    const keys = Float64Array.from({ length: count }, (_, i) => this.#sample(i) * maxTieRows + i);
    keys.sort();
    const dropped = new Uint8Array(count);
    for (let from = 0; from < count; ) {
      const sample = Math.floor(keys[from]! / maxTieRows);
      let to = from + 1;
      while (to < count && Math.floor(keys[to]! / maxTieRows) === sample) to++;
      if (to - from > 1) {
        const rows = Uint32Array.from(keys.subarray(from, to), (key) => key % maxTieRows);
        if (rows.length > maxPairwiseRows) this.#dropSorted(rows, dropped);
        else this.#dropPairwise(rows, dropped);
      }
      from = to;
    }
    this.#keep(dropped);
  }

  #dropPairwise(rows: Uint32Array, dropped: Uint8Array): Uint8Array {
    for (let i = 1; i < rows.length; i++) {
      for (let j = 0; j < i; j++) {
        if (this.#compare(rows[j]!, rows[i]!) !== 0) continue;
        dropped[rows[i]!] = 1;
        break;
      }
    }
    return dropped;
  }

  #dropSorted(rows: Uint32Array, dropped: Uint8Array): void {
    rows.sort((a, b) => this.#compare(a, b) || a - b);
    for (let i = 1; i < rows.length; i++) {
      const row = rows[i]!;
      if (this.#compare(rows[i - 1]!, row) === 0) dropped[row] = 1;
    }
  }

  #keep(dropped: Uint8Array): void {
    const tie = this.#tie;
    for (let i = 0; i < tie.count; i++) {
      if (dropped[i] === 0) this.#kept.pushRow(tie.block[i]!, tie.from[i]!);
    }
  }

  /** 32 bits from the length and 16 bytes of the line, spread over it: equal lines have equal samples. */
  #sample(i: number): number {
    const { lines } = this.#blocks[this.#tie.block[i]!]!;
    const row = this.#tie.from[i]!;
    const from = lines.offsets[row]!;
    const length = lines.offsets[row + 1]! - from;
    let hash = length;
    for (let s = 0; s < 16; s++) {
      const at = from + Math.floor((s * length) / 16);
      hash = Math.imul(hash ^ (length === 0 ? 0 : lines.bytes[at]!), 0x01000193);
    }
    return hash >>> 0;
  }

  /** Orders two rows of the tie by line and metadata; 0 when they are equal. */
  #compare(i: number, j: number): number {
    const tie = this.#tie;
    const a = this.#blocks[tie.block[i]!]!;
    const b = this.#blocks[tie.block[j]!]!;
    const rowA = tie.from[i]!;
    const rowB = tie.from[j]!;
    const byLine = compareLines(a, rowA, b, rowB);
    if (byLine !== 0) return byLine;
    return compareMetadata(this.#names, a, rowA, b, rowB);
  }
}

function compareLines(a: SealBlock, rowA: number, b: SealBlock, rowB: number): number {
  const fromA = a.lines.offsets[rowA]!;
  const toA = a.lines.offsets[rowA + 1]!;
  const fromB = b.lines.offsets[rowB]!;
  const toB = b.lines.offsets[rowB + 1]!;
  if (toA - fromA !== toB - fromB) return toA - fromA - (toB - fromB);
  return a.lineBuffer.compare(b.lineBuffer, fromB, toB, fromA, toA);
}

function compareMetadata(
  names: readonly string[],
  a: SealBlock,
  rowA: number,
  b: SealBlock,
  rowB: number,
): number {
  for (const name of names) {
    const order = Buffer.compare(
      valueAt(a.metadata.get(name), rowA),
      valueAt(b.metadata.get(name), rowB),
    );
    if (order !== 0) return order;
  }
  return compareMore(a.more, rowA, b.more, rowB);
}

/** Pair by pair: both have them in the order of their names. */
function compareMore(a: MoreRows, rowA: number, b: MoreRows, rowB: number): number {
  const from = a.start[rowA]!;
  const other = b.start[rowB]!;
  const count = a.start[rowA + 1]! - from;
  const byCount = count - (b.start[rowB + 1]! - other);
  if (byCount !== 0) return byCount;
  for (let i = 0; i < count; i++) {
    const byName = a.names[from + i]! - b.names[other + i]!;
    if (byName !== 0) return byName;
    const order = Buffer.compare(moreAt(a, from + i), moreAt(b, other + i));
    if (order !== 0) return order;
  }
  return 0;
}

function moreAt({ bytes, offsets }: MoreRows, pair: number): Uint8Array {
  return bytes.subarray(offsets[pair], offsets[pair + 1]);
}

const noValue = new Uint8Array(0);

function valueAt(column: BytesColumn | undefined, row: number): Uint8Array {
  if (column === undefined) return noValue;
  return column.bytes.subarray(column.offsets[row], column.offsets[row + 1]);
}
