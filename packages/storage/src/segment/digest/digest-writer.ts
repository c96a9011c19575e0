import { type SectionWriter, section } from "../index-sections.js";
import type { SortedBlock } from "../layout.js";
import { digestKind, minuteNs } from "./digest-table.js";
import type { RowHashes } from "./row-hash.js";

/** A stream with fewer rows a minute has none: a digest takes ten bytes, and such rows are soon compared. */
const minRowsPerDigest = 16;

/** Collects the agreement digests of a segment while its blocks are written: of each stream and minute, rows and hashes. */
export class DigestWriter {
  /** Digests of each stream so far. */
  readonly #counts: number[] = [];
  readonly #minutes: number[] = [];
  readonly #rows: number[] = [];
  readonly #sums: number[] = [];
  #stream = -1;
  /** The first digest, and the rows, of the stream at hand. */
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
        // One row at least: what is no time must not hold the writer up.
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
    sections.numbers(section.digests, Float64Array.of(digestKind));
    sections.numbers(section.digestCounts, Float64Array.from(this.#counts));
    sections.numbers(section.digestMinutes, Float64Array.from(this.#minutes));
    sections.numbers(section.digestRows, Float64Array.from(this.#rows));
    sections.words(section.digestSums, Uint32Array.from(this.#sums));
  }

  /** Ends the stream at hand and begins another. */
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
