import type { MetricExpr, VectorAggregation, VectorOp } from "../ast.js";
import { vectorAggregationError } from "../check.js";
import type { Cursor } from "./cursor.js";
import { isGrouping, parseGrouping } from "./range.js";

/** Parses `sum by (a) (..)`, `topk(5, ..) by (a)`; the grouping stands on one side only. */
export function parseVectorAggregation(
  cursor: Cursor,
  op: VectorOp,
  parseInner: (cursor: Cursor) => MetricExpr,
): VectorAggregation {
  const token = cursor.advance();
  const before = isGrouping(cursor) ? parseGrouping(cursor) : undefined;
  cursor.enter();
  cursor.expect("(");
  const hasParameter = cursor.peek() === "NUMBER" && cursor.peekNext() === ",";
  const parameterText = hasParameter ? cursor.textOf(cursor.token) : undefined;
  const parameter = hasParameter ? cursor.expectNumber() : undefined;
  if (hasParameter) cursor.expect(",");
  const inner = parseInner(cursor);
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
