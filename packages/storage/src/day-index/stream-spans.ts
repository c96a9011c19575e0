import { joinMarks } from "./row-marks.js";

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

/** Tells whether a span, of those that come in the order of their first times, shares times with any of some others. */
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
