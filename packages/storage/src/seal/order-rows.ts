import type { BytesColumn } from "@skald/model";
import type { MoreRows, OpenedHeads, RowBlocks, SealBlock } from "./open-heads.js";

/**
 * Hands all rows to the sink, sorted by stream, then time, equal times in order of arrival, without duplicates. Works
 * on strands, stretches of a run that ascend in time: the strands of most streams follow each other, and only those that
 * overlap are merged row by row.
 */
export function orderRows(heads: OpenedHeads, sink: RowSink): void {
  const { runs } = heads;
  const strands = new RowRanges();
  const merger = new StrandMerger(heads, sink);
  let from = 0;
  while (from < runs.count) {
    const stream = runs.stream[from]!;
    let to = from + 1;
    while (to < runs.count && runs.stream[to] === stream) to++;
    const ties = collectStrands(heads, from, to, strands);
    merger.emit(stream, strands, ties);
    from = to;
  }
}

/** Hands the rows of the strands of one stream, which come in order of arrival, to a sink in their final order. */
export class StrandMerger {
  readonly #heads: RowBlocks;
  readonly #sink: RowSink;
  readonly #ordered = new RowRanges();
  readonly #duplicates: DuplicateFilter;

  constructor(heads: RowBlocks, sink: RowSink) {
    this.#heads = heads;
    this.#sink = sink;
    this.#duplicates = new DuplicateFilter(heads);
  }

