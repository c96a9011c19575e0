import type { MatrixSeries } from "@skald/logql";
import { compareLabels, formatLabels, lowerBound } from "@skald/model";

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
      const key = formatLabels(one.labels);
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
