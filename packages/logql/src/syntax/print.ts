import { formatGoDuration, formatPrometheusDuration, quote, unreachable } from "@skald/model";
import type {
  BinaryExpr,
  Expr,
  Grouping,
  LabelReplace,
  LogExpr,
  RangeAggregation,
  VectorAggregation,
} from "./ast.js";
import { formatPlain, formatShortest, formatSixDecimals } from "./print-literal.js";
import { printSelector, printStage, printUnwrap } from "./print-stage.js";

/**
 * Prints a query on one line; parsing the text gives the same tree. One tree has no text and must not be built: a
 * drop or keep that ends in a bare name, then a line filter `!=` or `!~`, which reads as a matcher of that name.
 */
export function printQuery(expr: Expr): string {
  return printWith(expr, printQuery);
}

/** Prints a node, given a way to print the expressions inside it. */
export function printWith(expr: Expr, printInner: (inner: Expr) => string): string {
  switch (expr.kind) {
    case "log":
      return printLog(expr);
    case "literal":
      return formatShortest(expr.value);
    case "vector":
      return `vector(${formatSixDecimals(expr.value)})`;
    case "range_aggregation":
      return printRangeAggregation(expr);
    case "vector_aggregation":
      return printVectorAggregation(expr, printInner(expr.inner));
    case "binary":
      return printBinary(expr, printInner(expr.left), printInner(expr.right));
    case "label_replace":
      return `label_replace(${printInner(expr.inner)},${printReplaceArguments(expr).join(",")})`;
    default:
      return unreachable(expr);
  }
}

export function printLog({ matchers, stages }: LogExpr): string {
  return [printSelector(matchers), ...stages.map(printStage)].join(" ");
}

function printRangeAggregation(expr: RangeAggregation): string {
  const { op, parameter, log, unwrap, rangeNs, offsetNs, grouping } = expr;
  const first = parameter === undefined ? "" : `${formatShortest(parameter)},`;
  const body = [printLog(log), ...(unwrap === undefined ? [] : printUnwrap(unwrap))].join(" ");
  const range = `[${formatPrometheusDuration(rangeNs)}]`;
  const offset = offsetNs === 0n ? "" : ` offset ${formatGoDuration(offsetNs)}`;
  const groups = grouping === undefined ? "" : ` ${printGrouping(grouping, ",")}`;
  return `${op}(${first}${body}${range}${offset})${groups}`;
}

function printVectorAggregation(expr: VectorAggregation, inner: string): string {
  const { op, parameter, grouping } = expr;
  const groups = grouping === undefined ? "" : ` ${printGrouping(grouping, ",")}`;
  const first = parameter === undefined ? "" : `${formatPlain(parameter)},`;
  return `${op}${groups}(${first}${inner})`;
}

/** `by (a,b)` or `without ()`. */
export function printGrouping({ without, labels }: Grouping, separator: string): string {
  return `${without ? "without" : "by"} (${labels.join(separator)})`;
}

function printBinary(expr: BinaryExpr, left: string, right: string): string {
  const blank = expr.matching !== undefined && expr.matching.group === undefined ? " " : "";
  return `(${left} ${printOperator(expr, right, ",")}${blank} ${right})`;
}

/** An operator with its modifiers: `/ on (a) group_left (b)`; the text of its right side decides about brackets. */
export function printOperator(expr: BinaryExpr, right: string, separator: string): string {
  const { op, bool, matching } = expr;
  const head = bool ? `${op} bool` : op;
  if (matching === undefined) return head;
  const { on, labels, group } = matching;
  const match = `${head} ${on ? "on" : "ignoring"} (${labels.join(separator)})`;
  if (group === undefined) return match;
  // A parenthesis behind a bare group_left would be read as its labels.
  const isBare = group.include.length === 0 && !right.trimStart().startsWith("(");
  return `${match} group_${group.side}${isBare ? "" : ` (${group.include.join(separator)})`}`;
}

export function printReplaceArguments(expr: LabelReplace): string[] {
  return [expr.destination, expr.replacement, expr.source, expr.regex].map(quote);
}
