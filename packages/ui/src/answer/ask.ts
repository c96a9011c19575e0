import { batch, signal } from "@preact/signals";
import type { Expr, LogExpr } from "@skald/logql/syntax";
import type { Span } from "../api/fields.js";
import {
  fetchInstant,
  fetchLines,
  fetchRange,
  type Level,
  type LinesAnswer,
  levelOf,
  levels,
  type MetricAnswer,
  type Series,
  type Stats,
} from "../api/lines.js";
import { Paging } from "../lines/paging.js";
import { bucketsFor } from "../query/derive.js";
import { linesMax } from "../state/config.js";
import { oldestFirst } from "../state/explore.js";
import { type Range, stepFor } from "../state/range.js";
import {
  addStats,
  bytesOfQuery,
  fetchRangeInSlices,
  firstSlice,
  noStats,
  patiently,
} from "./slices.js";

/** What the last query that ran was, and what came of it. */
export interface Answer {
  readonly text: string;
  readonly expr: Expr;
  /** The log query in it. */
  readonly log: LogExpr | undefined;
  readonly range: Range;
  readonly span: Span;
  readonly paging?: Paging;
  readonly metric?: MetricAnswer & { readonly step: number };
  /** The values at the end of the range, where the query was asked at one time. */
  readonly instant?: readonly Series[];
  readonly stats: Stats;
  readonly warnings: readonly string[];
  readonly tookMs: number;
}

export type Base = Pick<Answer, "text" | "expr" | "log" | "range" | "span">;

export interface Histogram {
  /** The query and range that it counts, which may be ahead of the list. */
  readonly text: string;
  readonly span: Span;
  readonly fromMs: number;
  readonly stepMs: number;
  readonly buckets: number;
  readonly counts: ReadonlyMap<Level, Float64Array>;
  readonly total: number;
  /** Whether all of the range is counted. */
  readonly complete: boolean;
}

/** How far a query is that is asked in slices. */
export interface Progress {
  /** What it will read, at most. */
  readonly bytes: number;
  /** Of the lines, and of the chart: how much of the bytes is done. */
  readonly lines: number;
  readonly chart: number;
}

/** Of all bytes, done for lines and chart. */
export function percentOf({ lines, chart }: Progress): number {
  return Math.round((lines + chart) * 50);
}

export const answer = signal<Answer | undefined>(undefined);
export const histogram = signal<Histogram | undefined>(undefined);
export const progress = signal<Progress | undefined>(undefined);
/** Rises when the list has more lines. */
export const grown = signal(0);

const pageSize = 1000;
const heldMax = 100_000;

/** How pages are asked for: the query that runs ends them. */
export type FetchSignal = () => AbortSignal;

function report(bytes: number, done: Partial<Progress>): void {
  const before = progress.peek();
  // A query that is asked at once has nothing to report.
  if (before === undefined && bytes === 0) return;
  progress.value = { ...(before ?? { bytes, lines: 0, chart: 0 }), ...done };
}

/** Asks for the lines of a query and their counts by level. */
export async function askLines(base: Base, log: LogExpr, current: FetchSignal): Promise<void> {
  const signal = current();
  const bytesOf = bytesOfQuery(base.text, base.span, signal);
  pending = undefined;
  const counting = countByLevel(base, log, bytesOf, signal);
  const startedAt = performance.now();
  const show = (paging: Paging, { stats, warnings }: Pick<LinesAnswer, "stats" | "warnings">) =>
    batch(() => {
      const tookMs = performance.now() - startedAt;
      answer.value = { ...base, paging, stats, warnings, tookMs };
      if (histogram.value !== pending) histogram.value = undefined;
    });
  await patiently({
    atOnce: async (both) => {
      const paging = pagingOf(base, undefined, () => (signal === current() ? both : current()));
      const first = await paging.more();
      show(paging, first ?? { stats: noStats, warnings: [] });
    },
    inSlices: (bytes) => askInSlices(base, bytes, current, show),
    ...{ bytesOf, signal },
  });
  report(0, { lines: 1 });
  await counting;
}

