import type { Grouping, LabelFilter, LogExpr, RangeAggregation, RangeOp, Unwrap } from "../ast.js";
import { rangeAggregationError } from "../check.js";
import type { Cursor } from "./cursor.js";
import { parseLabelFilter } from "./filter.js";
import { parseMatchers, parseStages } from "./stage.js";

/** Parses `rate({..} | .. [5m] offset 1h) by (x)`. */
export function parseRangeAggregation(cursor: Cursor, op: RangeOp): RangeAggregation {
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

/** A log range of which the `[5m]` may still have to come, behind a closing parenthesis. */
interface PartialRange {
  readonly log: LogExpr;
  readonly unwrap: Unwrap | undefined;
  readonly rangeNs: bigint | undefined;
  readonly offsetNs: bigint;
}

function parseLogRange(cursor: Cursor): PartialRange & { readonly rangeNs: bigint } {
  const range = parsePartialRange(cursor);
  const { rangeNs } = range;
  if (rangeNs === undefined) throw missingRange(cursor, range);
  return { ...range, rangeNs };
}

function missingRange(cursor: Cursor, range: PartialRange): Error {
  return range.unwrap === undefined ? cursor.unexpected() : cursor.unexpected("RANGE", "|");
}

/** The range stands behind the pipeline, before it, or behind the parentheses around all of it. */
function parsePartialRange(cursor: Cursor): PartialRange {
  if (cursor.peek() === "(") return parseParenthesised(cursor);
  if (cursor.peek() !== "{") throw cursor.unexpected("NUMBER", "{", "(");
  const matchers = parseMatchers(cursor);
  const early = parseRange(cursor);
  const stages = parseStages(cursor);
  const unwrap = parseUnwrap(cursor);
  const { rangeNs, offsetNs } = early.rangeNs === undefined ? parseRange(cursor) : early;
  return { log: { kind: "log", matchers, stages }, unwrap, rangeNs, offsetNs };
}

function parseParenthesised(cursor: Cursor): PartialRange {
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

export function isGrouping(cursor: Cursor): boolean {
  return cursor.peek() === "by" || cursor.peek() === "without";
}

/** Parses `by (a, b)` or `without (a)`. */
export function parseGrouping(cursor: Cursor): Grouping {
  const without = cursor.advance().type === "without";
  return { without, labels: parseNames(cursor) };
}

/** Parses `(a, b)` or `()`. */
export function parseNames(cursor: Cursor): string[] {
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
