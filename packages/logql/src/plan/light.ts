import type { Expr } from "../syntax/ast.js";
import type { PlanNode } from "./plan.js";

/** Nodes of an expression that is evaluated in next to no time. */
const maxLightNodes = 3;

/** True for what takes next to no time once the scans are done: few aggregations, no work on labels, no joins. */
export function isLight(root: Expr | PlanNode): boolean {
  let node = root;
  for (let nodes = 1; nodes <= maxLightNodes; nodes++) {
    if (node.kind !== "vector_aggregation") return lightKinds.includes(node.kind);
    node = node.inner;
  }
  return false;
}

const lightKinds: readonly string[] = ["log", "range_aggregation", "leaf", "literal", "vector"];
