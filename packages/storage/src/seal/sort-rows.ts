import { DuplicateFilter } from "./drop-duplicates.js";
import { mergeStrands } from "./merge-strands.js";
import type { OpenedHeads, RowBlocks } from "./open-heads.js";
import { RowRanges, type RowSink } from "./row-ranges.js";

/**
 * Hands all rows to the sink, sorted by stream, then time, equal times in order of arrival, without duplicates. Works
 * on strands, stretches of a run that ascend in time: most streams are nothing but strands that follow each other,
 * and only those that overlap are merged row by row.
 */
export function orderRows(heads: OpenedHeads, sink: RowSink): void {
  const { runs } = heads;
  const strands = new RowRanges();
  const ordered = new RowRanges();
  const duplicates = new DuplicateFilter(heads);
  let from = 0;
  while (from < runs.count) {
    const stream = runs.stream[from]!;
    let to = from + 1;
    while (to < runs.count && runs.stream[to] === stream) to++;
    const ties = collectStrands(heads, from, to, strands);
    const inOrder = follow(heads, strands);
    const ranges = inOrder === "merge" ? mergeStrands(heads, strands, ordered) : strands;
    // Equal rows have equal times, so without ties there is nothing to look for.
    if (ties || inOrder !== "apart") duplicates.emit(stream, ranges, sink);
    else ranges.emit(stream, sink);
    from = to;
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

/** How strands lie: one wholly before the next, touching in equal times, or so that they must be merged. */
export function follow({ blocks }: RowBlocks, strands: RowRanges): "apart" | "touch" | "merge" {
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
