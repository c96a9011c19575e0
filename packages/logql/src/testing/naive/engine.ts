import { compareLabels, labelsFromObject } from "@skald/model";
import type { QueryParams } from "../../plan/plan.js";
import type {
  LabelReplace,
  MetricExpr,
  RangeAggregation,
  VectorAggregation,
} from "../../syntax/ast.js";
import type { PlainRow } from "../memory-block.js";
import { naiveBinary } from "./binary.js";
import { clean, groupBy, type NaiveSample, type NaiveValue } from "./labels.js";

/**
 * Evaluates a metric expression point by point on rows as objects: slow, and the specification that the engine is
 * tested against. Of stages it knows `|= "text"`, and unwrap of a metadata value without a conversion.
 */
export function evaluateNaively(
  expr: MetricExpr,
  rows: readonly PlainRow[],
  params: QueryParams,
): NaiveValue[] {
  return naivePoints(params).map((time) => valueAt(expr, rows, time));
}

function naivePoints({ startNs, endNs, stepNs }: QueryParams): bigint[] {
  if (stepNs === 0n) return [endNs];
  const points: bigint[] = [];
  for (let time = startNs; time <= endNs; time += stepNs) points.push(time);
  return points;
}

function valueAt(expr: MetricExpr, rows: readonly PlainRow[], time: bigint): NaiveValue {
  switch (expr.kind) {
    case "literal":
      return expr.value;
    case "vector":
      return [{ labels: {}, value: expr.value }];
    case "range_aggregation":
      return rangeAggregation(expr, rows, time);
    case "vector_aggregation":
      return vectorAggregation(expr, vectorAt(expr.inner, rows, time));
    case "label_replace":
      return vectorAt(expr.inner, rows, time).map((sample) => replaceLabel(expr, sample));
    case "binary":
      return naiveBinary(expr, valueAt(expr.left, rows, time), valueAt(expr.right, rows, time));
  }
}

function vectorAt(expr: MetricExpr, rows: readonly PlainRow[], time: bigint) {
  const value = valueAt(expr, rows, time);
  return typeof value === "number" ? [{ labels: {}, value }] : value;
}

interface RangeSample {
  readonly labels: Readonly<Record<string, string>>;
  readonly ts: bigint;
  readonly value: number;
  readonly bytes: number;
}

function rangeAggregation(
  expr: RangeAggregation,
  rows: readonly PlainRow[],
  time: bigint,
): NaiveSample[] {
  const end = time - expr.offsetNs;
  const inWindow = samplesOf(expr, rows).filter(({ ts }) => ts > end - expr.rangeNs && ts <= end);
  if (expr.op === "absent_over_time") {
    const fixed = expr.log.matchers.filter(
      ({ name, op }) =>
        op === "=" && expr.log.matchers.filter((other) => other.name === name).length === 1,
    );
    const labels = Object.fromEntries(fixed.map(({ name, value }) => [name, value]));
    return inWindow.length > 0 ? [] : [{ labels, value: 1 }];
  }
  return groupBy(inWindow, expr.grouping).map(({ labels, members }) => ({
    labels,
    value: overTime(expr, end, members),
  }));
}

function samplesOf(expr: RangeAggregation, rows: readonly PlainRow[]): RangeSample[] {
  const samples: RangeSample[] = [];
  for (const row of rows) {
    const line = String(row.line);
    const passes = expr.log.stages.every(
      (stage) =>
        stage.kind === "line_filter" &&
        stage.alternatives.some(({ value }) => line.includes(value)),
    );
    if (!passes || !matchesAll(expr, row.labels)) continue;
    const labels: Record<string, string> = { ...row.labels };
    for (const [name, value] of Object.entries(row.metadata ?? {})) {
      if (value !== "") labels[name in row.labels ? `${name}_extracted` : name] = value;
    }
    let value = 1;
    if (expr.unwrap !== undefined) {
      const text = labels[expr.unwrap.label];
      if (text === undefined) continue;
      value = Number(text);
      if (expr.grouping === undefined) delete labels[expr.unwrap.label];
    }
    samples.push({ labels, ts: row.ts, value, bytes: new TextEncoder().encode(line).length });
  }
  // Stable: rows of one time stay in their order.
  return samples.sort((a, b) => (a.ts < b.ts ? -1 : a.ts > b.ts ? 1 : 0));
}

function matchesAll(expr: RangeAggregation, labels: Readonly<Record<string, string>>): boolean {
  return expr.log.matchers.every(({ name, op, value }) => {
    const got = labels[name] ?? "";
    if (op === "=") return got === value;
    if (op === "!=") return got !== value;
    return new RegExp(`^(?:${value})$`, "s").test(got) === (op === "=~");
  });
}

