import { internal } from "@skald/model";
import { type SectionReader, type SectionWriter, section } from "../index-sections.js";

/** A segment of more rows has no marks: it is soon compared for what it holds, and they would cost more than they save. */
const maxMarkedRows = 1024;

/**
 * Collects the marks of a small segment: of each row, in their order, the low half of its hash. Where two rows differ in theirs
 * they are not the same row, so most small segments that share times are told apart without a look at a page.
 */
export class MarkWriter {
  readonly #marks = new Uint32Array(maxMarkedRows);
  #count = 0;

  /** Whether so many rows more can be marked; false once they could not. */
  wants(rowCount: number): boolean {
    if (this.#count + rowCount > maxMarkedRows) this.#count = Number.POSITIVE_INFINITY;
    return this.#count <= maxMarkedRows;
  }

  /** Adds the low halves of the hashes of the rows of a block that is wanted. */
  add(low: Uint32Array): void {
    this.#marks.set(low, this.#count);
    this.#count += low.length;
  }

  /** Writes nothing when there are too many rows. */
  finish(sections: SectionWriter): void {
    if (this.wants(0)) sections.words(section.marks, this.#marks.subarray(0, this.#count));
  }
}

/** The marks of all rows of a segment; undefined when it has none. Throws `internal` when they are not as many as its rows. */
export function readMarks(sections: SectionReader, rowCount: number): Uint32Array | undefined {
  if (!sections.has(section.marks)) return undefined;
  const marks = sections.words(section.marks);
  if (marks.length !== rowCount) throw internal("index has marks that do not fit its rows");
  return marks;
}
