import { internal } from "@skald/model";
import { runningSum } from "../bytes.js";
import { type SectionReader, type SectionWriter, section } from "./index-sections.js";
import type { SortedBlock } from "./layout.js";
import type { RowHashes } from "./row-hash.js";
import type { StreamDigests } from "./segment.js";

/** A stream with fewer rows a minute gets no digests: a digest takes ten bytes, and so few rows are quickly compared. */
const minRowsPerDigest = 16;

/**
 * Collects the agreement digests of a segment while its blocks are written: the rows of each stream and minute, and the
 * sum of their hashes.
 */
export class DigestWriter {
  /** Digests of each stream so far. */
  readonly #counts: number[] = [];
  readonly #minutes: number[] = [];
  readonly #rows: number[] = [];
  readonly #sums: number[] = [];
  #stream = -1;
  /** The first digest, and the rows, of the current stream. */
  #first = 0;
  #streamRows = 0;

  /** Adds a block with the hashes of its rows; blocks come in the order of their streams, and within a stream of their times. */
  add({ runs, timestamps }: Pick<SortedBlock, "runs" | "timestamps">, hashes: RowHashes): void {
    for (let run = 0; run < runs.count; run++) {
      const stream = runs.stream[run]!;
      if (stream !== this.#stream) this.#open(stream);
      const to = runs.rowStart[run + 1]!;
      this.#streamRows += to - runs.rowStart[run]!;
      for (let from = runs.rowStart[run]!; from < to; ) {
        const minute = Math.floor(timestamps[from]! / minuteNs);
        const end = (minute + 1) * minuteNs;
        let low = 0;
        let high = 0;
        let row = from;
        // At least one row, so that a time that is not a number does not stop the loop.
        do {
          low = (low + hashes.low[row]!) | 0;
          high = (high + hashes.high[row]!) | 0;
          row++;
        } while (row < to && timestamps[row]! < end);
        this.#add(minute, row - from, low, high);
        from = row;
      }
    }
  }

  /** Writes nothing when no stream has a digest. */
  finish(sections: SectionWriter, streamCount: number): void {
    this.#open(streamCount);
    if (this.#minutes.length === 0) return;
    sections.numbers(section.digests, [digestKind]);
    sections.numbers(section.digestCounts, this.#counts);
    sections.numbers(section.digestMinutes, this.#minutes);
    sections.numbers(section.digestRows, this.#rows);
    sections.words(section.digestSums, this.#sums);
  }

  /** Ends the current stream and begins another. */
  #open(stream: number): void {
    const digests = this.#minutes.length - this.#first;
    if (this.#streamRows < minRowsPerDigest * digests) {
      this.#minutes.length = this.#first;
      this.#rows.length = this.#first;
      this.#sums.length = 2 * this.#first;
    }
    if (this.#stream >= 0) this.#counts[this.#stream] = this.#minutes.length - this.#first;
    while (this.#counts.length < stream) this.#counts.push(0);
    this.#stream = stream;
    this.#first = this.#minutes.length;
    this.#streamRows = 0;
  }

  #add(minute: number, rows: number, low: number, high: number): void {
    let last = this.#minutes.length - 1;
    if (last < this.#first || this.#minutes[last] !== minute) {
      last = this.#minutes.push(minute) - 1;
      this.#rows.push(0);
      this.#sums.push(0, 0);
    }
    this.#rows[last]! += rows;
    this.#sums[2 * last] = (this.#sums[2 * last]! + low) | 0;
    this.#sums[2 * last + 1] = (this.#sums[2 * last + 1]! + high) | 0;
  }
}

/** The kind of digest that this version writes, and the only one that it reads; it ignores others. */
const digestKind = 1;

/** The time that one digest covers. */
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
  const starts = runningSum(counts);
  const count = starts[counts.length]!;
  const fits = counts.length === streams && minutes.length === count;
  if (!fits || rows.length !== count || sums.length !== 2 * count)
    throw internal("index has digests that do not fit its streams");
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

/** A segment of more rows gets no marks: they would cost more than they save. */
const maxMarkedRows = 1024;

/**
 * Collects the marks of a small segment: for each row, in order, the low half of its hash. Two rows with different marks
 * are different rows, so most small segments that share times are told apart without reading a page.
 */
export class MarkWriter {
  readonly #marks = new Uint32Array(maxMarkedRows);
  #count = 0;

  /** Whether `rowCount` more rows can be marked; false for ever once they could not. */
  wants(rowCount: number): boolean {
    if (this.#count + rowCount > maxMarkedRows) this.#count = Number.POSITIVE_INFINITY;
    return this.#count <= maxMarkedRows;
  }

  /** Adds the low halves of the row hashes of a block that `wants` accepted. */
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
