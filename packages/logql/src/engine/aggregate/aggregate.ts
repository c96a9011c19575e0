import { unreachable } from "@skald/model";
import type { Budget } from "../../plan/budget.js";
import type { VectorNode } from "../../plan/plan.js";
import type { SeriesMatrix } from "../../plan/result.js";
import type { VectorOp } from "../../syntax/ast.js";
import { groupSeries } from "./group.js";
import { sortSeries } from "./sort.js";
import { keepExtremeSeries } from "./topk.js";

/** Applies a vector aggregation at every point. */
export function aggregateVector(
  node: VectorNode,
  input: SeriesMatrix,
  budget: Budget,
): SeriesMatrix {
  switch (node.op) {
    case "sort":
      return sortSeries(input, 1, budget);
    case "sort_desc":
      return sortSeries(input, -1, budget);
    case "topk":
    case "approx_topk":
    case "bottomk":
      return keepExtremeSeries(node, input, budget);
    default:
      return aggregateGroups(node, input, budget);
  }
}

function aggregateGroups(node: VectorNode, input: SeriesMatrix, budget: Budget): SeriesMatrix {
  const { pointCount } = input;
  const groups = groupSeries(node, input, budget);
  const rows = groups.map(({ labels, members }) => {
    budget.holdSeries(labels, pointCount);
    return aggregateMembers(node.op, input, members, budget);
  });
  return {
    pointCount,
    labels: groups.map((group) => group.labels),
    values: rows.map((row) => row.values),
    present: rows.map((row) => row.present),
  };
}

function aggregateMembers(
  op: VectorOp,
  input: SeriesMatrix,
  members: readonly number[],
  budget: Budget,
): { values: Float64Array; present: Uint8Array } {
  const { pointCount } = input;
  const counts = new Float64Array(pointCount);
  const values = new Float64Array(pointCount);
  const squares = new Float64Array(pointCount);
  const add = additions(op);
  for (const series of members) {
    budget.work(pointCount);
    const from = input.values[series] as Float64Array;
    const present = input.present[series] as Uint8Array;
    for (let p = 0; p < pointCount; p++) {
      if (present[p] === 1) add(counts, values, squares, p, from[p] as number);
    }
  }
  finishValues(op, counts, values, squares);
  return { values, present: Uint8Array.from(counts, (count) => (count > 0 ? 1 : 0)) };
}

type Addition = (
  counts: Float64Array,
  values: Float64Array,
  squares: Float64Array,
  point: number,
  value: number,
) => void;

function additions(op: VectorOp): Addition {
  switch (op) {
    case "min":
      return (counts, values, _, p, value) => {
        const kept = values[p] as number;
        if (counts[p]!++ === 0 || Number.isNaN(kept) || value < kept) values[p] = value;
      };
    case "max":
      return (counts, values, _, p, value) => {
        const kept = values[p] as number;
        if (counts[p]!++ === 0 || Number.isNaN(kept) || value > kept) values[p] = value;
      };
    case "stddev":
    case "stdvar":
      return (counts, values, squares, p, value) => {
        const delta = value - (values[p] as number);
        values[p]! += delta / ++counts[p]!;
        squares[p]! += delta * (value - (values[p] as number));
      };
    default:
      return (counts, values, _, p, value) => {
        counts[p]! += 1;
        values[p]! += value;
      };
  }
}

function finishValues(
  op: VectorOp,
  counts: Float64Array,
  values: Float64Array,
  squares: Float64Array,
): void {
  switch (op) {
    case "sum":
    case "min":
    case "max":
      return;
    case "count":
      values.set(counts);
      return;
    case "avg":
      for (let p = 0; p < values.length; p++) values[p]! /= counts[p] as number;
      return;
    case "stdvar":
      for (let p = 0; p < values.length; p++) values[p] = squares[p]! / counts[p]!;
      return;
    case "stddev":
      for (let p = 0; p < values.length; p++) values[p] = Math.sqrt(squares[p]! / counts[p]!);
      return;
    case "topk":
    case "bottomk":
    case "approx_topk":
    case "sort":
    case "sort_desc":
      throw new Error(`${op} does not reduce groups`);
    default:
      unreachable(op);
  }
}
