import { compileMatcher, type Matcher } from "@skald/model";

/** One label name over the streams of a segment: value `codes[i]` belongs to stream `streams[i]`. */
export interface LabelColumn {
  readonly name: string;
  /** Sorted, no value twice. */
  readonly values: readonly string[];
  /** Streams that have the name, ascending; undefined when all have it. */
  readonly streams: Uint32Array | undefined;
  readonly codes: Uint32Array;
}

/**
 * The streams of `0 .. count)` that satisfy every matcher, ascending. A matcher is tested once per distinct value of
 * its label, never per stream, so a regular expression over 20,000 streams of 30 namespaces runs 30 times.
 */
export function matchLabels(
  count: number,
  columnOf: (name: string) => LabelColumn | undefined,
  matchers: readonly Matcher[],
): Uint32Array {
  let candidates = new Uint8Array(count).fill(1);
  for (const matcher of matchers) {
    const test = compileMatcher(matcher);
    const column = columnOf(matcher.name);
    const acceptsAbsent = test("");
    if (column === undefined) {
      if (acceptsAbsent) continue;
      return new Uint32Array(0);
    }
    const accepted = acceptedCodes(column, matcher, test);
    candidates = acceptsAbsent
      ? dropRefused(candidates, column, accepted)
      : keepAccepted(candidates, column, accepted);
  }
  let left = 0;
  for (const flag of candidates) left += flag;
  const streams = new Uint32Array(left);
  let at = 0;
  for (let stream = 0; stream < count; stream++) {
    if (candidates[stream] === 1) streams[at++] = stream;
  }
  return streams;
}

/** One flag per value of the column. Values are sorted, so that an equality is found by halving. */
function acceptedCodes(
  column: LabelColumn,
  matcher: Matcher,
  test: (value: string) => boolean,
): Uint8Array {
  const accepted = new Uint8Array(column.values.length);
  if (matcher.op === "=") {
    const code = indexOfSorted(column.values, matcher.value);
    if (code >= 0) accepted[code] = 1;
    return accepted;
  }
  for (let code = 0; code < accepted.length; code++) {
    accepted[code] = test(column.values[code]!) ? 1 : 0;
  }
  return accepted;
}

function indexOfSorted(values: readonly string[], wanted: string): number {
  let low = 0;
  let high = values.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (values[middle]! < wanted) low = middle + 1;
    else high = middle;
  }
  return values[low] === wanted ? low : -1;
}

function dropRefused(
  candidates: Uint8Array<ArrayBuffer>,
  { streams, codes }: LabelColumn,
  accepted: Uint8Array,
): Uint8Array<ArrayBuffer> {
  for (let i = 0; i < codes.length; i++) {
    if (accepted[codes[i]!] === 1) continue;
    candidates[streams === undefined ? i : streams[i]!] = 0;
  }
  return candidates;
}

function keepAccepted(
  candidates: Uint8Array<ArrayBuffer>,
  { streams, codes }: LabelColumn,
  accepted: Uint8Array,
): Uint8Array<ArrayBuffer> {
  const kept = new Uint8Array(candidates.length);
  for (let i = 0; i < codes.length; i++) {
    if (accepted[codes[i]!] === 0) continue;
    const stream = streams === undefined ? i : streams[i]!;
    kept[stream] = candidates[stream]!;
  }
  return kept;
}
