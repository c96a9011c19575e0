import { type Labels, type Matcher, makeLabels } from "@skald/model";
import { Budget, tooManyCells } from "../plan/budget.js";
import type { LeafPlan, RangeFunction, SeriesMatrix } from "../plan/plan.js";
import { WindowGrid } from "../plan/window-grid.js";
import { combineMetricPartials, type MetricPartial } from "../scan/partial.js";
import { type Entries, type WindowFunction, windowFunction } from "./window-function.js";

/**
 * The series of each function of a leaf from the partials of all its scans, in a fixed order of sources (it decides
 * ties). Series without a sample at any point are left out. Throws invalid_argument when a limit of the plan is broken.
 */
export function mergeMetricPartials(
  leaf: LeafPlan,
  partials: readonly MetricPartial[],
  budget: Budget = new Budget(),
): SeriesMatrix[] {
  const merged = combineMetricPartials(leaf, partials, budget);
  if (merged.labels.length * leaf.windows.count > leaf.maxCells) throw tooManyCells(leaf.maxCells);
  const grid = new WindowGrid(leaf);
  return leaf.functions.map((one) => seriesOf({ leaf, one, grid, budget }, merged));
}

interface FunctionOfLeaf {
  readonly leaf: LeafPlan;
  readonly one: RangeFunction;
  readonly grid: WindowGrid;
  readonly budget: Budget;
}

function seriesOf(
  { leaf, one, grid, budget }: FunctionOfLeaf,
  merged: MetricPartial,
): SeriesMatrix {
  const labels = [];
  const values: Float64Array[] = [];
  const present: Uint8Array[] = [];
  const rows = new MatrixRows(leaf.windows.count);
  for (let s = 0; s < merged.labels.length; s++) {
    const entries = entriesOf(merged, s);
    budget.work(entries.bucket.length);
    const evaluate = windowFunction(leaf, one, entries, budget);
    budget.work(leaf.windows.count);
    const row = rows.next();
    if (!fillWindows(row, grid, entries.bucket, evaluate)) continue;
    budget.holdSeries(merged.labels[s]!, leaf.windows.count);
    labels.push(merged.labels[s]!);
    values.push(row.values);
    present.push(row.present);
    rows.keep();
  }
  const matrix = { pointCount: leaf.windows.count, labels, values, present };
  return one.op === "absent_over_time" ? absentSeries(leaf, matrix) : matrix;
}

function entriesOf(partial: MetricPartial, series: number): Entries {
  const from = partial.start[series] as number;
  const to = partial.start[series + 1] as number;
  return {
    bucket: partial.bucket.subarray(from, to),
    count: partial.count.subarray(from, to),
    value: partial.value.subarray(from, to),
    extra: partial.extra.subarray(from, to),
  };
}

interface MatrixRow {
  readonly values: Float64Array;
  readonly present: Uint8Array;
}

/** The first row of a matrix has a buffer of its own; later ones share, each time twice as many, up to this size. */
const maxSharedBytes = 1024 * 1024;

/** The rows of a matrix: with a buffer for each, 200,000 short rows would take 60 MB more. */
class MatrixRows {
  readonly #pointCount: number;
  #rows = 0;
  #values = new Float64Array(0);
  #present = new Uint8Array(0);
  #at = 0;

  constructor(pointCount: number) {
    this.#pointCount = pointCount;
  }

  /** A row of zeros; the same as before, unless that was kept. */
  next(): MatrixRow {
    if (this.#at === this.#present.length) this.#grow();
    const end = this.#at + this.#pointCount;
    return {
      values: this.#values.subarray(this.#at, end),
      present: this.#present.subarray(this.#at, end),
    };
  }

  /** Keeps the row that `next` gave. */
  keep(): void {
    this.#at += this.#pointCount;
  }

  #grow(): void {
    const most = Math.floor(maxSharedBytes / Float64Array.BYTES_PER_ELEMENT / this.#pointCount);
    this.#rows = Math.max(1, Math.min(2 * this.#rows, most));
    this.#values = new Float64Array(this.#rows * this.#pointCount);
    this.#present = new Uint8Array(this.#rows * this.#pointCount);
    this.#at = 0;
  }
}

/** Evaluates the windows of a series into a row of zeros; false when none has a sample. */
function fillWindows(
  { values, present }: MatrixRow,
  grid: WindowGrid,
  bucket: Uint32Array,
  evaluate: WindowFunction,
): boolean {
  const { length: count } = present;
  let isAny = false;
  let from = 0;
  let to = 0;
  for (let point = 0; point < count && from < bucket.length; point++) {
    const first = grid.firstBucket(point);
    const last = grid.lastBucket(point);
    while (from < bucket.length && (bucket[from] as number) < first) from++;
    if (to < from) to = from;
    while (to < bucket.length && (bucket[to] as number) <= last) to++;
    if (from === to) continue;
    values[point] = evaluate(from, to, point);
    present[point] = 1;
    isAny = true;
  }
  return isAny;
}

/** absent_over_time: one series that is 1 wherever no series of the leaf has a sample. */
function absentSeries(leaf: LeafPlan, found: SeriesMatrix): SeriesMatrix {
  const { pointCount } = found;
  const present = new Uint8Array(pointCount).fill(1);
  for (const row of found.present) {
    for (let p = 0; p < pointCount; p++) if (row[p] === 1) present[p] = 0;
  }
  if (!present.includes(1)) return { pointCount, labels: [], values: [], present: [] };
  const values = new Float64Array(pointCount).fill(1);
  return {
    pointCount,
    labels: [absentLabels(leaf.matchers)],
    values: [values],
    present: [present],
  };
}

/** The labels that equality matchers fix; a name that is matched twice, or in another way, is fixed by none. */
function absentLabels(matchers: readonly Matcher[]): Labels {
  const uses = new Map<string, number>();
  for (const { name } of matchers) uses.set(name, (uses.get(name) ?? 0) + 1);
  const fixed = matchers.filter(({ name, op }) => op === "=" && uses.get(name) === 1);
  return makeLabels(fixed.map(({ name, value }) => [name, value] as const));
}