  /** `ties` is true when a strand may have rows of equal times. */
  emit(stream: number, strands: RowRanges, ties: boolean): void {
    const lie = lieOf(this.#heads, strands);
    const ranges = lie === "merge" ? mergeStrands(this.#heads, strands, this.#ordered) : strands;
    // Equal rows have equal times, so without ties there are no duplicates.
    if (ties || lie !== "apart") this.#duplicates.emit(stream, ranges, this.#sink);
    else ranges.emit(stream, this.#sink);
  }
}

/** Splits runs into strands; true when some neighbours within a strand have the same time. */
function collectStrands(
  { runs, blocks }: OpenedHeads,
  from: number,
  to: number,
  strands: RowRanges,
): boolean {
  strands.clear();
  let ties = false;
  for (let r = from; r < to; r++) {
    const block = runs.block[r]!;
    const { timestamps } = blocks[block]!;
    const end = runs.to[r]!;
    let start = runs.from[r]!;
    if (start === end) continue;
    let before = timestamps[start]!;
    for (let row = start + 1; row < end; row++) {
      const time = timestamps[row]!;
      if (time <= before) {
        if (time === before) ties = true;
        else {
          strands.push(block, start, row);
          start = row;
        }
      }
      before = time;
    }
    strands.push(block, start, end);
  }
  return ties;
}

/** How strands lie: each wholly before the next, touching in equal times, or overlapping so that they must be merged. */
function lieOf({ blocks }: RowBlocks, strands: RowRanges): "apart" | "touch" | "merge" {
  let before = Number.NEGATIVE_INFINITY;
  let touch = false;
  for (let i = 0; i < strands.count; i++) {
    const { timestamps } = blocks[strands.block[i]!]!;
    const first = timestamps[strands.from[i]!]!;
    if (first < before) return "merge";
    if (first === before) touch = true;
    before = timestamps[strands.to[i]! - 1]!;
  }
  return touch ? "touch" : "apart";
}

/**
 * Merges the strands of a stream, given in order of arrival, into `ordered` and returns it: rows ascend in time, equal
 * times stay in order of arrival. Neighbouring strands are merged pairwise until one is left: n rows in k strands
 * cost n log k.
 */
function mergeStrands(heads: RowBlocks, strands: RowRanges, ordered: RowRanges): RowRanges {
  const rows = flatten(heads, strands);
  let bounds = rows.bounds;
  let from = rows.order;
  let to = new Uint32Array(from.length);
  while (bounds.length > 2) {
    const merged: number[] = [0];
    for (let i = 0; i + 1 < bounds.length; i += 2) {
      const start = bounds[i]!;
      const middle = bounds[i + 1]!;
      const end = bounds[Math.min(i + 2, bounds.length - 1)]!;
      mergePair(rows.times, from, to, start, middle, end);
      merged.push(end);
    }
    bounds = merged;
    [from, to] = [to, from];
  }
  ordered.clear();
  for (let i = 0; i < from.length; i++) {
    const row = from[i]!;
    ordered.pushRow(rows.block[row]!, rows.row[row]!);
  }
  return ordered;
}

/** All rows of the strands in order of arrival, and a permutation of them that starts as that order. */
interface FlatRows {
  readonly times: Float64Array;
  readonly block: Uint32Array;
  readonly row: Uint32Array;
  readonly order: Uint32Array<ArrayBuffer>;
  /** Where strands begin, and the end. */
  readonly bounds: number[];
}

function flatten({ blocks }: RowBlocks, strands: RowRanges): FlatRows {
  const bounds = [0];
  for (let i = 0; i < strands.count; i++) {
    bounds.push(bounds[i]! + strands.to[i]! - strands.from[i]!);
  }
  const count = bounds[strands.count]!;
  const rows = {
    times: new Float64Array(count),
    block: new Uint32Array(count),
    row: new Uint32Array(count),
    order: Uint32Array.from({ length: count }, (_, i) => i),
    bounds,
  };
  for (let i = 0; i < strands.count; i++) {
    const block = strands.block[i]!;
    const { timestamps } = blocks[block]!;
    let at = bounds[i]!;
    for (let row = strands.from[i]!; row < strands.to[i]!; row++) {
      rows.times[at] = timestamps[row]!;
      rows.block[at] = block;
      rows.row[at] = row;
      at++;
    }
  }
  return rows;
}

/** Merges `start .. middle)` and `middle .. end)` of `from` into `to`; on equal times the left comes first. */
function mergePair(
  times: Float64Array,
  from: Uint32Array,
  to: Uint32Array,
  start: number,
  middle: number,
  end: number,
): void {
  let left = start;
  let right = middle;
  let at = start;
  while (left < middle && right < end) {
    const a = from[left]!;
    const b = from[right]!;
    if (times[a]! <= times[b]!) {
      to[at++] = a;
      left++;
    } else {
      to[at++] = b;
      right++;
    }
  }
  to.set(from.subarray(left, middle), at);
  to.set(from.subarray(right, end), at + middle - left);
}

/** Ties of up to this many rows are compared pair by pair, longer ones are grouped first. */
const maxPairwiseRows = 8;

/** Rows of one tie that are looked at together; a row number and its sample share the 53 bits of a number. */
const maxTieRows = 2 ** 21;

/** Drops rows that are equal in time, line and metadata to an earlier row of their stream. */
class DuplicateFilter {
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

/** A growing list of row ranges: range i is the rows `from[i] .. to[i])` of block `block[i]`. */
export class RowRanges {
  count = 0;
  block = new Uint32Array(64);
  from = new Uint32Array(64);
  to = new Uint32Array(64);

  clear(): void {
    this.count = 0;
  }

  push(block: number, from: number, to: number): void {
    if (this.count === this.block.length) this.#grow();
    const at = this.count++;
    this.block[at] = block;
    this.from[at] = from;
    this.to[at] = to;
  }

  /** Adds one row; extends the last range when the row follows it. */
  pushRow(block: number, row: number): void {
    const last = this.count - 1;
    if (last >= 0 && this.block[last] === block && this.to[last] === row) this.to[last] = row + 1;
    else this.push(block, row, row + 1);
  }

  emit(stream: number, sink: RowSink): void {
    for (let i = 0; i < this.count; i++) {
      sink.take(stream, this.block[i]!, this.from[i]!, this.to[i]!);
    }
  }

  #grow(): void {
    const twice = (old: Uint32Array) => {
      const grown = new Uint32Array(old.length * 2);
      grown.set(old);
      return grown;
    };
    this.block = twice(this.block);
    this.from = twice(this.from);
    this.to = twice(this.to);
  }
}

/** Takes rows in their final order: rows `from .. to)` of a block, all of one stream. */
export interface RowSink {
  take(stream: number, block: number, from: number, to: number): void;
}
