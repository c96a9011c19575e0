import { internal, type RunTable } from "@skald/model";
import { runningSum } from "../bytes.js";
import type { Column, ImageReader } from "../segment/index-image.js";
import type { SectionReader, SectionWriter } from "../segment/index-sections.js";
import { RunColumns, runParts } from "../segment/read/runs.js";

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
  const first = runningSum(counts);
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

/** A stretch of one stream in a segment, times inclusive; `run` -1: a segment that is not counted. */
export interface Span {
  readonly run: number;
  readonly min: number;
  readonly max: number;
}

/** Finds the runs of one stream that share times with another span; puts the spans in the order of their first times. */
export function sharingRuns(spans: Span[]): Set<number> {
  spans.sort((a, b) => a.min - b.min);
  const sharing = new Set<number>();
  let last: Span | undefined;
  for (const span of spans) {
    if (last !== undefined && span.min <= last.max) {
      sharing.add(span.run);
      sharing.add(last.run);
    }
    if (last === undefined || span.max > last.max) last = span;
  }
  return sharing;
}

/**
 * Finds the runs of one stream, of spans that share times with others, whose rows none of the others has: as the marks of their rows say, which
 * are equal where rows are, and undefined where there are none. The spans are in the order of their first times.
 */
export function separateRuns<S extends Span>(
  spans: readonly S[],
  marksOf: (span: S) => Uint32Array | undefined,
): number[] {
  const marks = spans.map(marksOf);
  const isMet = touches(spans.filter((_, i) => marks[i] === undefined));
  const apart = [...spans.keys()].filter((i) => marks[i] !== undefined && !isMet(spans[i]!));
  if (apart.length === 0) return [];
  const shared = repeated(marks.filter((list) => list !== undefined));
  return apart
    .filter((i) => shared.size === 0 || !marks[i]!.some((mark) => shared.has(mark)))
    .map((i) => spans[i]!.run);
}

/** Makes a check whether a span shares times with any of the others. Spans must be checked in the order of their first times. */
function touches(others: readonly Span[]): (span: Span) => boolean {
  // As stretches that do not overlap.
  const stretches: { min: number; max: number }[] = [];
  for (const { min, max } of others) {
    const last = stretches.at(-1);
    if (last !== undefined && min <= last.max) last.max = Math.max(last.max, max);
    else stretches.push({ min, max });
  }
  let at = 0;
  return ({ min, max }) => {
    while (at < stretches.length && stretches[at]!.max < min) at++;
    return at < stretches.length && stretches[at]!.min <= max;
  };
}

/** The numbers that occur more than once. */
function repeated(lists: readonly Uint32Array[]): Set<number> {
  const all = joinMarks(lists).sort();
  const twice = new Set<number>();
  for (let i = 1; i < all.length; i++) if (all[i] === all[i - 1]) twice.add(all[i]!);
  return twice;
}

/** Rows that an index has marks of, 4 bytes each that do not shrink. */
const maxMarked = 1024 * 1024;
/** Of these, rows of segments that share times with no other: the next ones may come to share theirs. */
const maxMarkedAlone = 16 * 1024;

/** A segment that may have marks; its last time in ns since the start of the day. */
interface MarkedSegment {
  readonly maxTime: number;
  readonly marks: Uint32Array | undefined;
}

/**
 * Writes the marks of segments, as many as the bounds allow: first of the segments that share times with others (`met` has
 * their places), then of the latest of the rest.
 */
export function writeMarks(
  sections: SectionWriter,
  segments: readonly MarkedSegment[],
  met: ReadonlySet<number>,
): void {
  const sizeOf = (place: number) => segments[place]!.marks?.length ?? 0;
  const marked = [...segments.keys()].filter((place) => sizeOf(place) > 0);
  const alone = marked.filter((place) => !met.has(place));
  alone.sort((a, b) => segments[b]!.maxTime - segments[a]!.maxTime);
  const kept = new Set<number>();
  let left = maxMarked;
  const keep = (places: readonly number[]) => {
    for (const place of places) {
      if (sizeOf(place) > left) return;
      left -= sizeOf(place);
      kept.add(place);
    }
  };
  keep(marked.filter((place) => met.has(place)));
  left = Math.min(left, maxMarkedAlone);
  keep(alone);
  if (kept.size === 0) return;
  const marks = segments.map((_, place) => (kept.has(place) ? 1 : 0));
  sections.codes(daySection.marked, marks);
  const lists = segments.flatMap(({ marks }, place) => (kept.has(place) ? [marks!] : []));
  sections.words(daySection.marks, joinMarks(lists));
}

/** The marks of several lists, one list behind the other. */
function joinMarks(lists: readonly Uint32Array[]): Uint32Array {
  const marks = new Uint32Array(lists.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const list of lists) {
    marks.set(list, at);
    at += list.length;
  }
  return marks;
}

/** By place, the marks of a segment's rows, where there are some. Throws `internal` when they are not as many as its rows. */
function readMarks(
  sections: SectionReader,
  rowCounts: readonly number[],
): (Uint32Array | undefined)[] {
  if (!sections.has(daySection.marked)) return [];
  const marked = sections.codes(daySection.marked, 0, 2);
  const marks = sections.words(daySection.marks);
  let at = 0;
  const lists = rowCounts.map((count, place) => {
    if (marked[place] !== 1) return undefined;
    at += count;
    return marks.subarray(at - count, at);
  });
  if (marked.length !== rowCounts.length || at !== marks.length)
    throw internal("it marks other rows");
  return lists;
}

/** Sections of a day index beside those of labels, see docs/formats/day-index.md. */
export const daySection = {
  tenant: 64,
  summary: 65,
  ids: 66,
  minTimes: 67,
  spans: 68,
  sizeBytes: 69,
  rows: 70,
  lineBytes: 71,
  levels: 72,
  streamCounts: 73,
  streamSegments: 74,
  goneIds: 75,
  goneMinTimes: 76,
  goneSpans: 77,
  goneSinceMs: 78,
  goneBy: 79,
  countedStreams: 80,
  streamRows: 81,
  streamLineBytes: 82,
  timeUnit: 83,
  streamBegins: 84,
  streamEnds: 85,
  metadataNames: 86,
  segmentNameCounts: 87,
  segmentNames: 88,
  marked: 89,
  marks: 90,
} as const;
