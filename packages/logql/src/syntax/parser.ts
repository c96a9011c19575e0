import { invalidArgument, type Matcher } from "@skald/model";
import type {
  Expr,
  Grouping,
  LabelFilter,
  LabelReplace,
  LogExpr,
  MetricExpr,
  RangeAggregation,
  RangeOp,
  Unwrap,
  VectorAggregation,
  VectorMatching,
  VectorOp,
} from "./ast.js";
import {
  emptyCompatibleReason,
  isEmptyCompatible,
  isWithinHeight,
  rangeAggregationError,
  regexError,
  vectorAggregationError,
} from "./check.js";
import { Cursor, expressionLevelsMax, filterLevelsMax, tooDeep } from "./cursor.js";
import { parseError } from "./errors.js";
import type { BinaryOp } from "./operator.js";
import { calculateLiterals, precedence } from "./operator.js";
import {
  parseLabelFilter,
  parseLogExpr,
  parseMatchers,
  parseSignedNumber,
  parseStages,
} from "./stages.js";
import { isRangeOp, isVectorOp, type Token } from "./token.js";

/** Longest query that is read, in bytes of UTF-8. */
export const queryBytesMax = 131_072;

/** Parses and checks a query. Throws invalid_argument with a ParseErrorDetail. */
export function parseQuery(text: string): Expr {
  return parse(text, isEmptyCompatible);
}

export interface ParseSelectorOptions {
  /**
   * Which selectors pass although they match a stream without labels: `none`, the `bare` selector `{}`, or `all`.
   * `none` if not given.
   */
  readonly emptyCompatible?: "none" | "bare" | "all";
}

/** Parses a selector without stages, such as `match[]`. Throws invalid_argument. */
export function parseSelector(text: string, options: ParseSelectorOptions = {}): Matcher[] {
  const { emptyCompatible = "none" } = options;
  const expr = parse(text, (matchers) => {
    if (emptyCompatible === "all" || (emptyCompatible === "bare" && matchers.length === 0)) {
      return false;
    }
    return isEmptyCompatible(matchers);
  });
  if (expr.kind === "log" && expr.stages.length === 0) return [...expr.matchers];
  throw invalidArgument("only label matchers are supported");
}

function parse(text: string, isRefused: (matchers: readonly Matcher[]) => boolean): Expr {
  checkText(text);
  const cursor = new Cursor(text);
  const expr = parseExpr(cursor);
  if (cursor.peek() !== "$end") throw cursor.unexpected();
  for (const { matchers, token } of cursor.selectors) {
    if (isRefused(matchers)) throw cursor.invalid(emptyCompatibleReason, token);
  }
  // A tree is at most as high as there are characters.
  const levels = { expression: expressionLevelsMax, filter: filterLevelsMax };
  if (text.length > levels.expression && !isWithinHeight(expr, levels)) {
    throw tooDeep(text, cursor.token);
  }
  return expr;
}

const loneSurrogate = /\p{Cs}/u;

function checkText(text: string): void {
  const place = { source: "", position: { offset: 0, line: 1, column: 1 }, shown: "none" } as const;
  const bytes = utf8Length(text, queryBytesMax);
  if (bytes > queryBytesMax) {
    throw parseError(`input size too long (${bytes} > ${queryBytesMax})`, place);
  }
  if (loneSurrogate.test(text)) throw parseError("invalid UTF-8 encoding", place);
}

/**
 * Bytes of a text in UTF-8; not counted where it is short enough in any case. The second half of a surrogate pair
 * counts one and the first three.
 */
function utf8Length(text: string, enough: number): number {
  if (text.length * 3 <= enough) return text.length;
  let bytes = 0;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code < 0x80 || (code >= 0xdc00 && code < 0xe000)) bytes += 1;
    else bytes += code < 0x800 ? 2 : 3;
  }
  return bytes;
}

/** An operator waiting for its right side. */
interface Pending {
  readonly op: BinaryOp;
  readonly token: Token;
  readonly bool: boolean;
  readonly matching: VectorMatching | undefined;
}

