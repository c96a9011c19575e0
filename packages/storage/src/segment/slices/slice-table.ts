import { internal, type RunTable, sliceOf, type TimeSlices } from "@skald/model";
import { type SectionReader, section } from "../index-sections.js";

/** Counts of the runs of a segment by slices of time. */
export interface SliceTable {
  /** undefined for runs that were not counted. */
  of(block: number, run: number): TimeSlices | undefined;
}

/** Decodes the counts; undefined when there are none. Throws `internal` when they do not fit the runs. */
export function readSlices(
  sections: SectionReader,
  blockCount: number,
  runsOf: (block: number) => RunTable,
): SliceTable | undefined {
  if (!sections.has(section.sliceSteps)) return undefined;
  const steps = sections.numbers(section.sliceSteps);
  const stepOf = sections.codes(section.sliceBlocks, 0, steps.length + 1);
  if (stepOf.length !== blockCount) throw internal("index has slices of other blocks");
  // Of each run of the counted blocks, where its slices begin.
  const firstRun = new Uint32Array(blockCount + 1);
  const starts: number[] = [];
  let end = 0;
  for (let block = 0; block < blockCount; block++) {
    firstRun[block] = starts.length;
    if (stepOf[block] === 0) continue;
    const stepNs = steps[stepOf[block]! - 1]!;
    const { count, minTime, maxTime } = runsOf(block);
    for (let run = 0; run < count; run++) {
      starts.push(end);
      end += sliceOf(maxTime[run]!, stepNs) - sliceOf(minTime[run]!, stepNs) + 1;
    }
  }
  starts.push(end);
  const column = (id: number) => {
    const counts = sections.numbers(id);
    if (counts.length !== end) throw internal("index has slices of other runs");
    return Uint32Array.from(counts);
  };
  const rows = column(section.sliceRows);
  const lineBytes = column(section.sliceBytes);
  return {
    of: (block, run) => {
      if (stepOf[block] === 0) return undefined;
      const stepNs = steps[stepOf[block]! - 1]!;
      const at = firstRun[block]! + run;
      const first = sliceOf(runsOf(block).minTime[run]!, stepNs);
      return { stepNs, first, rows, lineBytes, from: starts[at]!, to: starts[at + 1]! };
    },
  };
}
