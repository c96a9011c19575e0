import { internal } from "@skald/model";
import type { SectionReader, SectionWriter } from "../segment/index-sections.js";
import { daySection } from "./sections.js";

/** Rows that an index has marks of, 4 bytes each that do not shrink. */
const maxMarked = 1024 * 1024;
/** Of these, rows of segments that share times with no other: the next ones may come to share theirs. */
const maxMarkedAlone = 16 * 1024;

/** A segment that may have marks; its last time in ns since the start of the day. */
interface MarkedSegment {
  readonly maxTime: number;
  readonly marks: Uint32Array | undefined;
}

/** Writes the marks of segments: of those that share times with others, which are told by their places, first; of the rest, the last ones'. */
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
  sections.codes(
    daySection.marked,
    Uint32Array.from(segments, (_, place) => (kept.has(place) ? 1 : 0)),
  );
  const lists = segments.flatMap(({ marks }, place) => (kept.has(place) ? [marks!] : []));
  sections.words(daySection.marks, joinMarks(lists));
}

/** The marks of several lists, one list behind the other. */
export function joinMarks(lists: readonly Uint32Array[]): Uint32Array {
  const marks = new Uint32Array(lists.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const list of lists) {
    marks.set(list, at);
    at += list.length;
  }
  return marks;
}

/** By place, the marks of a segment's rows, where there are some. Throws `internal` when they are not as many as its rows. */
export function readMarks(
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
