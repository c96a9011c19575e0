import { type BytesColumn, detectedLevelName } from "@skald/model";
import { type SectionWriter, section } from "../index-sections.js";
import type { SortedBlock } from "../layout.js";
import { maxLevels } from "./level-table.js";

/** Runs of fewer rows are as quickly read as their counts. */
const minRowsPerRun = 16;

/** Counts rows and bytes of lines of each run by `detected_level` while the blocks of a segment are written. */
export class LevelWriter {
  /** By level; rows without one have the empty text. */
  readonly #numbers = new Map<string, number>([["", 0]]);
  /** Levels met last, by their length and ends. */
  readonly #known = new Map<number, { readonly bytes: Uint8Array; readonly number: number }>();
  /** Per block, 1 when its runs are counted. */
  readonly #counted: number[] = [];
  /** By level, of each run of the counted blocks. */
  readonly #rows: number[][] = [[]];
  readonly #bytes: number[][] = [[]];
  #runs = 0;

  add({ runs, rowCount, metadata, lines }: SortedBlock): void {
    const column = metadata.get(detectedLevelName);
    const isCounted = column !== undefined && rowCount >= minRowsPerRun * runs.count;
    this.#counted.push(isCounted ? 1 : 0);
    if (!isCounted) return;
    const levels = this.#levelsOf(column, rowCount);
    for (let run = 0; run < runs.count; run++) {
      for (const counts of [...this.#rows, ...this.#bytes]) counts.push(0);
      for (let row = runs.rowStart[run]!; row < runs.rowStart[run + 1]!; row++) {
        const level = levels[row]!;
        this.#rows[level]![this.#runs]!++;
        this.#bytes[level]![this.#runs]! += lines.offsets[row + 1]! - lines.offsets[row]!;
      }
      this.#runs++;
    }
  }

  /** Writes nothing when no row has a level, or there are too many of them. */
  finish(sections: SectionWriter): void {
    if (this.#runs === 0 || this.#numbers.size > maxLevels) return;
    sections.texts(section.levelNames, [...this.#numbers.keys()]);
    sections.codes(section.levelBlocks, Uint32Array.from(this.#counted));
    this.#rows.forEach((counts, level) => {
      sections.numbers(section.levelRows, Float64Array.from(counts), level);
    });
    this.#bytes.forEach((counts, level) => {
      sections.numbers(section.levelBytes, Float64Array.from(counts), level);
    });
  }

  /** The number of the level of each row; beyond the most that there may be, of any. */
  #levelsOf({ bytes, offsets }: BytesColumn, rowCount: number): Uint8Array {
    const levels = new Uint8Array(rowCount);
    const texts = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    for (let row = 0; row < rowCount; row++) {
      const from = offsets[row]!;
      const to = offsets[row + 1]!;
      if (from === to) continue;
      // Most levels are told apart by length and ends; a text is only made of those that are not known.
      const key = ((to - from) << 16) | (bytes[from]! << 8) | bytes[to - 1]!;
      let known = this.#known.get(key);
      if (known === undefined || !isAt(bytes, from, known.bytes)) {
        const number = this.#numberOf(texts.toString("utf8", from, to));
        known = { bytes: Uint8Array.from(texts.subarray(from, to)), number };
        this.#known.set(key, known);
      }
      levels[row] = known.number;
    }
    return levels;
  }

  #numberOf(level: string): number {
    const known = this.#numbers.get(level);
    if (known !== undefined) return known;
    if (this.#numbers.size > maxLevels) return 0;
    const number = this.#numbers.size;
    this.#numbers.set(level, number);
    this.#rows.push(new Array<number>(this.#runs).fill(0));
    this.#bytes.push(new Array<number>(this.#runs).fill(0));
    return number;
  }
}

/** Whether the bytes from a place on are those of a text; a level is too short for a call to compare it. */
function isAt(bytes: Uint8Array, from: number, text: Uint8Array): boolean {
  for (let i = 0; i < text.length; i++) if (bytes[from + i] !== text[i]) return false;
  return true;
}
