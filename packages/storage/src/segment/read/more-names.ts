import { type SectionReader, section } from "../index-sections.js";

/** The names without a column of their own. */
export interface MoreNames {
  readonly names: readonly string[];
  /** The number of a name; undefined when it is none of them. */
  numberOf(name: string): number | undefined;
  /** Numbers of the names that a block has, ascending. */
  ofBlock(block: number): Float64Array;
  /** The dictionary of the row group of a block: the number of the name that each code stands for. */
  dictionary(block: number): readonly number[];
  /** Levels of the key page of a block. */
  levels(block: number): number;
}

/** Reads them from the sections of an index; `groupBlocks` are the numbers of blocks of each row group. */
export function readMoreNames(sections: SectionReader, groupBlocks: Float64Array): MoreNames {
  const names = sections.texts(section.moreNames);
  const counts = sections.numbers(section.moreCounts);
  const ids = sections.numbers(section.moreIds);
  const levels = sections.numbers(section.moreLevels);
  const starts = new Uint32Array(counts.length + 1);
  for (let b = 0; b < counts.length; b++) {
    starts[b + 1] = starts[b]! + counts[b]!;
  }
  const ofBlock = (block: number) => ids.subarray(starts[block], starts[block + 1]);
  let numbers: ReadonlyMap<string, number> | undefined;
  const dictionaries = new Map<number, readonly number[]>();
  return {
    names,
    numberOf(name) {
      numbers ??= new Map(names.map((each, number) => [each, number]));
      return numbers.get(name);
    },
    ofBlock,
    dictionary(block) {
      let from = 0;
      let group = 0;
      while (block >= from + groupBlocks[group]!) from += groupBlocks[group++]!;
      const known = dictionaries.get(group);
      if (known !== undefined) return known;
      // Codes were given in order of first use, and each block uses its names in ascending order.
      const seen = new Set<number>();
      for (let b = from; b < from + groupBlocks[group]!; b++) {
        for (const id of ofBlock(b)) seen.add(id);
      }
      const dictionary = [...seen];
      dictionaries.set(group, dictionary);
      return dictionary;
    },
    levels: (block) => levels[block]!,
  };
}
