import type { Span } from "../api/fields.js";
import { fetchRange, type MetricAnswer, type Series, type Stats } from "../api/lines.js";
import { bytesToRead, fetchExplanation } from "../api/stats.js";

/** What a query reads before it is asked in slices instead of at once. */
export const sliceOverBytes = 256 * 1024 * 1024;
/** How long a query may take before the page asks what it will read. Most have answered by then, whatever the range holds. */
const longMs = 500;
/** The newest part of the range that lines are asked of first. */
export const firstSlice = 16n;
/** Parts of a metric query. */
const metricSlices = 4;

export interface Patient<T> {
  readonly atOnce: (signal: AbortSignal) => Promise<T>;
  readonly inSlices: (bytes: number) => Promise<T>;
  /** What the whole query reads. */
  readonly bytesOf: () => Promise<number>;
  readonly signal: AbortSignal;
  readonly patienceMs?: number;
}

/**
 * Asks a query at once, or, when it takes long and reads much, ends it and asks in slices: so the first lines come early, and
 * what is done can be shown.
 */
export async function patiently<T>(query: Patient<T>): Promise<T> {
  const { atOnce, inSlices, bytesOf, signal, patienceMs = longMs } = query;
  const impatient = new AbortController();
  let bytes = 0;
  const timer = setTimeout(async () => {
    bytes = await bytesOf();
    if (bytes > sliceOverBytes) impatient.abort();
  }, patienceMs);
  try {
    return await atOnce(AbortSignal.any([signal, impatient.signal]));
  } catch (error) {
    if (!impatient.signal.aborted || signal.aborted) throw error;
  } finally {
    clearTimeout(timer);
  }
  return inSlices(bytes);
}

/** What a query will read, asked once; 0 where the server does not say. */
export function bytesOfQuery(
  query: string,
  span: Span,
  signal: AbortSignal,
): () => Promise<number> {
  let asked: Promise<number> | undefined;
  return () => {
    asked ??= fetchExplanation(query, span, 1000, signal).then((found) =>
      found === undefined ? 0 : bytesToRead(found),
    );
    return asked;
  };
}

export interface RangeQuery {
  readonly query: string;
  readonly start: string;
  readonly end: string;
  /** Seconds. */
  readonly step: number;
}

/** Parts of a range query, the newest first, on the points that the whole has. */
export function rangeSlices({ query, start, end, step }: RangeQuery): RangeQuery[] {
  const stepNs = BigInt(Math.round(step * 1e9));
  const from = BigInt(start);
  const points = Number((BigInt(end) - from) / stepNs) + 1;
  const count = Math.min(metricSlices, points);
  const edge = (part: number) => Math.floor((points * part) / count);
  const at = (point: number) => String(from + stepNs * BigInt(point));
  return Array.from({ length: count }, (_, part) => ({
    ...{ query, step, start: at(edge(part)) },
    end: at(edge(part + 1) - 1),
  })).reverse();
}

/** Asks a range query part after part; `onPart` gets all that is known after each, and the share of parts that are done. */
export async function fetchRangeInSlices(
  whole: RangeQuery,
  signal: AbortSignal,
  onPart: (known: MetricAnswer, done: number) => void,
): Promise<MetricAnswer> {
  const parts = rangeSlices(whole);
  let known: MetricAnswer = { series: [], stats: noStats, warnings: [] };
  for (const [index, part] of parts.entries()) {
    const { series, stats, warnings } = await fetchRange(part, signal);
    known = {
      series: joinSeries(series, known.series),
      stats: addStats(known.stats, stats),
      warnings: [...new Set([...known.warnings, ...warnings])],
    };
    onPart(known, (index + 1) / parts.length);
  }
  return known;
}

/** Series of two parts of a range, the earlier first. */
export function joinSeries(earlier: readonly Series[], later: readonly Series[]): Series[] {
  const keyOf = ({ labels }: Series) => JSON.stringify(Object.entries(labels).sort());
  const joined = new Map(earlier.map((one) => [keyOf(one), one]));
  for (const one of later) {
    const points = [...(joined.get(keyOf(one))?.points ?? []), ...one.points];
    joined.set(keyOf(one), { labels: one.labels, points });
  }
  return [...joined.values()];
}

export const noStats: Stats = { bytes: 0, lines: 0, seconds: 0 };

export function addStats(one: Stats, other: Stats): Stats {
  const { skald } = other;
  const sum = (a: Readonly<Record<string, number>> = {}, b: Readonly<Record<string, number>>) =>
    Object.fromEntries(Object.entries(b).map(([name, value]) => [name, (a[name] ?? 0) + value]));
  return {
    bytes: one.bytes + other.bytes,
    lines: one.lines + other.lines,
    seconds: one.seconds + other.seconds,
    ...(skald !== undefined && {
      skald: {
        phases: sum(one.skald?.phases, skald.phases),
        blocks: sum(one.skald?.blocks, skald.blocks),
        bytesToRead: (one.skald?.bytesToRead ?? 0) + skald.bytesToRead,
      },
    }),
  };
}
