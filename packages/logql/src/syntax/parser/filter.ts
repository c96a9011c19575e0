import type { Matcher } from "@skald/model";
import type { CompareOp, LabelFilter } from "../ast.js";
import { regexError } from "../check.js";
import type { Token } from "../token.js";
import { type Cursor, filterLevelsMax } from "./cursor.js";

type Joint = "and" | "or" | "comma";

/**
 * Parses `a="b" and c>5 or d=ip("..")`. `and` binds tighter than `or`, both to the left; behind a comma, or where two
 * filters merely follow each other, everything to the right belongs together. An explicit stack keeps long chains
 * off the call stack.
 */
export function parseLabelFilter(cursor: Cursor): LabelFilter {
  const operands: LabelFilter[] = [parsePrimary(cursor)];
  const joints: Joint[] = [];
  for (;;) {
    const joint = jointAt(cursor);
    if (joint === undefined) break;
    while (joints.length > 0 && bindsBefore(joints[joints.length - 1] as Joint, joint)) {
      reduce(operands, joints);
    }
    joints.push(joint);
    operands.push(parsePrimary(cursor));
  }
  while (joints.length > 0) reduce(operands, joints);
  return operands[0] as LabelFilter;
}

/** Steps over `and`, `or` or a comma; two filters that merely follow each other are joined as by a comma. */
function jointAt(cursor: Cursor): Joint | undefined {
  const type = cursor.peek();
  if (type === "and" || type === "or") {
    cursor.advance();
    return type;
  }
  if (type === ",") {
    cursor.advance();
    return "comma";
  }
  return type === "IDENTIFIER" || type === "(" ? "comma" : undefined;
}

/** Whether a joint waiting on the stack takes its right side before the next one does. */
function bindsBefore(waiting: Joint, next: Joint): boolean {
  if (waiting === "comma" || next === "comma") return false;
  return waiting === "and" || next === "or";
}

function reduce(operands: LabelFilter[], joints: Joint[]): void {
  const right = operands.pop() as LabelFilter;
  const left = operands.pop() as LabelFilter;
  operands.push({ kind: joints.pop() === "or" ? "or" : "and", left, right });
}

function parsePrimary(cursor: Cursor): LabelFilter {
  if (cursor.peek() === "(") {
    cursor.enter(filterLevelsMax);
    cursor.advance();
    const inner = parseLabelFilter(cursor);
    cursor.close();
    cursor.leave();
    return inner;
  }
  const name = cursor.expectText("IDENTIFIER");
  const operator = cursor.token;
  switch (operator.type) {
    case "=~":
    case "!~":
      return { kind: "string", matcher: parseMatcherValue(cursor, name) };
    case "=":
    case "!=":
      if (cursor.peekNext() === "STRING") {
        return { kind: "string", matcher: parseMatcherValue(cursor, name) };
      }
      cursor.advance();
      if (cursor.peek() !== "ip") return parseComparison(cursor, name, operator);
      return {
        kind: "ip",
        name,
        op: operator.type === "=" ? "==" : "!=",
        value: parseIpCall(cursor),
      };
    case "==":
    case ">":
    case ">=":
    case "<":
    case "<=":
      cursor.advance();
      return parseComparison(cursor, name, operator);
    default:
      throw cursor.unexpected();
  }
}

function parseComparison(cursor: Cursor, name: string, operator: Token): LabelFilter {
  const op = (operator.type === "=" ? "==" : operator.type) as CompareOp;
  const token = cursor.token;
  switch (token.type) {
    case "DURATION":
      cursor.advance();
      return { kind: "duration", name, op, value: token.value as bigint };
    case "BYTES":
      cursor.advance();
      return { kind: "bytes", name, op, value: token.value as number };
    case "NUMBER":
      return { kind: "number", name, op, value: cursor.expectNumber() };
    case "+":
    case "-":
      return { kind: "number", name, op, value: parseSignedNumber(cursor) };
    default:
      throw cursor.unexpected();
  }
}

/** Parses a NUMBER with the sign that stands before it. */
export function parseSignedNumber(cursor: Cursor): number {
  const sign = cursor.advance();
  const value = cursor.expectNumber();
  return sign.type === "-" ? -value : value;
}

/** Parses the operator and the string of a matcher whose name has been read; the regex is checked here. */
export function parseMatcherValue(cursor: Cursor, name: string): Matcher {
  const op = cursor.peek();
  if (op !== "=" && op !== "=~" && op !== "!~" && op !== "!=") {
    throw cursor.unexpected("=", "=~", "!~", "!=");
  }
  cursor.advance();
  const token = cursor.token;
  const value = cursor.expectText("STRING");
  if (op === "=~" || op === "!~") {
    cursor.countRegex(value, token);
    const error = regexError(value);
    if (error !== undefined) throw cursor.invalid(error, token);
  }
  return { name, op, value };
}

/** Parses `ip("...")` and gives the text of it. */
export function parseIpCall(cursor: Cursor): string {
  cursor.expect("ip");
  cursor.expect("(");
  const value = cursor.expectText("STRING");
  cursor.expect(")");
  return value;
}
