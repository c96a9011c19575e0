import { internal, type RunTable } from "@skald/model";
import type { Column, ImageReader } from "../segment/index-image.js";
import type { SectionReader } from "../segment/index-sections.js";
import { RunColumns, runParts } from "../segment/read/block-runs.js";
import { readMarks } from "./row-marks.js";
import { daySection } from "./sections.js";
import { type Span, separateRuns, sharingRuns } from "./stream-spans.js";

/** Parts that the counts of a day take in its image. */
export const countParts = runParts + 1;

/** Where the streams of a day are: `first` by stream, of the places in `segments`; times of segments in ns since the start of the day. */
export interface DayPlaces {
  readonly first: Uint32Array;
  readonly segments: Uint32Array;
  readonly minTimes: Float64Array;
  readonly maxTimes: Float64Array;
}

/** What an index counts of the streams of each segment: a segment as a block, with a run for each of its streams. */
export class StreamCounts {
  readonly #runs: RunColumns;
  readonly #alone: Uint8Array;
  readonly #names: (readonly string[])[];
  readonly #sections: SectionReader;
  #marks: readonly (Uint32Array | undefined)[] | undefined;

  constructor(reader: ImageReader, part: number, sections: SectionReader) {
    this.#runs = new RunColumns(reader, part);
    this.#alone = reader.bytes(part + runParts);
    this.#names = readNames(sections, this.#runs.first.length - 1);
    this.#sections = sections;
  }

  /** Streams of segments that are counted. */
  get size(): number {
    return this.#runs.stream.length;
  }

  /** The streams of a segment, ascending; undefined when they are not counted. */
  of(place: number): RunTable | undefined {
    const { first } = this.#runs;
    return first[place] === first[place + 1] ? undefined : this.#runs.of(place);
  }

  /** True when no other segment of the index has a row of a run: none between its first and its last, or none with the mark of one. */
  isAlone(place: number, run: number): boolean {
    return this.#alone[this.#runs.first[place]! + run] === 1;
  }

  /** Whether no other segment of the index has a row of a segment; false when its streams are not counted. */
  isApart(place: number): boolean {
    const from = this.#runs.first[place]!;
    const to = this.#runs.first[place + 1]!;
    return from < to && this.#alone.subarray(from, to).every((flag) => flag === 1);
  }

  /** The marks of the rows of a segment, stream by stream; undefined when the index has none. */
  marks(place: number): Uint32Array | undefined {
    this.#marks ??= readMarks(this.#sections, rowCounts(this.#runs.first, this.#runs.rowStart));
    return this.#marks[place];
  }

  /** Names of the structured metadata of a segment that is counted. */
  metadataNames(place: number): readonly string[] {
    return this.#names[place]!;
  }
}

/** The columns of the counts, checked; those of a day that counts nothing when there are none. Throws `internal`. */
export function decodeCounts(sections: SectionReader, places: DayPlaces): Column[] {
  const counts = sections.has(daySection.countedStreams)
    ? sections.numbers(daySection.countedStreams)
    : new Float64Array(places.minTimes.length);
  if (counts.length !== places.minTimes.length) throw internal("it counts other segments");
  const first = new Uint32Array(counts.length + 1);
  counts.forEach((count, place) => {
    first[place + 1] = first[place]! + count;
  });
  const total = first.at(-1)!;
  const read = (id: number) => {
    const numbers = total === 0 ? new Float64Array(0) : sections.numbers(id);
    if (numbers.length !== total) throw internal("it counts other streams");
    return numbers;
  };
  const unit = total === 0 ? 1 : sections.numbers(daySection.timeUnit)[0]!;
  const rows = read(daySection.streamRows);
  const minTime = read(daySection.streamBegins);
  const maxTime = read(daySection.streamEnds);
  const rowStart = new Uint32Array(total + counts.length);
  for (let place = 0; place < counts.length; place++) {
    let row = 0;
    for (let run = first[place]!; run < first[place + 1]!; run++) {
      row += rows[run]!;
      rowStart[run + place + 1] = row;
      minTime[run] = places.minTimes[place]! + unit * minTime[run]!;
      maxTime[run] = places.maxTimes[place]! - unit * maxTime[run]!;
      if (!(minTime[run]! <= maxTime[run]!)) throw internal("it has a stream that ends too early");
    }
  }
  const marks = readMarks(sections, rowCounts(first, rowStart));
  const runs = { first, minTime, maxTime, rowStart, marks };
  const { stream, alone } = placeRuns(places, runs, total);
  return [first, stream, rowStart, minTime, maxTime, read(daySection.streamLineBytes), alone];
}

