import { factsOf, type MatrixSeries, type MetricExpr, type Stage } from "@skald/logql";
import { compareLabels, floorDiv, keyOfLabels, lowerBound, type TimeRange } from "@skald/model";
import { rangesOf } from "../limits/check-limits.js";

/** Points of a query, both ends inclusive. */
export interface PointRun {
  readonly from: number;
  readonly to: number;
}

/** The series of a run of points; a sample at `at` is of the point `at + shift`. */
export interface Stretch extends PointRun {
  readonly series: readonly MatrixSeries[];
  readonly shift: number;
}

/** Joins stretches that follow each other into series sorted by labels, with points counted from `origin`. */
export function joinStretches(stretches: readonly Stretch[], origin = 0): MatrixSeries[] {
  const pieces = new Map<string, Slice[]>();
  for (const { from, to, series, shift } of stretches) {
    for (const one of series) {
      const begin = lowerBound(one.at, from - shift);
      const end = lowerBound(one.at, to - shift + 1);
      if (begin === end) continue;
      const slice = { series: one, begin, end, shift: shift - origin };
      const key = keyOfLabels(one.labels);
      const known = pieces.get(key);
      if (known === undefined) pieces.set(key, [slice]);
      else known.push(slice);
    }
  }
  return [...pieces.values()].map(joinSlices).sort((a, b) => compareLabels(a.labels, b.labels));
}

interface Slice {
  readonly series: MatrixSeries;
  readonly begin: number;
  readonly end: number;
  readonly shift: number;
}

function joinSlices(slices: readonly Slice[]): MatrixSeries {
  const length = slices.reduce((sum, { begin, end }) => sum + end - begin, 0);
  const at = new Uint32Array(length);
  const values = new Float64Array(length);
  let place = 0;
  for (const { series, begin, end, shift } of slices) {
    values.set(series.values.subarray(begin, end), place);
    for (let i = begin; i < end; i++) at[place++] = series.at[i]! + shift;
  }
  return { labels: slices[0]!.series.labels, at, values };
}

/** Runs of the points for which `is` holds, between two points. */
export function runsWhere({ from, to }: PointRun, is: (point: number) => boolean): PointRun[] {
  const runs: PointRun[] = [];
  let begin: number | undefined;
  for (let point = from; point <= to + 1; point++) {
    const holds = point <= to && is(point);
    if (holds) begin ??= point;
    else if (begin !== undefined) {
      runs.push({ from: begin, to: point - 1 });
      begin = undefined;
    }
  }
  return runs;
}

/** A piece of a range query that is kept as one: the points between two multiples of a width of time. */
export interface Piece {
  /** Multiples of the width since the epoch. */
  readonly index: bigint;
  /** The number that the first point of the piece has in the query; it may lie before the query. */
  readonly shift: number;
  /** Points of the piece, within the query or not. */
  readonly count: number;
  /** Rows that any point of the piece depends on. */
  readonly range: TimeRange;
}

/** The points of a range query: `startNs + i * stepNs`, i < count. */
export interface PointGrid {
  readonly startNs: bigint;
  /** More than 0. */
  readonly stepNs: bigint;
  readonly count: number;
}

/** The least number of points of a piece: a piece spans several intervals where one has fewer. */
const minPoints = 64n;

/** How wide pieces are: a multiple of the interval that holds some points. */
export function pieceWidth(stepNs: bigint, intervalNs: bigint): bigint {
  return intervalNs * ((minPoints * stepNs + intervalNs - 1n) / intervalNs);
}

/** The pieces that have points of a query, in order. */
export function piecesOf(
  { startNs, stepNs, count }: PointGrid,
  widthNs: bigint,
  look: Look,
): Piece[] {
  const pieces: Piece[] = [];
  const phaseNs = startNs - floorDiv(startNs, stepNs) * stepNs;
  const lastNs = startNs + stepNs * BigInt(count - 1);
  for (let index = floorDiv(startNs, widthNs); index * widthNs <= lastNs; index++) {
    const first = firstPoint(index * widthNs, stepNs, phaseNs);
    const next = firstPoint((index + 1n) * widthNs, stepNs, phaseNs);
    if (first === next) continue;
    pieces.push({
      index,
      shift: Number((first - startNs) / stepNs),
      count: Number((next - first) / stepNs),
      range: {
        fromNs: first - look.beforeNs + 1n,
        toNs: next - stepNs + look.afterNs + 1n,
      },
    });
  }
  return pieces;
}

/** The first time from another on that is a multiple of the step and the phase. */
function firstPoint(fromNs: bigint, stepNs: bigint, phaseNs: bigint): bigint {
  return -floorDiv(phaseNs - fromNs, stepNs) * stepNs + phaseNs;
}

/** Which rows a point of a metric query depends on: those with times in (t - beforeNs, t + afterNs]. */
export interface Look {
  readonly beforeNs: bigint;
  /** Less than 0n where all offsets look back. */
  readonly afterNs: bigint;
}

/** What all points of an expression look at; undefined when it depends on more than rows, or on none. */
export function lookOf(expr: MetricExpr): Look | undefined {
  const ranges = rangesOf(expr);
  if (ranges.length === 0 || ranges.some(({ log }) => log.stages.some(readsClock)))
    return undefined;
  const least = (a: bigint, b: bigint) => (a < b ? a : b);
  const windows = ranges.map(({ rangeNs, offsetNs }) => ({
    beginNs: -rangeNs - offsetNs,
    endNs: -offsetNs,
  }));
  return {
    beforeNs: -windows.map(({ beginNs }) => beginNs).reduce(least),
    afterNs: -windows.map(({ endNs }) => -endNs).reduce(least),
  };
}

/** Whether a template may say what time it is. */
function readsClock(stage: Stage): boolean {
  return factsOf(stage).hasTemplate && /\b(?:now|date)\b/.test(JSON.stringify(stage));
}
