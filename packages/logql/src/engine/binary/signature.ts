import { formatLabels, type Labels } from "@skald/model";
import type { Budget } from "../../plan/budget.js";
import type { VectorMatching } from "../../syntax/ast.js";
import { makeGrouper } from "../aggregate/group.js";

/** The labels that `on` and `ignoring` leave of a label set. */
export function matchedLabels({ on, labels }: VectorMatching): (all: Labels) => Labels {
  return makeGrouper({ without: !on, labels });
}

/** The labels that decide which samples of two vectors belong together, as a text. */
export function signatures(
  matching: VectorMatching | undefined,
  budget: Budget,
): (labels: Labels) => string {
  const pick = matching === undefined ? (all: Labels) => all : matchedLabels(matching);
  return (labels) => {
    budget.work(1 + labels.names.length);
    return formatLabels(pick(labels));
  };
}