function overTime(expr: RangeAggregation, end: bigint, samples: readonly RangeSample[]): number {
  const values = samples.map(({ value }) => value);
  const seconds = Number(expr.rangeNs) / 1e9;
  const sum = values.reduce((a, b) => a + b, 0);
  switch (expr.op) {
    case "count_over_time":
      return values.length;
    case "rate":
      return (expr.unwrap === undefined ? values.length : sum) / seconds;
    case "bytes_over_time":
      return samples.reduce((total, { bytes }) => total + bytes, 0);
    case "bytes_rate":
      return samples.reduce((total, { bytes }) => total + bytes, 0) / seconds;
    case "sum_over_time":
      return sum;
    case "avg_over_time":
      return sum / values.length;
    case "min_over_time":
      return extreme(values, (a, b) => a < b);
    case "max_over_time":
      return extreme(values, (a, b) => a > b);
    case "stdvar_over_time":
      return variance(values);
    case "stddev_over_time":
      return Math.sqrt(variance(values));
    case "first_over_time":
      return values[0] as number;
    case "last_over_time":
      return values.at(-1) as number;
    case "quantile_over_time":
      return quantile(expr.parameter ?? Number.NaN, values);
    case "rate_counter":
      return counterRate(expr, end, samples);
    case "absent_over_time":
      return 1;
  }
}

function counterRate(expr: RangeAggregation, end: bigint, samples: readonly RangeSample[]): number {
  if (samples.length < 2) return 0;
  const seconds = Number(expr.rangeNs) / 1e9;
  const values = samples.map(({ value }) => value);
  let increase = (values.at(-1) as number) - (values[0] as number);
  for (let i = 1; i < values.length; i++) {
    if (values[i]! < values[i - 1]!) increase += values[i - 1]!;
  }
  const sampled = Number(samples.at(-1)!.ts - samples[0]!.ts) / 1e9;
  const gap = sampled / (samples.length - 1);
  let before = Number(samples[0]!.ts - (end - expr.rangeNs)) / 1e9;
  const after = Number(end - samples.at(-1)!.ts) / 1e9;
  if (increase > 0 && values[0]! >= 0) before = Math.min(before, (sampled * values[0]!) / increase);
  const covered =
    sampled + (before < 1.1 * gap ? before : gap / 2) + (after < 1.1 * gap ? after : gap / 2);
  return (increase * (covered / sampled)) / seconds;
}

function extreme(values: readonly number[], isBetter: (a: number, b: number) => boolean): number {
  const numbers = values.filter((value) => !Number.isNaN(value));
  if (numbers.length === 0) return Number.NaN;
  return numbers.reduce((best, value) => (isBetter(value, best) ? value : best));
}

function variance(values: readonly number[]): number {
  const mean = values.reduce((a, b) => a + b, 0) / values.length;
  return values.reduce((total, value) => total + (value - mean) ** 2, 0) / values.length;
}

function quantile(q: number, values: readonly number[]): number {
  if (q < 0) return Number.NEGATIVE_INFINITY;
  if (q > 1) return Number.POSITIVE_INFINITY;
  const sorted = [
    ...values.filter(Number.isNaN),
    ...values.filter((value) => !Number.isNaN(value)).sort((a, b) => a - b),
  ];
  const rank = q * (sorted.length - 1);
  const lower = Math.floor(rank);
  const upper = Math.min(lower + 1, sorted.length - 1);
  return sorted[lower]! * (1 - (rank - lower)) + sorted[upper]! * (rank - lower);
}

function vectorAggregation(expr: VectorAggregation, input: readonly NaiveSample[]): NaiveSample[] {
  const groups = groupBy(input, expr.grouping ?? { without: false, labels: [] });
  switch (expr.op) {
    case "sort":
    case "sort_desc":
      return [...input];
    case "topk":
    case "approx_topk":
    case "bottomk":
      return groups.flatMap(({ members }) => bestOf(expr, members));
    default:
      return groups.map(({ labels, members }) => ({
        labels,
        value: aggregate(
          expr.op,
          members.map(({ value }) => value),
        ),
      }));
  }
}

function bestOf(expr: VectorAggregation, members: readonly NaiveSample[]): NaiveSample[] {
  const sign = expr.op === "bottomk" ? 1 : -1;
  const sorted = [...members].sort(
    (a, b) =>
      Number(Number.isNaN(a.value)) - Number(Number.isNaN(b.value)) ||
      sign * (a.value - b.value) ||
      compareLabels(labelsFromObject(a.labels), labelsFromObject(b.labels)),
  );
  return sorted.slice(0, expr.parameter);
}

function aggregate(op: VectorAggregation["op"], values: readonly number[]): number {
  const sum = values.reduce((a, b) => a + b, 0);
  if (op === "sum") return sum;
  if (op === "avg") return sum / values.length;
  if (op === "count") return values.length;
  if (op === "min") return extreme(values, (a, b) => a < b);
  if (op === "max") return extreme(values, (a, b) => a > b);
  if (values.length === 1) return 0;
  return op === "stdvar" ? variance(values) : Math.sqrt(variance(values));
}

function replaceLabel(expr: LabelReplace, sample: NaiveSample): NaiveSample {
  const source = sample.labels[expr.source] ?? "";
  const regex = new RegExp(`^(?:${expr.regex})$`, "s");
  if (!regex.test(source)) return sample;
  const value = source.replace(regex, expr.replacement);
  return { ...sample, labels: clean({ ...sample.labels, [expr.destination]: value }) };
}