/** Parses operands joined by binary operators; an explicit stack keeps long chains off the call stack. */
function parseExpr(cursor: Cursor): Expr {
  const operands: Expr[] = [parseOperand(cursor)];
  const pending: Pending[] = [];
  while (Object.hasOwn(precedence, cursor.peek())) {
    const token = cursor.token;
    const op = cursor.peek() as BinaryOp;
    while (pending.length > 0 && bindsBefore((pending[pending.length - 1] as Pending).op, op)) {
      reduce(cursor, operands, pending);
    }
    cursor.advance();
    const bool = cursor.skip("bool");
    pending.push({ op, token, bool, matching: parseMatching(cursor) });
    operands.push(parseOperand(cursor));
  }
  while (pending.length > 0) reduce(cursor, operands, pending);
  return operands[0] as Expr;
}

function bindsBefore(waiting: BinaryOp, next: BinaryOp): boolean {
  return (
    precedence[waiting] > precedence[next] ||
    (precedence[waiting] === precedence[next] && next !== "^")
  );
}

function reduce(cursor: Cursor, operands: Expr[], pending: Pending[]): void {
  const right = operands.pop() as Expr;
  const left = operands.pop() as Expr;
  operands.push(makeBinary(cursor, pending.pop() as Pending, left, right));
}

function makeBinary(cursor: Cursor, pending: Pending, left: Expr, right: Expr): MetricExpr {
  const { op, token, bool, matching } = pending;
  for (const [side, leg] of [
    ["left", left],
    ["right", right],
  ] as const) {
    const problem = legProblem(op, leg);
    if (problem !== undefined) {
      const [what, kind, shown] = problem;
      throw cursor.invalid(
        `unexpected ${what} for ${side} leg of ${kind} (${op}): ${shown}`,
        token,
      );
    }
  }
  if (left.kind === "literal" && right.kind === "literal") {
    return { kind: "literal", value: calculateLiterals(op, left.value, right.value) };
  }
  return {
    kind: "binary",
    op,
    left: left as MetricExpr,
    right: right as MetricExpr,
    bool,
    ...(matching !== undefined && { matching }),
  };
}

/** Why an expression cannot be a side of an operator, in the parts of the message. */
function legProblem(op: BinaryOp, leg: Expr): readonly [string, string, string] | undefined {
  if (leg.kind === "log") {
    const type = leg.stages.length === 0 ? "*syntax.MatchersExpr" : "*syntax.PipelineExpr";
    return ["type", "binary operation", type];
  }
  if (leg.kind !== "literal" || precedence[op] > 2) return undefined;
  return ["literal", "logical/set binary operation", leg.value.toFixed(6)];
}

/** Parses `on (..) group_left (..)` behind an operator. */
function parseMatching(cursor: Cursor): VectorMatching | undefined {
  if (cursor.peek() !== "on" && cursor.peek() !== "ignoring") return undefined;
  const on = cursor.advance().type === "on";
  const labels = parseNames(cursor);
  if (cursor.peek() !== "group_left" && cursor.peek() !== "group_right") return { on, labels };
  const side = cursor.advance().type === "group_left" ? "left" : "right";
  const include = cursor.peek() === "(" ? parseNames(cursor) : [];
  return { on, labels, group: { side, include } };
}

function parseOperand(cursor: Cursor): Expr {
  const type = cursor.peek();
  switch (type) {
    case "{":
      return parseLogExpr(cursor);
    case "(":
      return parseParenthesised(cursor);
    case "NUMBER":
      return { kind: "literal", value: cursor.expectNumber() };
    case "+":
    case "-":
      return { kind: "literal", value: parseSignedNumber(cursor) };
    case "vector":
      return parseVector(cursor);
    case "label_replace":
      return parseLabelReplace(cursor);
    default:
      if (isRangeOp(type)) return parseRangeAggregation(cursor, type);
      if (isVectorOp(type)) return parseVectorAggregation(cursor, type);
      throw cursor.unexpected();
  }
}

function parseParenthesised(cursor: Cursor): Expr {
  cursor.enter();
  cursor.expect("(");
  const inner = parseExpr(cursor);
  cursor.close();
  cursor.leave();
  return inner;
}

