import { internal, type LevelCounts } from "@skald/model";
import { type SectionReader, section } from "../index-sections.js";

/** A segment with more levels than this has no counts of them: they are a field like any other. */
export const maxLevels = 16;

/** Counts of the runs of a segment by level. */
export interface LevelTable {
  /** undefined for runs that were not counted. */
  of(block: number, run: number): LevelCounts | undefined;
}

/** Decodes the counts; undefined when there are none. Throws `internal` when they do not fit the runs. */
export function readLevels(
  sections: SectionReader,
  blockCount: number,
  runCount: (block: number) => number,
): LevelTable | undefined {
  if (!sections.has(section.levelNames)) return undefined;
  const levels = sections.texts(section.levelNames);
  const counted = sections.codes(section.levelBlocks, 0, 2);
  if (counted.length !== blockCount) throw internal("index has counts of levels of other blocks");
  const first = new Uint32Array(blockCount + 1);
  for (let block = 0; block < blockCount; block++) {
    first[block + 1] = first[block]! + (counted[block] === 1 ? runCount(block) : 0);
  }
  const columns = (id: number) =>
    levels.map((_, level) => {
      const counts = sections.numbers(id, level);
      if (counts.length !== first[blockCount]) throw internal("index has levels of other runs");
      return counts;
    });
  const rows = columns(section.levelRows);
  const bytes = columns(section.levelBytes);
  return {
    of: (block, run) => {
      if (counted[block] !== 1) return undefined;
      const at = first[block]! + run;
      return { levels, rows: rows.map((own) => own[at]!), lineBytes: bytes.map((own) => own[at]!) };
    },
  };
}
