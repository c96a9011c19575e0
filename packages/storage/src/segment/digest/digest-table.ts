import { internal } from "@skald/model";
import { type SectionReader, section } from "../index-sections.js";
import type { StreamDigests } from "../segment.js";

/** Kind of digest that this version writes, and the only one that it reads; others are as if there were none. */
export const digestKind = 1;

/** What one digest covers. */
export const minuteNs = 60e9;

/** The digests of a segment, by stream. */
export interface DigestTable {
  /** undefined for a stream that has none although it has rows. */
  of(stream: number): StreamDigests | undefined;
}

/** Decodes the digests; undefined when there are none. Throws `internal` when they contradict each other. */
export function readDigests(sections: SectionReader, streams: number): DigestTable | undefined {
  if (!sections.has(section.digests)) return undefined;
  if (sections.numbers(section.digests)[0] !== digestKind) return undefined;
  const counts = sections.numbers(section.digestCounts);
  const minutes = sections.numbers(section.digestMinutes);
  const rows = sections.numbers(section.digestRows);
  const sums = sections.words(section.digestSums);
  const starts = new Uint32Array(counts.length + 1);
  for (let stream = 0; stream < counts.length; stream++) {
    starts[stream + 1] = starts[stream]! + counts[stream]!;
  }
  const count = starts[counts.length]!;
  if (counts.length !== streams || minutes.length !== count) throw disagree();
  if (rows.length !== count || sums.length !== 2 * count) throw disagree();
  return {
    of: (stream) => {
      const from = starts[stream]!;
      const to = starts[stream + 1]!;
      if (from === to) return undefined;
      return {
        minutes: minutes.subarray(from, to),
        rows: rows.subarray(from, to),
        sums: sums.subarray(2 * from, 2 * to),
      };
    },
  };
}

function disagree(): Error {
  return internal("index has digests that do not fit its streams");
}
