import { factsOf, type MetricExpr, type Stage } from "@skald/logql";
import { floorDiv, type TimeRange } from "@skald/model";
import { rangesOf } from "../limits/check-limits.js";

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

/** A piece has so many points at least, where one interval has fewer. */
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
