import { lowerBound } from "@skald/model";
import type { DroppedRows, MergeInput } from "./input-cursor.js";

/** The streams of all inputs, numbered through in the order of their texts. */
export interface MergedStreams {
  /** Texts of those that keep rows, ascending. */
  readonly texts: readonly string[];
  /** Place in `texts` of each stream; -1 for one that keeps no row. */
  readonly kept: Int32Array;
  /** By input, the numbers of its streams, ascending. */
  readonly ofInput: readonly Uint32Array[];
}

export function numberStreams(inputs: readonly MergeInput[]): MergedStreams {
  const textsOf = inputs.map(({ segment }) =>
    Array.from({ length: segment.streamCount }, (_, stream) => segment.text(stream)),
  );
  const all = [...new Set(textsOf.flat())].sort();
  const numbers = new Map(all.map((text, number) => [text, number]));
  const ofInput = textsOf.map((texts) => Uint32Array.from(texts, (text) => numbers.get(text)!));
  const hasRows = new Uint8Array(all.length);
  inputs.forEach(({ segment, dropped }, i) => {
    for (let block = 0; block < segment.blockCount; block++) {
      const { count, stream, rowStart } = segment.runs(block);
      const rows = rowsDropped(dropped, block);
      for (let run = 0; run < count; run++) {
        const from = rowStart[run]!;
        const to = rowStart[run + 1]!;
        const gone = rows === undefined ? 0 : lowerBound(rows, to) - lowerBound(rows, from);
        if (gone < to - from) hasRows[ofInput[i]![stream[run]!]!] = 1;
      }
    }
  });
  let next = 0;
  const kept = Int32Array.from(hasRows, (has) => (has === 1 ? next++ : -1));
  return { texts: all.filter((_, number) => hasRows[number] === 1), kept, ofInput };
}

function rowsDropped(dropped: DroppedRows | undefined, block: number): Uint32Array | undefined {
  if (dropped === undefined) return undefined;
  const at = lowerBound(dropped.blocks, block);
  return dropped.blocks[at] === block ? dropped.rows[at] : undefined;
}
