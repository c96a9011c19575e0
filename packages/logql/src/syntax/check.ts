import { compileRegex, type Matcher, matchesEmpty, type Regex, SkaldError } from "@skald/model";
import type { Expr, LabelFilter, RangeOp, VectorOp } from "./ast.js";

/** True when a stream without any of the labels would satisfy every matcher, which includes `{}`. */
export function isEmptyCompatible(matchers: readonly Matcher[]): boolean {
  return matchers.every((matcher) => {
    const { op, value } = matcher;
    if (op === "=") return value === "";
    if (op === "!=") return value !== "";
    if (plainRegex.test(value)) return value.split("|").includes("") === (op === "=~");
    return matchesEmpty(matcher);
  });
}

export const emptyCompatibleReason =
  "queries require at least one regexp or equality matcher that does not have an empty-compatible value. " +
  'For instance, app=~".*" does not meet this requirement, but app=~".+" will';

/** Expressions of names joined by `|` are valid as they stand: no need to compile them. */
const plainRegex = /^[\w /:|-]*$/;

/** Why an RE2 expression that must match all of a text is not valid, or undefined. */
export function regexError(pattern: string): string | undefined {
  if (plainRegex.test(pattern)) return undefined;
  const compiled = tryCompile(pattern, { anchored: true });
  return typeof compiled === "string" ? compiled : undefined;
}

/** Why the expression of a `regexp` stage is refused: it needs at least one named group. */
export function regexpStageError(pattern: string): string | undefined {
  const compiled = tryCompile(pattern, { anchored: false });
  if (typeof compiled === "string") return `invalid regexp parser: ${compiled}`;
  const names = compiled.groupNames.filter(Boolean);
  const twice = names.find((name, at) => names.indexOf(name) !== at);
  if (twice !== undefined)
    return `invalid regexp parser: duplicate extracted label name '${twice}'`;
  if (names.length > 0) return undefined;
  return "invalid regexp parser: at least one named capture must be supplied";
}

/** Longest reason; it repeats the expression, which may be as long as the query. */
const reasonCharsMax = 300;

function tryCompile(pattern: string, options: { anchored: boolean }): Regex | string {
  try {
    return compileRegex(pattern, options);
  } catch (error) {
    if (!(error instanceof SkaldError)) throw error;
    const { message } = error;
    return message.length > reasonCharsMax ? `${message.slice(0, reasonCharsMax)}...` : message;
  }
}

/** Why the expression of a `pattern` stage is refused: named captures, no two in a row, no name twice. */
export function patternStageError(pattern: string): string | undefined {
  const names = new Set<string>();
  let end = -1;
  let previous = "";
  for (const capture of pattern.matchAll(/<([A-Za-z_]\w*)>/g)) {
    const name = capture[1] as string;
    if (capture.index === end) {
      return `invalid pattern parser: found consecutive capture '${previous}${capture[0]}': invalid expression`;
    }
    if (name !== "_" && names.has(name)) {
      return `invalid pattern parser: duplicate capture name (${name}): invalid expression`;
    }
    if (name !== "_") names.add(name);
    end = capture.index + capture[0].length;
    previous = capture[0];
  }
  return names.size > 0 ? undefined : "invalid pattern parser: at least one capture is required";
}

export function labelReplaceError(regex: string): string | undefined {
  const error = regexError(regex);
  return error === undefined ? undefined : `invalid regex in label_replace: ${error}`;
}

const groupable: ReadonlySet<RangeOp> = new Set([
  "avg_over_time",
  "stddev_over_time",
  "stdvar_over_time",
  "quantile_over_time",
  "max_over_time",
  "min_over_time",
  "first_over_time",
  "last_over_time",
]);
const withUnwrap: ReadonlySet<RangeOp> = new Set([
  ...groupable,
  "sum_over_time",
  "rate",
  "rate_counter",
  "absent_over_time",
]);
const withoutUnwrap: ReadonlySet<RangeOp> = new Set([
  "count_over_time",
  "rate",
  "bytes_over_time",
  "bytes_rate",
  "absent_over_time",
]);

/** Why a range aggregation is refused: its number, its grouping, or an unwrap that is missing or one too many. */
export function rangeAggregationError(
  op: RangeOp,
  given: {
    /** The number in front, as written. */
    readonly parameter: string | undefined;
    readonly unwrapped: boolean;
    readonly grouped: boolean;
  },
): string | undefined {
  const needsParameter = op === "quantile_over_time";
  if (needsParameter && given.parameter === undefined) {
    return `parameter required for operation ${op}`;
  }
  if (!needsParameter && given.parameter !== undefined) {
    return `parameter ${given.parameter} not supported for operation ${op}`;
  }
  if (given.grouped && !groupable.has(op)) return `grouping not allowed for ${op} aggregation`;
  const allowed = given.unwrapped ? withUnwrap : withoutUnwrap;
  if (allowed.has(op)) return undefined;
  return `invalid aggregation ${op} ${given.unwrapped ? "with" : "without"} unwrap`;
}

/** Why a vector aggregation is refused: its number or its grouping. */
export function vectorAggregationError(
  op: VectorOp,
  given: {
    readonly parameter: number | undefined;
    /** The number as written. */
    readonly parameterText: string | undefined;
    readonly grouped: boolean;
  },
): string | undefined {
  const { parameter, parameterText, grouped } = given;
  const ranks = op === "topk" || op === "bottomk" || op === "approx_topk";
  if (!ranks && parameter !== undefined) {
    return `unsupported parameter for operation ${op}(${parameterText},`;
  }
  if (ranks && parameter === undefined) return `parameter required for operation ${op}`;
  if (parameter !== undefined && !Number.isSafeInteger(parameter)) {
    return `invalid parameter ${op}(${parameterText},`;
  }
  if (parameter !== undefined && parameter <= 0) {
    return `invalid parameter (must be greater than 0) ${op}(${parameterText}`;
  }
  if (grouped && (op === "sort" || op === "sort_desc")) {
    return "sort and sort_desc doesn't allow grouping by";
  }
  return grouped && op === "approx_topk" ? `grouping not allowed for ${op} aggregation` : undefined;
}

/** True when a tree is low enough to be walked by recursion; filters may reach further down than expressions. */
export function isWithinHeight(
  expr: Expr,
  levelsMax: { readonly expression: number; readonly filter: number },
): boolean {
  let level: readonly Walkable[] = [expr];
  for (let height = 0; level.length > 0; height++) {
    if (height > levelsMax.filter) return false;
    if (height > levelsMax.expression && !level.every(isFilter)) return false;
    level = level.flatMap(childrenOf);
  }
  return true;
}

function isFilter(node: Walkable): boolean {
  return node.kind === "and" || node.kind === "or" || "name" in node || "matcher" in node;
}

type Walkable = Expr | LabelFilter;

function childrenOf(node: Walkable): readonly Walkable[] {
  switch (node.kind) {
    case "binary":
    case "and":
    case "or":
      return [node.left, node.right];
    case "vector_aggregation":
    case "label_replace":
      return [node.inner];
    case "range_aggregation":
      return [node.log, ...(node.unwrap?.filters ?? [])];
    case "log":
      return node.stages.flatMap((stage) => (stage.kind === "label_filter" ? [stage.filter] : []));
    default:
      return [];
  }
}
