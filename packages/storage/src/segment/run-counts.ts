import {
  type BytesColumn,
  detectedLevelName,
  internal,
  type LevelCounts,
  type RunTable,
  sliceOf,
  sliceStepsNs,
  type TimeSlices,
} from "@skald/model";
import { type SectionReader, type SectionWriter, section } from "./index-sections.js";
import type { SortedBlock } from "./layout.js";

/** A segment with more levels than this has no counts of them. */
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

/** The bytes of names and values of structured metadata of each run; undefined where there are none, or nobody counted them. */
export function readMetadataBytes(
  sections: SectionReader,
  runCount: number,
): Float64Array | undefined {
  if (!sections.has(section.runMetadataBytes)) return undefined;
  const bytes = sections.numbers(section.runMetadataBytes);
  if (bytes.length !== runCount) throw internal("index has metadata of other runs");
  return bytes;
}

/** Counts the bytes of names and values of structured metadata of each run while the blocks of a segment are written. */
export class MetadataBytesWriter {
  readonly #runs: number[] = [];
  readonly #moreNames: readonly number[];
  #hasAny = false;

  /** `more`: the names without a column, by their numbers. */
  constructor(more: readonly string[]) {
    this.#moreNames = more.map((name) => Buffer.byteLength(name));
  }

  add({ runs, metadata, more }: SortedBlock): void {
    const first = this.#runs.length;
    for (let run = 0; run < runs.count; run++) this.#runs.push(0);
    for (const [name, { offsets }] of metadata) {
      const nameBytes = Buffer.byteLength(name);
      for (let run = 0; run < runs.count; run++) {
        const [from, to] = [runs.rowStart[run]!, runs.rowStart[run + 1]!];
        let values = 0;
        for (let row = from; row < to; row++) if (offsets[row + 1]! > offsets[row]!) values++;
        this.#runs[first + run]! += values * nameBytes + offsets[to]! - offsets[from]!;
      }
    }
    const { names, pairStart, valueLengths } = more;
    for (let run = 0; names.length > 0 && run < runs.count; run++) {
      const end = pairStart[runs.rowStart[run + 1]!]!;
      for (let pair = pairStart[runs.rowStart[run]!]!; pair < end; pair++)
        this.#runs[first + run]! += this.#moreNames[names[pair]!]! + valueLengths[pair]!;
    }
    this.#hasAny ||= metadata.size > 0 || names.length > 0;
  }

  /** Writes nothing when no row has metadata. */
  finish(sections: SectionWriter): void {
    if (this.#hasAny) sections.numbers(section.runMetadataBytes, this.#runs);
  }
}

/** Runs of fewer rows are read as quickly as their counts. */
const minRowsPerRun = 16;

/** Counts rows and bytes of lines of each run by `detected_level` while the blocks of a segment are written. */
export class LevelWriter {
  /** By level; rows without one have the empty text. */
  readonly #numbers = new Map<string, number>([["", 0]]);
  /** Levels met last, by their length and ends. */
  readonly #known = new Map<number, KnownLevel>();
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
    const count = this.#rows.length;
    for (let run = 0; run < runs.count; run++) {
      const rows = new Float64Array(count);
      const bytes = new Float64Array(count);
      for (let row = runs.rowStart[run]!; row < runs.rowStart[run + 1]!; row++) {
        const level = levels[row]!;
        rows[level]!++;
        bytes[level]! += lines.offsets[row + 1]! - lines.offsets[row]!;
      }
      for (let level = 0; level < count; level++) {
        this.#rows[level]!.push(rows[level]!);
        this.#bytes[level]!.push(bytes[level]!);
      }
      this.#runs++;
    }
  }

  /** Writes nothing when no row has a level, or there are too many of them. */
  finish(sections: SectionWriter): void {
    if (this.#runs === 0 || this.#numbers.size > maxLevels) return;
    sections.texts(section.levelNames, [...this.#numbers.keys()]);
    sections.codes(section.levelBlocks, this.#counted);
    for (const [level, counts] of this.#rows.entries())
      sections.numbers(section.levelRows, counts, level);
    for (const [level, counts] of this.#bytes.entries())
      sections.numbers(section.levelBytes, counts, level);
  }

  /** The number of the level of each row; any number once there are too many levels. */
  #levelsOf({ bytes, offsets }: BytesColumn, rowCount: number): Uint8Array {
    const levels = new Uint8Array(rowCount);
    const texts = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    let known: KnownLevel | undefined;
    let knownKey = 0;
    for (let row = 0; row < rowCount; row++) {
      const from = offsets[row]!;
      const to = offsets[row + 1]!;
      if (from === to) continue;
      // Length, first and last byte distinguish most levels; a text is made only for unknown ones.
      const key = ((to - from) << 16) | (bytes[from]! << 8) | bytes[to - 1]!;
      if (key !== knownKey) known = this.#known.get(key);
      knownKey = key;
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

interface KnownLevel {
  readonly bytes: Uint8Array;
  readonly number: number;
}

/** Whether the bytes from a place on are those of a text; a level is too short for a call to compare it. */
function isAt(bytes: Uint8Array, from: number, text: Uint8Array): boolean {
  for (let i = 0; i < text.length; i++) if (bytes[from + i] !== text[i]) return false;
  return true;
}

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
  // Where the slices of each run of the counted blocks begin.
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

/** Slices of fewer rows, on average, are read as quickly as their counts. */
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
      // When each run lies in one slice, the header says as much.
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
    sections.numbers(section.sliceSteps, sliceStepsNs);
    sections.codes(section.sliceBlocks, this.#steps);
    sections.numbers(section.sliceRows, this.#rows);
    sections.numbers(section.sliceBytes, this.#bytes);
  }
}

function countSlices({ count, minTime, maxTime }: RunTable, stepNs: number): number {
  let slices = 0;
  for (let run = 0; run < count; run++) {
    slices += sliceOf(maxTime[run]!, stepNs) - sliceOf(minTime[run]!, stepNs) + 1;
  }
  return slices;
}
