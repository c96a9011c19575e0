import { type RowSelection, selectContains } from "@skald/kernels";
import { type BlockFacts, type FieldFacts, fieldFamily, internal, type RowSet } from "@skald/model";
import { type SectionReader, type SectionWriter, section } from "./index-sections.js";
import type { SortedBlock } from "./layout.js";

/** What the index of a segment knows about the rows of its blocks without reading a page. */
export interface SegmentFacts {
  readonly texts: readonly Uint8Array[];
  /** Rows of the segment whose lines contain a text, by its place. */
  rowCount(text: number): number;
  ofBlock(block: number): BlockFacts;
}

/** The counts that facts are about. */
interface SegmentShape {
  readonly blockCount: number;
  readonly streamCount: number;
  rowsOf(block: number): number;
}

/** Opens the row sets and fields of a segment; undefined when it has none. They are decoded, and checked, on first use. */
export function readFacts(sections: SectionReader, shape: SegmentShape): SegmentFacts | undefined {
  const hasSets = sections.has(section.setTexts);
  const hasFields = sections.has(section.fieldNames);
  if (!hasSets && !hasFields) return undefined;
  const texts = hasSets ? sections.texts(section.setTexts).map((text) => Buffer.from(text)) : [];
  const kinds = hasSets ? sections.codes(section.setKinds, 0, setKinds.lacking + 1) : [];
  if (kinds.length !== texts.length) throw internal("index has row sets of other texts");
  const places = new BlockPlaces(shape);
  const sets: (DecodedSet | undefined)[] = [];
  const setOf = (text: number): DecodedSet => {
    sets[text] ??= decodeSet(sections.numbers(section.setRows, text), kinds[text]!, places);
    return sets[text];
  };
  const fieldsOf = hasFields ? readFields(sections, shape, places) : undefined;
  return {
    texts,
    rowCount: (text) => setOf(text).counts.reduce((sum, count) => sum + count, 0),
    ofBlock: (block) => ({
      texts,
      rowsWith: (text) => rowSetOf(setOf(text), block, places),
      fields: fieldsOf?.(block),
    }),
  };
}

function readFields(
  sections: SectionReader,
  { blockCount, streamCount }: SegmentShape,
  rowPlaces: BlockPlaces,
): (block: number) => FieldFacts | undefined {
  const names = sections.texts(section.fieldNames);
  const families = sections.codes(section.fieldFamilies, 0, fieldFamily.logfmt + 1);
  const covered = sections.codes(section.fieldBlocks, 0, 2);
  if (families.length !== streamCount || covered.length !== blockCount)
    throw internal("index has fields of other streams or blocks");
  const rows = sections.numbers(section.fieldIrregular);
  const irregular = decodeSet(rows, setKinds.containing, rowPlaces);
  const keyed = sections.has(section.fieldKeys) ? sections.numbers(section.fieldKeys) : undefined;
  if (keyed !== undefined && keyed.length !== blockCount)
    throw internal("index has keys of other blocks");
  const places = new Map(names.map((name, field) => [name, field]));
  const familyOf = (stream: number) => families[stream]!;
  return (block) => {
    if (covered[block] === 0) return undefined;
    const bits = keyed?.[block] ?? 0;
    const isKeyed = (name: string) => ((bits >>> (places.get(name) ?? 31)) & 1) === 1;
    return { names, isKeyed, familyOf, irregular: rowSetOf(irregular, block, rowPlaces) };
  };
}

function rowSetOf({ words, counts }: DecodedSet, block: number, places: BlockPlaces): RowSet {
  const { firstWord } = places;
  const own = words.subarray(firstWord[block], firstWord[block + 1]);
  return { count: counts[block]!, words: own };
}

/** Which rows a section lists: those that contain the text, or those that lack it, whichever are fewer. */
const setKinds = { containing: 0, lacking: 1 } as const;

/** The rows of a text in all blocks, one bit each; every block begins with a word of its own. */
interface DecodedSet {
  readonly words: Uint32Array;
  /** Rows of each block. */
  readonly counts: Uint32Array;
}

/** Where the rows of each block begin, counted through the segment, and its words in a decoded set. */
class BlockPlaces {
  readonly firstRow: Uint32Array;
  readonly firstWord: Uint32Array;

  constructor({ blockCount, rowsOf }: SegmentShape) {
    this.firstRow = new Uint32Array(blockCount + 1);
    this.firstWord = new Uint32Array(blockCount + 1);
    for (let block = 0; block < blockCount; block++) {
      const rows = rowsOf(block);
      this.firstRow[block + 1] = this.firstRow[block]! + rows;
      this.firstWord[block + 1] = this.firstWord[block]! + wordsOf(rows);
    }
  }
}

/** Throws `internal` when the rows do not ascend, or the segment does not have them. */
function decodeSet(rows: Float64Array, kind: number, places: BlockPlaces): DecodedSet {
  const { firstRow, firstWord } = places;
  const blockCount = firstRow.length - 1;
  const words = new Uint32Array(firstWord[blockCount]!);
  const counts = new Uint32Array(blockCount);
  const total = firstRow[blockCount]!;
  let block = 0;
  let before = -1;
  for (const row of rows) {
    if (!(row > before && row < total)) throw internal(`index has a row set with row ${row}`);
    before = row;
    while (row >= firstRow[block + 1]!) block++;
    const own = row - firstRow[block]!;
    words[firstWord[block]! + (own >> 5)]! |= 1 << (own & 31);
    counts[block]!++;
  }
  if (kind === setKinds.lacking) complement({ words, counts }, places);
  return { words, counts };
}

