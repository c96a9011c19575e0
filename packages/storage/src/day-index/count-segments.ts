import type { SectionWriter } from "../segment/index-sections.js";
import type { SegmentIndex } from "../segment/read/index-reader.js";
import { type DayPlaces, daySection, sharingRuns, writeMarks } from "./stream-counts.js";

/** What a segment holds of each of its streams, in the order of their texts. */
export interface SegmentCounts {
  /** Names of the structured metadata of its rows. */
  readonly metadataNames: readonly string[];
  readonly rows: Float64Array;
  /** Bytes of the lines. */
  readonly lineBytes: Float64Array;
  /** ns since the start of the day, inclusive */
  readonly minTimes: Float64Array;
  readonly maxTimes: Float64Array;
  /** A mark of each row, stream by stream, where the segment has some: rows of different marks differ. */
  readonly marks?: Uint32Array;
}

/** A segment of a day as its index is written; times in ns since the start of the day. */
interface CountedSegment {
  readonly minTime: number;
  readonly maxTime: number;
  readonly counts: SegmentCounts | undefined;
}

/** Streams of segments that an index counts, 33 bytes each in memory. */
const maxCounted = 2 * 1024 * 1024;
/** A segment of more names is not counted: most queries need its rows anyway. */
const maxNames = 64;
/** Units of times, ns: the clocks of agents count in ms or µs. */
const units = [1_000_000, 1000];

/** Adds up the runs of a segment by stream; undefined when an index does not count it. */
export function countSegment(index: SegmentIndex): SegmentCounts | undefined {
  const { count } = index.streams;
  const names = new Set<string>();
  const rows = new Float64Array(count);
  const lineBytes = new Float64Array(count);
  const minTimes = new Float64Array(count).fill(Number.POSITIVE_INFINITY);
  const maxTimes = new Float64Array(count).fill(Number.NEGATIVE_INFINITY);
  for (let block = 0; block < index.blockCount; block++) {
    for (const name of index.namesOf(block)) names.add(name);
    if (names.size > maxNames) return undefined;
    const runs = index.runs.of(block);
    for (let run = 0; run < runs.count; run++) {
      const stream = runs.stream[run]!;
      rows[stream]! += runs.rowStart[run + 1]! - runs.rowStart[run]!;
      lineBytes[stream]! += runs.lineBytes[run]!;
      minTimes[stream] = Math.min(minTimes[stream]!, runs.minTime[run]!);
      maxTimes[stream] = Math.max(maxTimes[stream]!, runs.maxTime[run]!);
    }
  }
  const isWhole = rows.every((held) => held > 0);
  const metadataNames = [...names].sort();
  if (!isWhole) return undefined;
  const marks = index.marks();
  const counts = { metadataNames, rows, lineBytes, minTimes, maxTimes };
  return marks === undefined ? counts : { ...counts, marks };
}

/** Writes the counts of the segments of a day, with the places that hold each stream in turn; see docs/formats/day-index.md. */
export function writeCounts(
  sections: SectionWriter,
  segments: readonly CountedSegment[],
  holders: Pick<DayPlaces, "first" | "segments">,
): void {
  const kept = keptOf(segments);
  const all = kept.flatMap(({ counts, ...times }) =>
    counts === undefined ? [] : [{ counts, ...times }],
  );
  const total = all.reduce((sum, { counts }) => sum + counts.rows.length, 0);
  const numbersOf = (of: (segment: (typeof all)[number], stream: number) => number) => {
    const numbers = new Float64Array(total);
    let at = 0;
    for (const segment of all)
      for (let stream = 0; stream < segment.counts.rows.length; stream++)
        numbers[at++] = of(segment, stream);
    return numbers;
  };
  const write = (id: number, of: Parameters<typeof numbersOf>[0]) =>
    sections.numbers(id, numbersOf(of));
  const streams = kept.map(({ counts }) => counts?.rows.length ?? 0);
  sections.numbers(daySection.countedStreams, streams);
  write(daySection.streamRows, ({ counts }, i) => counts.rows[i]!);
  write(daySection.streamLineBytes, ({ counts }, i) => counts.lineBytes[i]!);
  const begins = numbersOf(({ counts, minTime }, i) => counts.minTimes[i]! - minTime);
  const ends = numbersOf(({ counts, maxTime }, i) => maxTime - counts.maxTimes[i]!);
  const unit = unitOf(begins, ends);
  sections.numbers(daySection.timeUnit, [unit]);
  sections.numbers(
    daySection.streamBegins,
    begins.map((time) => time / unit),
  );
  sections.numbers(
    daySection.streamEnds,
    ends.map((time) => time / unit),
  );
  writeNames(sections, kept);
  if (kept.every(({ counts }) => counts?.marks === undefined)) return;
  const marked = kept.map(({ maxTime, counts }) => ({ maxTime, marks: counts?.marks }));
  writeMarks(sections, marked, meetingPlaces(kept, holders));
}

/** The places of segments that have rows of a stream within the times that another one has some. */
function meetingPlaces(
  segments: readonly CountedSegment[],
  { first, segments: places }: Pick<DayPlaces, "first" | "segments">,
): Set<number> {
  const met = new Set<number>();
  const next = new Uint32Array(segments.length);
  for (let stream = 0; stream + 1 < first.length; stream++) {
    const spans = Array.from(places.subarray(first[stream], first[stream + 1]), (run) => {
      const { counts, minTime, maxTime } = segments[run]!;
      const at = next[run]!++;
      return { run, min: counts?.minTimes[at] ?? minTime, max: counts?.maxTimes[at] ?? maxTime };
    });
    for (const place of sharingRuns(spans)) met.add(place);
  }
  return met;
}

/** The segments, without the counts of those with the most streams where all together are too many. */
function keptOf(segments: readonly CountedSegment[]): CountedSegment[] {
  const sizes = segments.map(({ counts }) => counts?.rows.length ?? 0);
  let left = maxCounted;
  const kept = new Set<number>();
  for (const place of [...sizes.keys()].sort((a, b) => sizes[a]! - sizes[b]!)) {
    if (sizes[place]! > left) break;
    left -= sizes[place]!;
    kept.add(place);
  }
  return segments.map((segment, place) =>
    kept.has(place) ? segment : { ...segment, counts: undefined },
  );
}

function unitOf(...lists: readonly Float64Array[]): number {
  const isUnit = (unit: number) => lists.every((list) => list.every((time) => time % unit === 0));
  return units.find(isUnit) ?? 1;
}

function writeNames(sections: SectionWriter, segments: readonly CountedSegment[]): void {
  const ids = new Map<string, number>();
  const counts: number[] = [];
  const names: number[] = [];
  for (const { counts: { metadataNames = [] } = {} } of segments) {
    counts.push(metadataNames.length);
    const own = metadataNames.map((name) => {
      const id = ids.get(name) ?? ids.size;
      ids.set(name, id);
      return id;
    });
    names.push(...own.sort((a, b) => a - b));
  }
  sections.texts(daySection.metadataNames, [...ids.keys()]);
  sections.numbers(daySection.segmentNameCounts, counts);
  sections.numbers(daySection.segmentNames, names);
}
