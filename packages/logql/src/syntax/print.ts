import { formatGoDuration, formatPrometheusDuration, quote, unreachable } from "@skald/model";
import type {
  BinaryExpr,
  Expr,
  Grouping,
  LabelReplace,
  LogExpr,
  RangeAggregation,
  Stage,
  VectorAggregation,
} from "./ast.js";
import { precedence } from "./operator.js";
import {
  formatPlain,
  formatShortest,
  formatSixDecimals,
  printSelector,
  printUnwrap,
} from "./print-filter.js";
import { printStage } from "./stages.js";

/**
 * Prints a query on one line; parsing the text gives the same tree. One tree has no text and must not be built: a
 * drop or keep that ends in a bare name, then a line filter `!=` or `!~`, which reads as a matcher of that name.
 */
export function printQuery(expr: Expr): string {
  return printWith(expr, printQuery);
}

/** Prints a node, given a way to print the expressions inside it. */
function printWith(expr: Expr, printInner: (inner: Expr) => string): string {
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

function printLog({ matchers, stages }: LogExpr): string {
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
function printGrouping({ without, labels }: Grouping, separator: string): string {
  return `${without ? "without" : "by"} (${labels.join(separator)})`;
}

function printBinary(expr: BinaryExpr, left: string, right: string): string {
  const blank = expr.matching !== undefined && expr.matching.group === undefined ? " " : "";
  return `(${left} ${printOperator(expr, right, ",")}${blank} ${right})`;
}

/** An operator with its modifiers: `/ on (a) group_left (b)`; the text of its right side decides about brackets. */
function printOperator(expr: BinaryExpr, right: string, separator: string): string {
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

function printReplaceArguments(expr: LabelReplace): string[] {
  return [expr.destination, expr.replacement, expr.source, expr.regex].map(quote);
}

/** Longest node, in bytes, that stays on one line. */
const lineBytesMax = 100;

/** Formats a query for people: each node on one line if it is short enough, else split over indented lines. */
export function formatQuery(expr: Expr): string {
  return new Formatter().format(expr, 0);
}

/** Remembers the one-line text of each node, because every node above it asks for it again. */
class Formatter {
  readonly #compact = new Map<Expr, string>();

  /** The lines of a node, each indented by this level at least. */
  format(expr: Expr, level: number): string {
    const compact = this.#print(expr);
    if (fitsLine(compact)) return indent(level) + compact;
    switch (expr.kind) {
      case "log":
        return formatLog(expr, level);
      case "range_aggregation":
        return formatRangeAggregation(expr, level);
      case "vector_aggregation":
        return this.#vectorAggregation(expr, level);
      case "label_replace":
        return this.#labelReplace(expr, level);
      case "binary":
        return this.#binary(expr, level);
      case "literal":
      case "vector":
        return indent(level) + compact;
      default:
        return unreachable(expr);
    }
  }

  #print(expr: Expr): string {
    const known = this.#compact.get(expr);
    if (known !== undefined) return known;
    const text = printWith(expr, (inner) => this.#print(inner));
    this.#compact.set(expr, text);
    return text;
  }

  #vectorAggregation(expr: VectorAggregation, level: number): string {
    const { op, parameter, grouping, inner } = expr;
    const groups = grouping === undefined ? "" : ` ${printGrouping(grouping, ", ")}`;
    const first = parameter === undefined ? "" : `${indent(level + 1)}${formatPlain(parameter)},\n`;
    const body = this.format(inner, level + 1);
    return `${indent(level)}${op}${groups}(\n${first}${body}\n${indent(level)})`;
  }

  #labelReplace(expr: LabelReplace, level: number): string {
    const start = `${indent(level)}label_replace(\n${this.format(expr.inner, level + 1)}`;
    const rest = printReplaceArguments(expr).map((text) => `,\n${indent(level + 1)}${text}`);
    return `${start}${rest.join("")}\n${indent(level)})`;
  }

  #binary(expr: BinaryExpr, level: number): string {
    const left = this.#side(expr, expr.left, level + 1);
    const right = this.#side(expr, expr.right, level + 1);
    return `${left}\n${indent(level)}${printOperator(expr, right, ", ")}\n${right}`;
  }

  /** A side of an operator; a split operator inside it gets parentheses where the text would else read differently. */
  #side(parent: BinaryExpr, side: Expr, level: number): string {
    const isSplit = side.kind === "binary" && !fitsLine(this.#print(side));
    if (!isSplit || !needsParentheses(parent, side)) return this.format(side, level);
    return `${indent(level)}(\n${this.format(side, level + 1)}\n${indent(level)})`;
  }
}

function needsParentheses(parent: BinaryExpr, side: BinaryExpr): boolean {
  const outer = precedence[parent.op];
  const inner = precedence[side.op];
  if (inner !== outer) return inner < outer;
  const grows = parent.op === "^" ? parent.right : parent.left;
  return side !== grows;
}

function formatLog(expr: LogExpr, level: number): string {
  const compact = printLog(expr);
  if (fitsLine(compact)) return indent(level) + compact;
  const stages = joinLineFilters(expr.stages).map((text) => `\n${indent(level + 1)}${text}`);
  return indent(level) + printSelector(expr.matchers) + stages.join("");
}

/** Line filters in a row share a line as long as it is short enough. */
function joinLineFilters(stages: readonly Stage[]): string[] {
  const lines: string[] = [];
  let run: string[] = [];
  const endRun = () => {
    const joined = run.join(" ");
    lines.push(...(run.length > 0 && fitsLine(joined) ? [joined] : run));
    run = [];
  };
  for (const stage of stages) {
    if (stage.kind !== "line_filter") endRun();
    (stage.kind === "line_filter" ? run : lines).push(printStage(stage));
  }
  endRun();
  return lines;
}

function formatRangeAggregation(expr: RangeAggregation, level: number): string {
  const { op, parameter, log, unwrap, rangeNs, offsetNs, grouping } = expr;
  const first =
    parameter === undefined ? "" : `${indent(level + 1)}${formatShortest(parameter)},\n`;
  const unwraps = (unwrap === undefined ? [] : printUnwrap(unwrap)).map(
    (text) => `\n${indent(level + 2)}${text}`,
  );
  const range = ` [${formatPrometheusDuration(rangeNs)}]${formatOffset(offsetNs)}`;
  const groups = grouping === undefined ? "" : ` ${printGrouping(grouping, ", ")}`;
  const body = formatLog(log, level + 1) + unwraps.join("") + range;
  return `${indent(level)}${op}(\n${first}${body}\n${indent(level)})${groups}`;
}

/** The short form knows no unit below the millisecond. */
function formatOffset(offsetNs: bigint): string {
  if (offsetNs === 0n) return "";
  const exact = offsetNs % 1_000_000n === 0n;
  return ` offset ${exact ? formatPrometheusDuration(offsetNs) : formatGoDuration(offsetNs)}`;
}

function fitsLine(text: string): boolean {
  if (text.length > lineBytesMax) return false;
  return text.length * 3 <= lineBytesMax || new TextEncoder().encode(text).length <= lineBytesMax;
}

function indent(level: number): string {
  return "  ".repeat(level);
}