function complement({ words, counts }: DecodedSet, { firstRow, firstWord }: BlockPlaces): void {
  for (let block = 0; block < counts.length; block++) {
    const rows = firstRow[block + 1]! - firstRow[block]!;
    counts[block] = rows - counts[block]!;
    const end = firstWord[block + 1]!;
    for (let at = firstWord[block]!; at < end; at++) words[at] = ~words[at]!;
    if (rows % 32 > 0) words[end - 1]! &= 2 ** (rows % 32) - 1;
  }
}

function wordsOf(rows: number): number {
  return (rows + 31) >>> 5;
}

/** Most texts of one segment. */
export const maxSetTexts = 16;
/** Row sets take at most this share of the bytes of the lines; the texts that are asked for least go first. */
const maxSetShare = 1 / 500;
/** What the row sets of a small segment may take whatever its lines take. */
const minSetBytes = 1024;
/** A writer holds 2 bytes a row for 16 texts; it gives up beyond this many rows, which is 64 MiB. */
const maxSetRows = 2 ** 25;

/** Finds the rows whose lines contain some texts while the blocks of a segment are written. */
export class RowSetWriter {
  readonly #texts: readonly Uint8Array[];
  /** By text, words of each block, which are empty when no row has the text. */
  readonly #sets: Uint32Array[][];
  readonly #blockRows: number[] = [];
  readonly #found: RowSelection = { rows: new Uint32Array(0), count: 0 };
  #all = new Uint32Array(0);
  #rows = 0;

  /** The texts come with the one that is asked for most first. */
  constructor(texts: readonly string[]) {
    const known = [...new Set(texts)].filter(
      (text) => text !== "" && Buffer.from(text).toString() === text,
    );
    this.#texts = known.slice(0, maxSetTexts).map((text) => Buffer.from(text));
    this.#sets = this.#texts.map(() => []);
  }

  add({ rowCount, lines }: SortedBlock): void {
    this.#rows += rowCount;
    if (this.#rows > maxSetRows) {
      for (const set of this.#sets) set.length = 0;
      return;
    }
    this.#blockRows.push(rowCount);
    this.#reserve(rowCount);
    this.#texts.forEach((text, i) => {
      const found = this.#found;
      found.rows.set(this.#all.subarray(0, rowCount));
      found.count = rowCount;
      selectContains(lines.bytes, lines.offsets, rowCount, text, found, plain);
      this.#sets[i]!.push(packRows(found, rowCount));
    });
  }

  /** Writes nothing when there are no texts, or too many rows. */
  finish(sections: SectionWriter, lineBytes: number): void {
    if (this.#rows > maxSetRows) return;
    let leftBytes = Math.max(minSetBytes, lineBytes * maxSetShare);
    const kept: { readonly text: Uint8Array; readonly kind: number }[] = [];
    this.#texts.forEach((text, i) => {
      const set = this.#listRows(this.#sets[i]!);
      const bytes = bytesOf(set.rows.length, this.#rows);
      if (bytes > leftBytes) return;
      leftBytes -= bytes;
      sections.numbers(section.setRows, set.rows, kept.length);
      kept.push({ text, kind: set.kind });
    });
    if (kept.length === 0) return;
    const texts = kept.map(({ text }) => Buffer.from(text).toString());
    sections.texts(section.setTexts, texts);
    const kinds = kept.map(({ kind }) => kind);
    sections.codes(section.setKinds, kinds);
  }

  #reserve(rowCount: number): void {
    if (this.#all.length >= rowCount) return;
    this.#all = Uint32Array.from({ length: rowCount * 2 }, (_, row) => row);
    this.#found.rows = new Uint32Array(rowCount * 2);
  }

  /** The rows of a text, or the others where those are fewer, counted through the segment. */
  #listRows(set: readonly Uint32Array[]): { readonly rows: Uint32Array; readonly kind: number } {
    let count = 0;
    for (const words of set) count += countBits(words);
    const isLacking = count > this.#rows / 2;
    const rows = new Uint32Array(isLacking ? this.#rows - count : count);
    const wanted = isLacking ? 0 : 1;
    let at = 0;
    let first = 0;
    for (const [block, words] of set.entries()) {
      const rowCount = this.#blockRows[block]!;
      for (let row = 0; row < rowCount; row++) {
        // The words of a block without the text are left out.
        const bit = ((words[row >> 5] ?? 0) >>> (row & 31)) & 1;
        if (bit === wanted) rows[at++] = first + row;
      }
      first += rowCount;
    }
    return { rows, kind: isLacking ? setKinds.lacking : setKinds.containing };
  }
}

const plain = { ignoreCase: false, negate: false };
const noWords = new Uint32Array(0);

function packRows({ rows, count }: RowSelection, rowCount: number): Uint32Array {
  if (count === 0) return noWords;
  const words = new Uint32Array(wordsOf(rowCount));
  for (let i = 0; i < count; i++) words[rows[i]! >> 5]! |= 1 << (rows[i]! & 31);
  return words;
}

function countBits(words: Uint32Array): number {
  let count = 0;
  for (const word of words) for (let left = word; left !== 0; left &= left - 1) count++;
  return count;
}

/** About what the places of some of the rows take: the bits of the mean gap between them and two more for each. */
function bytesOf(listed: number, rows: number): number {
  return listed === 0 ? 0 : (listed * (Math.log2(rows / listed) + 2)) / 8;
}
