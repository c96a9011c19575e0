import {
  compareLabels,
  formatLabels,
  type Labels,
  labelsFromObject,
  labelsToObject,
} from "@skald/model";
import type {
  BinaryExpr,
  Grouping,
  LabelReplace,
  MetricExpr,
  RangeAggregation,
  VectorAggregation,
  VectorMatching,
} from "../ast.js";
import type { QueryParams } from "../plan.js";
import type { PlainRow } from "./memory-block.js";

/** One sample of a vector: labels as an object. */
export interface NaiveSample {
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** The value of an expression at one point: a vector, or the number of a literal expression. */
export type NaiveValue = readonly NaiveSample[] | number;

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

export function naivePoints({ startNs, endNs, stepNs }: QueryParams): bigint[] {
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
      return binary(expr, valueAt(expr.left, rows, time), valueAt(expr.right, rows, time));
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
  return op === "stdvar" ? variance(values) : Math.sqrt(variance(values));
}

function groupBy<T extends { readonly labels: Readonly<Record<string, string>> }>(
  items: readonly T[],
  grouping: Grouping | undefined,
): { labels: Readonly<Record<string, string>>; members: T[] }[] {
  const groups = new Map<string, { labels: Readonly<Record<string, string>>; members: T[] }>();
  for (const item of items) {
    const labels = grouped(item.labels, grouping);
    const key = keyOf(labels);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, { labels, members: [item] });
    else group.members.push(item);
  }
  return [...groups.values()];
}

function grouped(
  labels: Readonly<Record<string, string>>,
  grouping: Grouping | undefined,
): Readonly<Record<string, string>> {
  if (grouping === undefined) return labels;
  return Object.fromEntries(
    Object.entries(labels).filter(([name]) => grouping.labels.includes(name) !== grouping.without),
  );
}

function keyOf(labels: Readonly<Record<string, string>>): string {
  return formatLabels(labelsFromObject(labels));
}

function replaceLabel(expr: LabelReplace, sample: NaiveSample): NaiveSample {
  const source = sample.labels[expr.source] ?? "";
  const regex = new RegExp(`^(?:${expr.regex})$`, "s");
  if (!regex.test(source)) return sample;
  const value = source.replace(regex, expr.replacement);
  return { ...sample, labels: clean({ ...sample.labels, [expr.destination]: value }) };
}

function clean(labels: Readonly<Record<string, string>>): Record<string, string> {
  const all: Labels = labelsFromObject(labels);
  return labelsToObject(all);
}

/** What a one-to-one or many-to-one match refuses. */
export class NaiveMatchError extends Error {}

function binary(expr: BinaryExpr, left: NaiveValue, right: NaiveValue): NaiveValue {
  if (typeof left === "number" && typeof right === "number") {
    const compared = comparison(expr.op, left, right);
    if (compared !== undefined) return Number(compared);
    return expr.op === "/" ? left / right : arithmetic(expr.op, left, right);
  }
  if (typeof left === "number" || typeof right === "number") {
    const vector = (typeof left === "number" ? right : left) as readonly NaiveSample[];
    return vector.flatMap((sample) => {
      const a = typeof left === "number" ? left : sample.value;
      const b = typeof right === "number" ? right : sample.value;
      const value = combine(expr, a, b, sample.value);
      return value === undefined ? [] : [{ labels: sample.labels, value }];
    });
  }
  return vectors(expr, left, right);
}

function combine(expr: BinaryExpr, a: number, b: number, kept: number): number | undefined {
  const compared = comparison(expr.op, a, b);
  if (compared === undefined) return arithmetic(expr.op, a, b);
  if (expr.bool) return Number(compared);
  return compared ? kept : undefined;
}

function comparison(op: BinaryExpr["op"], a: number, b: number): boolean | undefined {
  if (op === "==") return a === b;
  if (op === "!=") return a !== b;
  if (op === ">") return a > b;
  if (op === ">=") return a >= b;
  if (op === "<") return a < b;
  return op === "<=" ? a <= b : undefined;
}

function arithmetic(op: BinaryExpr["op"], a: number, b: number): number {
  if (op === "+") return a + b;
  if (op === "-") return a - b;
  if (op === "*") return a * b;
  if (op === "/") return b === 0 ? Number.NaN : a / b;
  if (op === "%") return a % b;
  return a === 1 ? 1 : a ** b;
}

function vectors(
  expr: BinaryExpr,
  left: readonly NaiveSample[],
  right: readonly NaiveSample[],
): NaiveSample[] {
  const key = (sample: NaiveSample) => signatureOf(sample, expr.matching);
  const has = (side: readonly NaiveSample[], sample: NaiveSample) =>
    side.some((other) => key(other) === key(sample));
  if (expr.op === "and") return left.filter((sample) => has(right, sample));
  if (expr.op === "unless") return left.filter((sample) => !has(right, sample));
  if (expr.op === "or") return [...left, ...right.filter((sample) => !has(left, sample))];
  const manyIsRight = expr.matching?.group?.side === "right";
  const many = manyIsRight ? right : left;
  const one = manyIsRight ? left : right;
  if (new Set(one.map(key)).size < one.length) throw new NaiveMatchError("duplicates on one side");
  const seen = new Set<string>();
  return many.flatMap((sample) => {
    const match = one.find((other) => key(other) === key(sample));
    if (match === undefined) return [];
    const labels = joinedLabels(sample, match, expr.matching);
    if (seen.has(keyOf(labels))) throw new NaiveMatchError("several matches");
    seen.add(keyOf(labels));
    const [a, b] = manyIsRight ? [match, sample] : [sample, match];
    const value = combine(expr, a.value, b.value, a.value);
    return value === undefined ? [] : [{ labels, value }];
  });
}

function signatureOf({ labels }: NaiveSample, matching: VectorMatching | undefined): string {
  if (matching === undefined) return keyOf(labels);
  return keyOf(grouped(labels, { without: !matching.on, labels: matching.labels }));
}

function joinedLabels(
  many: NaiveSample,
  one: NaiveSample,
  matching: VectorMatching | undefined,
): Readonly<Record<string, string>> {
  if (matching === undefined) return many.labels;
  if (matching.group === undefined) {
    return grouped(many.labels, { without: !matching.on, labels: matching.labels });
  }
  const copied = matching.group.include.map((name) => [name, one.labels[name] ?? ""] as const);
  return clean({ ...many.labels, ...Object.fromEntries(copied) });
}
