import type { RowBlocks } from "./open-heads.js";
import type { RowRanges } from "./row-ranges.js";

/**
 * Merges the strands of a stream, given in order of arrival, into `ordered` and returns it: rows ascend in time, equal
 * times stay in order of arrival. Neighbouring strands are merged pairwise until one is left: n rows in k strands
 * cost n log k.
 */
export function mergeStrands(heads: RowBlocks, strands: RowRanges, ordered: RowRanges): RowRanges {
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