/** Parses an expression that must be a metric; a log query is found out by the token behind it. */
function parseMetric(cursor: Cursor): MetricExpr {
  const expr = parseExpr(cursor);
  if (expr.kind === "log") throw cursor.unexpected();
  return expr;
}

/** Parses `sum by (a) (..)`, `topk(5, ..) by (a)`; the grouping stands on one side only. */
function parseVectorAggregation(cursor: Cursor, op: VectorOp): VectorAggregation {
  const token = cursor.advance();
  const before = isGrouping(cursor) ? parseGrouping(cursor) : undefined;
  cursor.enter();
  cursor.expect("(");
  const hasParameter = cursor.peek() === "NUMBER" && cursor.peekNext() === ",";
  const parameterText = hasParameter ? cursor.textOf(cursor.token) : undefined;
  const parameter = hasParameter ? cursor.expectNumber() : undefined;
  if (hasParameter) cursor.expect(",");
  const inner = parseMetric(cursor);
  cursor.close();
  cursor.leave();
  const grouping = before ?? (isGrouping(cursor) ? parseGrouping(cursor) : undefined);
  const error = vectorAggregationError(op, {
    parameter,
    parameterText,
    grouped: grouping !== undefined,
  });
  if (error !== undefined) throw cursor.invalid(error, token);
  // `by ()` groups everything into one series, as no grouping does.
  const meaningful = grouping !== undefined && (grouping.without || grouping.labels.length > 0);
  return {
    kind: "vector_aggregation",
    op,
    ...(parameter !== undefined && { parameter }),
    ...(meaningful && { grouping }),
    inner,
  };
}

function parseVector(cursor: Cursor): MetricExpr {
  cursor.advance();
  cursor.expect("(");
  const value = cursor.expectNumber();
  cursor.expect(")");
  return { kind: "vector", value };
}

function parseLabelReplace(cursor: Cursor): LabelReplace {
  cursor.enter();
  const token = cursor.expect("label_replace");
  cursor.expect("(");
  const inner = parseMetric(cursor);
  if (cursor.peek() !== ",") throw cursor.unexpected();
  const [destination = "", replacement = "", source = "", regex = ""] = [0, 1, 2, 3].map(() => {
    cursor.expect(",");
    return cursor.expectText("STRING");
  });
  cursor.expect(")");
  cursor.leave();
  cursor.countRegex(regex, token);
  const error = regexError(regex);
  if (error !== undefined) throw cursor.invalid(`invalid regex in label_replace: ${error}`, token);
  return { kind: "label_replace", inner, destination, replacement, source, regex };
}

/** Parses `rate({..} | .. [5m] offset 1h) by (x)`. */
function parseRangeAggregation(cursor: Cursor, op: RangeOp): RangeAggregation {
  const token = cursor.advance();
  cursor.enter();
  cursor.expect("(");
  const parameterText = cursor.peek() === "NUMBER" ? cursor.textOf(cursor.token) : undefined;
  const parameter = parameterText === undefined ? undefined : cursor.expectNumber();
  if (parameter !== undefined) cursor.expect(",");
  const { log, unwrap, rangeNs, offsetNs } = parseLogRange(cursor);
  cursor.expect(")");
  cursor.leave();
  const grouping = isGrouping(cursor) ? parseGrouping(cursor) : undefined;
  const error = rangeAggregationError(op, {
    parameter: parameterText,
    unwrapped: unwrap !== undefined,
    grouped: grouping !== undefined,
  });
  if (error !== undefined) throw cursor.invalid(error, token);
  return {
    kind: "range_aggregation",
    op,
    ...(parameter !== undefined && { parameter }),
    log,
    ...(unwrap !== undefined && { unwrap }),
    rangeNs,
    offsetNs,
    ...(grouping !== undefined && { grouping }),
  };
}

/** A log range whose `[5m]` may still follow, behind a closing parenthesis. */
interface PartialRange {
  readonly log: LogExpr;
  readonly unwrap: Unwrap | undefined;
  readonly rangeNs: bigint | undefined;
  readonly offsetNs: bigint;
}

