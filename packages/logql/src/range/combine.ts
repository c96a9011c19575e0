import { Budget } from "../plan/budget.js";
import { type LeafMode, type LeafPlan, wantsTimes } from "../plan/plan.js";
import { type CellEnd, keepEnd, SampleColumns } from "../scan/metric/accumulate.js";
import { CellTable } from "../scan/metric/cells.js";
import type { MetricPartial } from "../scan/metric/partial.js";
import { partialOfCells, partialOfSamples } from "../scan/metric/partial.js";
import { SeriesIndex } from "../scan/metric/series.js";
import { joinMoments } from "./window-function.js";

/** One partial from several of the same leaf: what a scan of all their rows would have given. */
export function combineMetricPartials(
  leaf: LeafPlan,
  partials: readonly MetricPartial[],
  budget: Budget = new Budget(),
): MetricPartial {
  const [first] = partials;
  if (partials.length === 1 && first !== undefined) return first;
  const index = new SeriesIndex(leaf.maxSeries);
  const cells = new CellTable(leaf.mode, leaf.maxCells);
  const samples = new SampleColumns(leaf.maxCells);
  const withTimes = wantsTimes(leaf);
  for (const partial of partials) {
    for (let s = 0; s < partial.labels.length; s++) {
      const series = index.find(partial.labels[s]!);
      const from = partial.start[s] as number;
      const to = partial.start[s + 1] as number;
      budget.work(1 + partial.labels[s]!.names.length + to - from);
      for (let i = from; i < to; i++) {
        const cell = cells.find(series, partial.bucket[i] as number);
        if (leaf.mode === "samples") addSample(cells, samples, cell, partial, i, withTimes);
        else joinCell[leaf.mode](cells, cell, partial, i);
      }
    }
  }
  if (leaf.mode !== "samples") return partialOfCells(leaf.mode, index.labels, cells);
  return partialOfSamples(index.labels, cells, samples, withTimes);
}

function addSample(
  cells: CellTable,
  samples: SampleColumns,
  cell: number,
  partial: MetricPartial,
  i: number,
  withTimes: boolean,
): void {
  cells.rows[cell]! += 1;
  samples.push(cell, partial.value[i] as number, withTimes ? (partial.extra[i] as number) : 0);
}

type JoinCell = (cells: CellTable, cell: number, partial: MetricPartial, i: number) => void;

const joinCell: Readonly<Record<Exclude<LeafMode, "samples">, JoinCell>> = {
  count: (cells, cell, partial, i) => {
    cells.rows[cell]! += partial.count[i] as number;
  },
  bytes: addValue,
  sum: addValue,
  min: (cells, cell, partial, i) => keepExtreme(cells, cell, partial, i, 1),
  max: (cells, cell, partial, i) => keepExtreme(cells, cell, partial, i, -1),
  moments: (cells, cell, partial, i) => {
    const joined = joinMoments(
      { count: cells.rows[cell]!, mean: cells.value[cell]!, squares: cells.extra[cell]! },
      { count: partial.count[i]!, mean: partial.value[i]!, squares: partial.extra[i]! },
    );
    cells.rows[cell] = joined.count;
    cells.value[cell] = joined.mean;
    cells.extra[cell] = joined.squares;
  },
  first: (cells, cell, partial, i) => keepEnd(cells, cell, 1, endOf(partial, i)),
  last: (cells, cell, partial, i) => keepEnd(cells, cell, -1, endOf(partial, i)),
};

function addValue(cells: CellTable, cell: number, partial: MetricPartial, i: number): void {
  cells.rows[cell]! += partial.count[i] as number;
  cells.value[cell]! += partial.value[i] as number;
}

function keepExtreme(
  cells: CellTable,
  cell: number,
  partial: MetricPartial,
  i: number,
  sign: 1 | -1,
): void {
  const kept = cells.value[cell] as number;
  const value = partial.value[i] as number;
  const isFirst = cells.rows[cell] === 0;
  cells.rows[cell]! += partial.count[i] as number;
  if (isFirst || Number.isNaN(kept) || sign * value < sign * kept) cells.value[cell] = value;
}

function endOf({ count, value, extra, stream }: MetricPartial, i: number): CellEnd {
  return { rows: count[i]!, value: value[i]!, time: extra[i]!, stream: stream[i]! };
}
