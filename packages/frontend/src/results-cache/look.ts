import { factsOf, type MetricExpr, type Stage } from "@skald/logql";
import { rangesOf } from "../limits/check-limits.js";

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