/** Rows of each counted segment. */
function rowCounts(first: Uint32Array, rowStart: Uint32Array): number[] {
  return Array.from(
    { length: first.length - 1 },
    (_, place) => rowStart[first[place + 1]! + place]!,
  );
}

interface Runs {
  readonly first: Uint32Array;
  readonly rowStart: Uint32Array;
  readonly minTime: Float64Array;
  readonly maxTime: Float64Array;
  /** By place of the segment. */
  readonly marks: readonly (Uint32Array | undefined)[];
}

/** The stream of each run, and which of them are alone. */
function placeRuns(
  { first, segments, minTimes, maxTimes }: DayPlaces,
  runs: Runs,
  total: number,
): { readonly stream: Uint32Array; readonly alone: Uint8Array } {
  const stream = new Uint32Array(total);
  const alone = new Uint8Array(total).fill(1);
  const next = runs.first.slice();
  for (let s = 0; s + 1 < first.length; s++) {
    const spans: PlacedSpan[] = [];
    for (let at = first[s]!; at < first[s + 1]!; at++) {
      const place = segments[at]!;
      if (runs.first[place] === runs.first[place + 1]) {
        spans.push({ place, run: -1, min: minTimes[place]!, max: maxTimes[place]! });
        continue;
      }
      const run = next[place]!++;
      if (run >= runs.first[place + 1]!) throw internal("it counts too few streams of a segment");
      stream[run] = s;
      spans.push({ place, run, min: runs.minTime[run]!, max: runs.maxTime[run]! });
    }
    if (spans.length < 2) continue;
    const sharing = sharingRuns(spans);
    for (const run of sharing) if (run >= 0) alone[run] = 0;
    if (sharing.size === 0 || runs.marks.length === 0) continue;
    const met = spans.filter(({ run }) => sharing.has(run));
    for (const run of separateRuns(met, (span) => marksOf(runs, span))) alone[run] = 1;
  }
  for (let place = 0; place + 1 < runs.first.length; place++) {
    if (next[place] !== runs.first[place + 1])
      throw internal("it counts too many streams of a segment");
  }
  return { stream, alone };
}

interface PlacedSpan extends Span {
  readonly place: number;
}

/** The marks of the rows of a run; undefined where its segment has none, or is not counted. */
function marksOf({ marks, rowStart }: Runs, { place, run }: PlacedSpan): Uint32Array | undefined {
  if (run < 0) return undefined;
  return marks[place]?.subarray(rowStart[run + place], rowStart[run + place + 1]);
}

/** The names of each segment; segments with the same names share one list. */
function readNames(sections: SectionReader, count: number): (readonly string[])[] {
  if (!sections.has(daySection.metadataNames)) return Array.from({ length: count }, () => []);
  const names = sections.texts(daySection.metadataNames);
  const counts = sections.numbers(daySection.segmentNameCounts);
  const ids = sections.numbers(daySection.segmentNames);
  const lists = new Map<string, readonly string[]>();
  let at = 0;
  return Array.from({ length: count }, (_, place) => {
    const own = ids.subarray(at, at + (counts[place] ?? 0));
    at += own.length;
    const key = own.join();
    let list = lists.get(key);
    if (list === undefined) {
      list = Array.from(own, (id) => names[id] ?? "");
      lists.set(key, list);
    }
    return list;
  });
}