function parseLogRange(cursor: Cursor): PartialRange & { readonly rangeNs: bigint } {
  const range = parsePartialRange(cursor);
  const { rangeNs, unwrap } = range;
  if (rangeNs !== undefined) return { ...range, rangeNs };
  throw unwrap === undefined ? cursor.unexpected() : cursor.unexpected("RANGE", "|");
}

/** The range stands behind the pipeline, before it, or behind the parentheses around all of it. */
function parsePartialRange(cursor: Cursor): PartialRange {
  if (cursor.peek() === "(") return parseParenthesisedRange(cursor);
  if (cursor.peek() !== "{") throw cursor.unexpected("NUMBER", "{", "(");
  const matchers = parseMatchers(cursor);
  const early = parseRange(cursor);
  const stages = parseStages(cursor);
  const unwrap = parseUnwrap(cursor);
  const { rangeNs, offsetNs } = early.rangeNs === undefined ? parseRange(cursor) : early;
  return { log: { kind: "log", matchers, stages }, unwrap, rangeNs, offsetNs };
}

function parseParenthesisedRange(cursor: Cursor): PartialRange {
  cursor.enter();
  cursor.expect("(");
  const inner = parsePartialRange(cursor);
  if (inner.rangeNs !== undefined) cursor.expect(")");
  else if (inner.unwrap !== undefined) cursor.expectOneOf(")", ["RANGE", ")", "|"]);
  else cursor.close();
  cursor.leave();
  if (inner.rangeNs !== undefined) return inner;
  const { rangeNs, offsetNs } = parseRange(cursor);
  if (rangeNs === undefined || inner.unwrap !== undefined) return { ...inner, rangeNs, offsetNs };
  return { ...inner, rangeNs, offsetNs, unwrap: parseUnwrap(cursor) };
}

function parseRange(cursor: Cursor): { rangeNs: bigint | undefined; offsetNs: bigint } {
  if (cursor.peek() !== "RANGE") return { rangeNs: undefined, offsetNs: 0n };
  const rangeNs = cursor.advance().value as bigint;
  const offsetNs = cursor.skip("offset") ? (cursor.expect("DURATION").value as bigint) : 0n;
  return { rangeNs, offsetNs };
}

function parseUnwrap(cursor: Cursor): Unwrap | undefined {
  if (cursor.peek() !== "|" || cursor.peekNext() !== "unwrap") return undefined;
  cursor.advance();
  cursor.advance();
  const conversion = cursor.peek();
  if (conversion !== "duration" && conversion !== "duration_seconds" && conversion !== "bytes") {
    const label = cursor.expectText("IDENTIFIER", "bytes", "duration", "duration_seconds");
    return { label, conversion: "none", filters: parseFilters(cursor) };
  }
  cursor.advance();
  cursor.expect("(");
  const label = cursor.expectText("IDENTIFIER");
  cursor.expect(")");
  return { label, conversion, filters: parseFilters(cursor) };
}

/** Parses the `| filter` behind an unwrap. */
function parseFilters(cursor: Cursor): LabelFilter[] {
  const filters: LabelFilter[] = [];
  while (cursor.skip("|")) filters.push(parseLabelFilter(cursor));
  return filters;
}

function isGrouping(cursor: Cursor): boolean {
  return cursor.peek() === "by" || cursor.peek() === "without";
}

/** Parses `by (a, b)` or `without (a)`. */
function parseGrouping(cursor: Cursor): Grouping {
  const without = cursor.advance().type === "without";
  return { without, labels: parseNames(cursor) };
}

/** Parses `(a, b)` or `()`. */
function parseNames(cursor: Cursor): string[] {
  cursor.expect("(");
  const names: string[] = [];
  if (cursor.skip(")")) return names;
  names.push(cursor.expectText("IDENTIFIER", ")"));
  while (!cursor.skip(")")) {
    if (!cursor.skip(",")) throw cursor.unexpected(",", ")");
    names.push(cursor.expectText("IDENTIFIER"));
  }
  return names;
}
