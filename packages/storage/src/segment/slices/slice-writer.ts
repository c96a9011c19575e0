import { type RunTable, sliceOf, sliceStepsNs } from "@skald/model";
import { type SectionWriter, section } from "../index-sections.js";
import type { SortedBlock } from "../layout.js";

/** Slices of fewer rows, on average, are as quickly read as their counts. */
const minRowsPerSlice = 8;

/** Counts rows and bytes of lines of each run by slices of time while the blocks of a segment are written. */
export class SliceWriter {
  /** Per block, 0 when its runs are not counted, else the number of the step plus one. */
  readonly #steps: number[] = [];
  readonly #rows: number[] = [];
  readonly #bytes: number[] = [];

  add({ runs, rowCount, timestamps, lines }: SortedBlock): void {
    const step = sliceStepsNs.findIndex((stepNs) => {
      const slices = countSlices(runs, stepNs);
      // Where each run lies in one, the header says as much.
      return slices > runs.count && rowCount >= minRowsPerSlice * slices;
    });
    this.#steps.push(step + 1);
    if (step < 0) return;
    const stepNs = sliceStepsNs[step]!;
    const { offsets } = lines;
    for (let run = 0; run < runs.count; run++) {
      const to = runs.rowStart[run + 1]!;
      let row = runs.rowStart[run]!;
      const last = sliceOf(runs.maxTime[run]!, stepNs);
      for (let slice = sliceOf(runs.minTime[run]!, stepNs); slice <= last; slice++) {
        const from = row;
        const end = (slice + 1) * stepNs;
        while (row < to && timestamps[row]! <= end) row++;
        this.#rows.push(row - from);
        this.#bytes.push(offsets[row]! - offsets[from]!);
      }
    }
  }

  /** Writes nothing when no block was counted. */
  finish(sections: SectionWriter): void {
    if (this.#rows.length === 0) return;
    sections.numbers(section.sliceSteps, Float64Array.from(sliceStepsNs));
    sections.codes(section.sliceBlocks, Uint32Array.from(this.#steps));
    sections.numbers(section.sliceRows, Float64Array.from(this.#rows));
    sections.numbers(section.sliceBytes, Float64Array.from(this.#bytes));
  }
}

function countSlices({ count, minTime, maxTime }: RunTable, stepNs: number): number {
  let slices = 0;
  for (let run = 0; run < count; run++) {
    slices += sliceOf(maxTime[run]!, stepNs) - sliceOf(minTime[run]!, stepNs) + 1;
  }
  return slices;
}
