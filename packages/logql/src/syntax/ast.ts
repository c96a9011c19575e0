import type { Matcher } from "@skald/model";
import type { BinaryOp, CompareOp } from "./operator.js";

/** A query: either log lines or numbers. */
export type Expr = LogExpr | MetricExpr;

/** `{app="a"} |= "x" | json` */
export interface LogExpr {
  readonly kind: "log";
  readonly matchers: readonly Matcher[];
  readonly stages: readonly Stage[];
}

export type Stage =
  | LineFilterStage
  | LabelFilterStage
  | JsonStage
  | LogfmtStage
  | { readonly kind: "regexp"; readonly pattern: string }
  | { readonly kind: "pattern"; readonly pattern: string }
  | { readonly kind: "unpack" }
  | { readonly kind: "decolorize" }
  | { readonly kind: "line_format"; readonly template: string }
  | { readonly kind: "label_format"; readonly formats: readonly LabelFormat[] }
  | { readonly kind: "drop"; readonly targets: readonly LabelTarget[] }
  | { readonly kind: "keep"; readonly targets: readonly LabelTarget[] };

/** The facts of each kind of stage. Planners, scans and pipelines ask this table, so that a new kind must answer all of it. */
export interface StageFacts {
  /** It finds labels in the line. */
  readonly parses: boolean;
  /** The line that it parses may write values with escapes. */
  readonly unescapes: boolean;
  /** Whether it drops a row, or what labels it finds, depends on the line. Stages with templates ask the template. */
  readonly readsLine: boolean;
  /** It puts another text in the place of the line. */
  readonly changesLine: boolean;
  /** It drops rows. */
  readonly filters: boolean;
  /** It adds, changes or removes labels. */
  readonly changesLabels: boolean;
  /** It marks rows with an error that nobody sees without running the stage. */
  readonly marksErrors: boolean;
  /** It has a template, which may ask for the time of day among other things. */
  readonly hasTemplate: boolean;
}

const none: StageFacts = {
  ...{ parses: false, unescapes: false, readsLine: false, changesLine: false, filters: false },
  ...{ changesLabels: false, marksErrors: false, hasTemplate: false },
};
const parser = { ...none, parses: true, readsLine: true, changesLabels: true };
const formatter = { ...none, marksErrors: true, hasTemplate: true };

export const stageFacts = {
  line_filter: { ...none, filters: true, readsLine: true },
  label_filter: { ...none, filters: true },
  json: { ...parser, unescapes: true, marksErrors: true },
  logfmt: { ...parser, unescapes: true, marksErrors: true },
  regexp: parser,
  unpack: { ...parser, unescapes: true, changesLine: true, marksErrors: true },
  pattern: parser,
  line_format: { ...formatter, changesLine: true },
  label_format: { ...formatter, changesLabels: true },
  decolorize: { ...none, changesLine: true },
  drop: { ...none, changesLabels: true },
  keep: { ...none, changesLabels: true },
} satisfies Record<Stage["kind"], StageFacts>;

/** The facts of a stage. */
export function factsOf({ kind }: Stage): StageFacts {
  return stageFacts[kind];
}

/** The facts of each operator of line filters: whether a row must not match, and what its text is. */
export const lineFilterFacts = {
  "|=": { negated: false, by: "text" },
  "!=": { negated: true, by: "text" },
  "|~": { negated: false, by: "regex" },
  "!~": { negated: true, by: "regex" },
  "|>": { negated: false, by: "pattern" },
  "!>": { negated: true, by: "pattern" },
} as const;

export type LineFilterOp = keyof typeof lineFilterFacts;

/**
 * One line filter with its `or` alternatives. For `|=`, `|~`, `|>` any alternative may match; for the negative
 * operators none may.
 */
export interface LineFilterStage {
  readonly kind: "line_filter";
  readonly op: LineFilterOp;
  readonly alternatives: readonly LineFilterValue[];
}

export type LineFilterValue =
  | { readonly kind: "text"; readonly value: string }
  | { readonly kind: "ip"; readonly value: string };

export interface JsonStage {
  readonly kind: "json";
  readonly extractions: readonly Extraction[];
}

export interface LogfmtStage {
  readonly kind: "logfmt";
  readonly strict: boolean;
  readonly keepEmpty: boolean;
  readonly extractions: readonly Extraction[];
}

/** `label="path"`; a bare `label` has the path `label`. */
export interface Extraction {
  readonly label: string;
  readonly path: string;
}

export type LabelFormat =
  | { readonly kind: "rename"; readonly label: string; readonly source: string }
  | { readonly kind: "template"; readonly label: string; readonly template: string };

/** A label of drop or keep: by name, or only if the matcher matches. */
export type LabelTarget =
  | { readonly kind: "name"; readonly name: string }
  | { readonly kind: "matcher"; readonly matcher: Matcher };

export interface LabelFilterStage {
  readonly kind: "label_filter";
  readonly filter: LabelFilter;
}

export type LabelFilter =
  | { readonly kind: "and"; readonly left: LabelFilter; readonly right: LabelFilter }
  | { readonly kind: "or"; readonly left: LabelFilter; readonly right: LabelFilter }
  | { readonly kind: "string"; readonly matcher: Matcher }
  | Comparison<"number", CompareOp, number>
  /** value in ns */
  | Comparison<"duration", CompareOp, bigint>
  | Comparison<"bytes", CompareOp, number>
  | Comparison<"ip", "==" | "!=", string>;

