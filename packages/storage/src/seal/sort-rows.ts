import { DuplicateFinder } from "./drop-duplicates.js";
import type { SealSources } from "./inputs.js";
import { mergeStrands } from "./merge-strands.js";
import { Pieces } from "./row-ranges.js";

/** Takes rows in their final order: rows `from .. to)` of a block, all of one stream. */
export interface RowSink {
  take(stream: number, block: number, from: number, to: number): void;
}

/**
 * Hands all rows to the sink, sorted by stream, then time, equal times in order of arrival, without duplicates. Works
 * on strands, stretches of a run that ascend in time: most streams are nothing but strands that follow each other,
 * and only those that overlap are merged row by row.
 */
export function orderRows(sources: SealSources, sink: RowSink): void {
  const { runs } = sources;
  const strands = new Pieces();
  const ordered = new Pieces();
  const duplicates = new DuplicateFinder(sources);
  let from = 0;
  while (from < runs.count) {
    const stream = runs.stream[from] as number;
    let to = from + 1;
    while (to < runs.count && runs.stream[to] === stream) to++;
    const ties = collectStrands(sources, from, to, strands);
    const inOrder = follow(sources, strands);
    const pieces = inOrder === "merge" ? mergeStrands(sources, strands, ordered) : strands;
    // Equal rows have equal times, so without ties there is nothing to look for.
    if (ties || inOrder !== "apart") duplicates.emit(stream, pieces, sink);
    else pieces.emit(stream, sink);
    from = to;
  }
}

/** Splits runs into strands; true when some neighbours within a strand have the same time. */
function collectStrands(
  { runs, blocks }: SealSources,
  from: number,
  to: number,
  strands: Pieces,
): boolean {
  strands.clear();
  let ties = false;
  for (let r = from; r < to; r++) {
    const block = runs.block[r] as number;
    const { timestamps } = blocks[block] as SealSources["blocks"][number];
    const end = runs.to[r] as number;
    let start = runs.from[r] as number;
    if (start === end) continue;
    let before = timestamps[start] as number;
    for (let row = start + 1; row < end; row++) {
      const time = timestamps[row] as number;
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
function follow({ blocks }: SealSources, strands: Pieces): "apart" | "touch" | "merge" {
  let before = Number.NEGATIVE_INFINITY;
  let touch = false;
  for (let i = 0; i < strands.count; i++) {
    const { timestamps } = blocks[strands.block[i] as number] as SealSources["blocks"][number];
    const first = timestamps[strands.from[i] as number] as number;
    if (first < before) return "merge";
    if (first === before) touch = true;
    before = timestamps[(strands.to[i] as number) - 1] as number;
  }
  return touch ? "touch" : "apart";
}