/** Asks slice after slice until there is a page of lines, and shows what there is after each. */
async function askInSlices(
  base: Base,
  bytes: number,
  current: FetchSignal,
  show: (paging: Paging, answer: Pick<LinesAnswer, "stats" | "warnings">) => void,
): Promise<void> {
  const { fromNs, toNs } = base.range;
  const paging = pagingOf(base, (toNs - fromNs) / firstSlice + 1n, current);
  let stats = noStats;
  const warnings = new Set<string>();
  report(bytes, { lines: 0 });
  do {
    const more = await paging.more();
    if (more === undefined) continue;
    stats = addStats(stats, more.stats);
    for (const one of more.warnings) warnings.add(one);
    report(bytes, { lines: Math.min(0.99, stats.bytes / bytes) });
    if (paging.count > 0 || paging.done) show(paging, { stats, warnings: [...warnings] });
    grown.value++;
  } while (!paging.done && paging.count < pageSize);
}

function pagingOf(base: Base, sliceNs: bigint | undefined, signal: FetchSignal): Paging {
  return new Paging({
    query: base.text,
    ...base.span,
    direction: oldestFirst.peek() ? "forward" : "backward",
    size: Math.min(pageSize, linesMax.peek()),
    limitMax: linesMax.peek(),
    heldMax,
    sliceNs,
    fetch: (query) => fetchLines(query, signal()),
  });
}

/** The histogram of the query that runs, when it came before the lines. */
let pending: Histogram | undefined;

async function countByLevel(
  base: Base,
  log: LogExpr,
  bytesOf: () => Promise<number>,
  signal: AbortSignal,
): Promise<void> {
  const buckets = bucketsFor(log, base.range);
  const { query, start, end, step } = buckets;
  const whole = { query, start, end, step };
  const show = (found: MetricAnswer, complete: boolean) => {
    pending = histogramOf(base, buckets, found, complete);
    histogram.value = pending;
  };
  try {
    await patiently({
      atOnce: async (both) => show(await fetchRange(whole, both), true),
      inSlices: async (bytes) => {
        report(bytes, { chart: 0 });
        await fetchRangeInSlices(whole, signal, (known, done) => {
          report(bytes, { chart: done });
          show(known, done === 1);
        });
      },
      ...{ bytesOf, signal },
    });
  } catch {
    // The lines are there without a chart, and the error of the lines says what is wrong.
  }
  report(0, { chart: 1 });
}

function histogramOf(
  base: Base,
  { step, count }: { readonly step: number; readonly count: number },
  found: MetricAnswer,
  complete: boolean,
): Histogram {
  const counts = new Map<Level, Float64Array>();
  const fromMs = Number(base.range.fromNs / 1_000_000n);
  let total = 0;
  for (const { labels, points } of found.series) {
    const level = levelOf(labels.detected_level);
    const row = counts.get(level) ?? new Float64Array(count);
    counts.set(level, row);
    for (const [at, value] of points) {
      const bucket = Math.round((at * 1000 - fromMs) / (step * 1000)) - 1;
      if (bucket < 0 || bucket >= count) continue;
      row[bucket] = (row[bucket] ?? 0) + value;
      total += value;
    }
  }
  const ordered = new Map(
    levels.filter((level) => counts.has(level)).map((level) => [level, counts.get(level)!]),
  );
  const { text, span } = base;
  const stepMs = step * 1000;
  return { text, span, fromMs, stepMs, buckets: count, counts: ordered, total, complete };
}

const pointsMax = 240;

/** Asks a metric query over the range, or, with `atEnd`, for its values at the end of the range. */
export async function askMetric(base: Base, atEnd: boolean, signal: AbortSignal): Promise<void> {
  const startedAt = performance.now();
  const { startNs: start, endNs: end } = base.span;
  const step = stepFor(base.range, pointsMax);
  const whole = { query: base.text, start, end, step };
  const show = (metric: MetricAnswer) =>
    batch(() => {
      const { stats, warnings, series } = metric;
      const tookMs = performance.now() - startedAt;
      const found = { metric: { ...metric, step }, ...(atEnd && { instant: series }) };
      histogram.value = undefined;
      answer.value = { ...base, ...found, stats, warnings, tookMs };
    });
  if (atEnd) return show(await fetchInstant({ query: base.text, time: end }, signal));
  await patiently({
    atOnce: async (both) => show(await fetchRange(whole, both)),
    inSlices: async (bytes) => {
      report(bytes, { lines: 0, chart: 0 });
      await fetchRangeInSlices(whole, signal, (known, done) => {
        show(known);
        report(bytes, { lines: done, chart: done });
      });
    },
    bytesOf: bytesOfQuery(base.text, base.span, signal),
    signal,
  });
}
