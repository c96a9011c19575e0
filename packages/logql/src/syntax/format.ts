import { formatGoDuration, formatPrometheusDuration, unreachable } from "@skald/model";
import type {
  BinaryExpr,
  Expr,
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
  printGrouping,
  printLog,
  printOperator,
  printReplaceArguments,
  printSelector,
  printStage,
  printUnwrap,
  printWith,
} from "./print.js";

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
