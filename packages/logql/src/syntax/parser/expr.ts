import {
  type BinaryOp,
  type Expr,
  type LabelReplace,
  type MetricExpr,
  precedence,
  type VectorAggregation,
  type VectorMatching,
  type VectorOp,
} from "../ast.js";
import { calculateLiterals } from "../calculate.js";
import { labelReplaceError, vectorAggregationError } from "../check.js";
import { isRangeOp, isVectorOp, type Token } from "../token.js";
import type { Cursor } from "./cursor.js";
import { parseSignedNumber } from "./filter.js";
import { isGrouping, parseGrouping, parseNames, parseRangeAggregation } from "./range.js";
import { parseLogExpr } from "./stage.js";

/** An operator waiting for its right side. */
interface Pending {
  readonly op: BinaryOp;
  readonly token: Token;
  readonly bool: boolean;
  readonly matching: VectorMatching | undefined;
}

/** Parses operands joined by binary operators; an explicit stack keeps long chains off the call stack. */
export function parseExpr(cursor: Cursor): Expr {
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
  cursor.expect("vector");
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
  const error = labelReplaceError(regex);
  if (error !== undefined) throw cursor.invalid(error, token);
  return { kind: "label_replace", inner, destination, replacement, source, regex };
}
