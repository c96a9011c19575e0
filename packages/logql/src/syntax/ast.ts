import type { Matcher } from "@skald/model";

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

export type LineFilterOp = "|=" | "!=" | "|~" | "!~" | "|>" | "!>";

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

export type CompareOp = "==" | "!=" | ">" | ">=" | "<" | "<=";

export type LabelFilter =
  | { readonly kind: "and"; readonly left: LabelFilter; readonly right: LabelFilter }
  | { readonly kind: "or"; readonly left: LabelFilter; readonly right: LabelFilter }
  | { readonly kind: "string"; readonly matcher: Matcher }
  | {
      readonly kind: "number";
      readonly name: string;
      readonly op: CompareOp;
      readonly value: number;
    }
  /** value in ns */
  | {
      readonly kind: "duration";
      readonly name: string;
      readonly op: CompareOp;
      readonly value: bigint;
    }
  | {
      readonly kind: "bytes";
      readonly name: string;
      readonly op: CompareOp;
      readonly value: number;
    }
  | {
      readonly kind: "ip";
      readonly name: string;
      readonly op: "==" | "!=";
      readonly value: string;
    };

export type MetricExpr =
  | RangeAggregation
  | VectorAggregation
  | BinaryExpr
  | LabelReplace
  | LiteralExpr
  | { readonly kind: "vector"; readonly value: number };

export const rangeOps = [
  "rate",
  "rate_counter",
  "count_over_time",
  "bytes_rate",
  "bytes_over_time",
  "avg_over_time",
  "sum_over_time",
  "min_over_time",
  "max_over_time",
  "stdvar_over_time",
  "stddev_over_time",
  "quantile_over_time",
  "first_over_time",
  "last_over_time",
  "absent_over_time",
] as const;
export type RangeOp = (typeof rangeOps)[number];

/** `rate({app="a"} |= "x" | unwrap y [5m] offset 1h) by (z)` */
export interface RangeAggregation {
  readonly kind: "range_aggregation";
  readonly op: RangeOp;
  /** of quantile_over_time */
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

export const vectorOps = [
  "sum",
  "avg",
  "min",
  "max",
  "count",
  "stddev",
  "stdvar",
  "topk",
  "bottomk",
  "approx_topk",
  "sort",
  "sort_desc",
] as const;
export type VectorOp = (typeof vectorOps)[number];

export interface VectorAggregation {
  readonly kind: "vector_aggregation";
  readonly op: VectorOp;
  /** of topk, bottomk, approx_topk */
  readonly parameter?: number;
  readonly grouping?: Grouping;
  readonly inner: MetricExpr;
}

export type BinaryOp =
  | "or"
  | "and"
  | "unless"
  | "=="
  | "!="
  | ">"
  | ">="
  | "<"
  | "<="
  | "+"
  | "-"
  | "*"
  | "/"
  | "%"
  | "^";

/** How tightly an operator binds; all group to the left but `^`. */
export const precedence: Readonly<Record<BinaryOp, number>> = {
  or: 1,
  and: 2,
  unless: 2,
  "==": 3,
  "!=": 3,
  ">": 3,
  ">=": 3,
  "<": 3,
  "<=": 3,
  "+": 4,
  "-": 4,
  "*": 5,
  "/": 5,
  "%": 5,
  "^": 6,
};

export interface BinaryExpr {
  readonly kind: "binary";
  readonly op: BinaryOp;
  readonly left: MetricExpr;
  readonly right: MetricExpr;
  readonly bool: boolean;
  readonly matching?: VectorMatching;
}

export interface VectorMatching {
  readonly on: boolean;
  readonly labels: readonly string[];
  readonly group?: { readonly side: "left" | "right"; readonly include: readonly string[] };
}

export interface LabelReplace {
  readonly kind: "label_replace";
  readonly inner: MetricExpr;
  readonly destination: string;
  readonly replacement: string;
  readonly source: string;
  readonly regex: string;
}

export interface LiteralExpr {
  readonly kind: "literal";
  readonly value: number;
}

/** What is true of every stage of a kind. Planners and scans ask this table, so that a new kind must answer all of it. */
export interface StageFacts {
  /** Finds labels in the line. */
  readonly parses: boolean;
  /** Puts another text in the place of the line. */
  readonly changesLine: boolean;
  /** Drops rows. */
  readonly filters: boolean;
  /** Adds, changes or removes labels. */
  readonly changesLabels: boolean;
  /** Marks a row with an error that nobody sees who does not run the stage. */
  readonly marksErrors: boolean;
  /** May ask a template for the time of day, among other things. */
  readonly hasTemplate: boolean;
}

const none: StageFacts = {
  parses: false,
  changesLine: false,
  filters: false,
  changesLabels: false,
  marksErrors: false,
  hasTemplate: false,
};
const parser: StageFacts = { ...none, parses: true, changesLabels: true };

export const stageFacts: Readonly<Record<Stage["kind"], StageFacts>> = {
  line_filter: { ...none, filters: true },
  label_filter: { ...none, filters: true },
  json: { ...parser, marksErrors: true },
  logfmt: { ...parser, marksErrors: true },
  regexp: parser,
  pattern: parser,
  unpack: { ...parser, changesLine: true, marksErrors: true },
  decolorize: { ...none, changesLine: true },
  line_format: { ...none, changesLine: true, marksErrors: true, hasTemplate: true },
  label_format: { ...none, changesLabels: true, marksErrors: true, hasTemplate: true },
  drop: { ...none, changesLabels: true },
  keep: { ...none, changesLabels: true },
};

/** The facts of a stage. */
export function factsOf({ kind }: Stage): StageFacts {
  return stageFacts[kind];
}