interface Comparison<Kind, Op, Value> {
  readonly kind: Kind;
  readonly name: string;
  readonly op: Op;
  readonly value: Value;
}

/** An expression of numbers. The generic nodes below are those of plans too, with leaves for range aggregations. */
export type MetricExpr =
  | RangeAggregation
  | VectorAggregation
  | BinaryExpr
  | LabelReplace
  | LiteralExpr
  | VectorLiteral;

/** The facts of each function over a range. */
interface RangeFacts {
  /** Whether it works on unwrapped values: never, always, or either way. */
  readonly unwraps: "never" | "always" | "either";
  /** It takes `by` and `without`. */
  readonly groups: boolean;
  /** Its results for several sets of rows add up to the result for all of them. */
  readonly adds: boolean;
  /** What a scan must keep of the rows; of unwrapped rows `rate` needs the sum. */
  readonly keeps: string;
}

const ofRows = { unwraps: "never", groups: false, adds: true } as const;
const ofValues = { unwraps: "always", groups: true, adds: false } as const;

export const rangeFacts = {
  rate: { ...ofRows, unwraps: "either", keeps: "count" },
  rate_counter: { ...ofValues, groups: false, keeps: "samples" },
  count_over_time: { ...ofRows, keeps: "count" },
  bytes_rate: { ...ofRows, keeps: "bytes" },
  bytes_over_time: { ...ofRows, keeps: "bytes" },
  avg_over_time: { ...ofValues, keeps: "sum" },
  sum_over_time: { ...ofValues, groups: false, adds: true, keeps: "sum" },
  min_over_time: { ...ofValues, keeps: "min" },
  max_over_time: { ...ofValues, keeps: "max" },
  stdvar_over_time: { ...ofValues, keeps: "moments" },
  stddev_over_time: { ...ofValues, keeps: "moments" },
  quantile_over_time: { ...ofValues, keeps: "samples" },
  first_over_time: { ...ofValues, keeps: "first" },
  last_over_time: { ...ofValues, keeps: "last" },
  absent_over_time: { ...ofRows, unwraps: "either", adds: false, keeps: "count" },
} as const satisfies Record<string, RangeFacts>;

/** What a scan keeps per series and bucket of time; see metric-scan.ts. */
export type LeafMode = (typeof rangeFacts)[RangeOp]["keeps"];

export type RangeOp = keyof typeof rangeFacts;
export const rangeOps = Object.keys(rangeFacts) as RangeOp[];

/** `rate({app="a"} |= "x" | unwrap y [5m] offset 1h) by (z)` */
export interface RangeAggregation {
  readonly kind: "range_aggregation";
  readonly op: RangeOp;
  /** Only of quantile_over_time. */
  readonly parameter?: number;
  readonly log: LogExpr;
  readonly unwrap?: Unwrap;
  readonly rangeNs: bigint;
  /** ns; positive looks back */
  readonly offsetNs: bigint;
  readonly grouping?: Grouping;
}

export interface Unwrap {
  readonly label: string;
  readonly conversion: "none" | "duration" | "duration_seconds" | "bytes";
  /** Filters behind the unwrap, applied after the conversion. */
  readonly filters: readonly LabelFilter[];
}

export interface Grouping {
  readonly without: boolean;
  readonly labels: readonly string[];
}

/** What each vector aggregation does with the series of a group: reduces them to one, keeps the first by rank, or sorts them. */
export const vectorKinds = {
  sum: "reduces",
  avg: "reduces",
  min: "reduces",
  max: "reduces",
  count: "reduces",
  stddev: "reduces",
  stdvar: "reduces",
  topk: "ranks",
  bottomk: "ranks",
  approx_topk: "ranks",
  sort: "sorts",
  sort_desc: "sorts",
} as const;

export type VectorOp = keyof typeof vectorKinds;
export const vectorOps = Object.keys(vectorKinds) as VectorOp[];

export interface VectorAggregation<Inner = MetricExpr> {
  readonly kind: "vector_aggregation";
  readonly op: VectorOp;
  /** Only of those that rank. */
  readonly parameter?: number;
  readonly grouping?: Grouping;
  readonly inner: Inner;
}

export interface BinaryExpr<Inner = MetricExpr> {
  readonly kind: "binary";
  readonly op: BinaryOp;
  readonly left: Inner;
  readonly right: Inner;
  readonly bool: boolean;
  readonly matching?: VectorMatching;
}

export interface VectorMatching {
  readonly on: boolean;
  readonly labels: readonly string[];
  readonly group?: { readonly side: "left" | "right"; readonly include: readonly string[] };
}

export interface LabelReplace<Inner = MetricExpr> {
  readonly kind: "label_replace";
  readonly inner: Inner;
  readonly destination: string;
  readonly replacement: string;
  readonly source: string;
  readonly regex: string;
}

export interface LiteralExpr {
  readonly kind: "literal";
  readonly value: number;
}

/** `vector(1)` */
export interface VectorLiteral {
  readonly kind: "vector";
  readonly value: number;
}
