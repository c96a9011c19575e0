import type { RowSelection } from "@skald/kernels";
import type { BlockFacts } from "@skald/model";
import { containsText } from "../row/bytes.js";

/**
 * Answers line filters from what blocks know about texts: `|= "error"` from the rows of `error`, `|~ "error [0-9]+"` from
 * those of `error` as far as these rule rows out.
 */
export class FilterRows {
  readonly #filters: readonly SearchedFilter[];
  #texts: BlockFacts["texts"] | undefined;
  /** By filter, for the blocks whose texts are `#texts`. */
  #known: readonly (KnownTexts | undefined)[] = [];

  constructor(filters: readonly SearchedFilter[]) {
    this.#filters = filters;
  }

  /** Whether every filter is answered, so that no line is needed for any. */
  answersAll(facts: BlockFacts | undefined): boolean {
    if (facts === undefined) return this.#filters.length === 0;
    return this.#of(facts).every((known) => known?.isExact === true);
  }

  /** The rows that a filter finds in a block, as far as that is known; undefined when any row may match it. */
  matching(filter: number, facts: BlockFacts): FoundRows | undefined {
    const known = this.#of(facts)[filter];
    if (known === undefined) return undefined;
    const [only, ...others] = known.texts;
    let { words } = facts.rowsWith(only!);
    if (others.length > 0) words = words.slice();
    for (const text of others) uniteWords(words, facts.rowsWith(text).words);
    return { words, isExact: known.isExact };
  }

  /** The rows that may pass all filters, as words of bits; undefined when that may be any row. */
  passing(facts: BlockFacts): Uint32Array | undefined {
    let passing: Uint32Array | undefined;
    this.#filters.forEach(({ negated }, i) => {
      const found = this.matching(i, facts);
      if (found === undefined || (negated && !found.isExact)) return;
      const words = passing ?? new Uint32Array(found.words.length).fill(-1);
      const flip = negated ? -1 : 0;
      for (let at = 0; at < words.length; at++) words[at]! &= found.words[at]! ^ flip;
      passing = words;
    });
    return passing;
  }

  #of(facts: BlockFacts): readonly (KnownTexts | undefined)[] {
    if (facts.texts !== this.#texts) {
      this.#texts = facts.texts;
      this.#known = this.#filters.map((filter) => knownTexts(filter, facts.texts));
    }
    return this.#known;
  }
}

/** A line filter, and texts of which every line that matches it contains one. */
interface SearchedFilter {
  readonly negated: boolean;
  readonly needles?: {
    readonly values: readonly Uint8Array[];
    readonly ignoreCase: boolean;
    /** Containing one of them is enough. */
    readonly complete: boolean;
  };
}

/** Rows of a block as words of bits: all that match a filter, and others too unless they are exact. */
export interface FoundRows {
  readonly words: Uint32Array;
  readonly isExact: boolean;
}

/** Keeps the selected rows whose bit is set, or with `negate` the others. */
export function keepRows(words: Uint32Array, selection: RowSelection, negate: boolean): void {
  const { rows } = selection;
  const wanted = negate ? 0 : 1;
  let kept = 0;
  for (let i = 0; i < selection.count; i++) {
    const row = rows[i]!;
    if (((words[row >> 5]! >>> (row & 31)) & 1) === wanted) rows[kept++] = row;
  }
  selection.count = kept;
}

/** Places of texts of which every line that matches a filter contains one; with `isExact`, any line with one matches. */
interface KnownTexts {
  readonly texts: readonly number[];
  readonly isExact: boolean;
}

/** A line with a text has the texts within that text. */
function knownTexts(
  { needles }: SearchedFilter,
  texts: readonly Uint8Array[],
): KnownTexts | undefined {
  if (needles === undefined || needles.ignoreCase) return undefined;
  let isExact = needles.complete;
  const known = new Set<number>();
  for (const value of needles.values) {
    const within = longestWithin(value, texts);
    if (within === undefined) return undefined;
    isExact &&= texts[within]!.length === value.length;
    known.add(within);
  }
  return known.size === 0 ? undefined : { texts: [...known], isExact };
}

/** Place of the longest text that a value contains. */
function longestWithin(value: Uint8Array, texts: readonly Uint8Array[]): number | undefined {
  let longest: number | undefined;
  for (const [i, text] of texts.entries()) {
    const isLonger = longest === undefined || text.length > texts[longest]!.length;
    if (isLonger && containsText(value, 0, value.length, text, false)) longest = i;
  }
  return longest;
}

function uniteWords(words: Uint32Array, others: Uint32Array): void {
  for (let at = 0; at < words.length; at++) words[at]! |= others[at]!;
}
