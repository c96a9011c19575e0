import { compileRegex, type Labels, labelValue, makeLabels } from "@skald/model";
import { groupReference, groupText } from "../go/group-text.js";
import type { Budget } from "../plan/budget.js";
import type { LabelReplaceNode } from "../plan/plan.js";
import type { SeriesMatrix } from "../plan/result.js";

/**
 * label_replace: sets a label of every series whose source label the regular expression matches as a whole. Series may
 * become equal: an aggregation above merges them.
 */
export function replaceLabels(
  node: LabelReplaceNode,
  input: SeriesMatrix,
  budget: Budget,
): SeriesMatrix {
  const replace = compileLabelReplace(node, budget);
  const labels = input.labels.map((all) => {
    const replaced = replace(all);
    budget.holdSeries(replaced, input.pointCount);
    return replaced;
  });
  return { ...input, labels };
}

function compileLabelReplace(node: LabelReplaceNode, budget: Budget): (labels: Labels) => Labels {
  const regex = compileRegex(node.regex, { anchored: true });
  const names = ["", ...regex.groupNames];
  const parts = parseTemplate(node.replacement);
  const { destination, source } = node;
  return (labels) => {
    const text = labelValue(labels, source);
    budget.work(text.length);
    const match = regex.exec(text);
    if (match === undefined) return labels;
    const groups = [text, ...match.groups];
    const value = parts.map((part) =>
      part.kind === "text" ? part.text : groupText(part.name, groups, names),
    );
    // Before the text is built: each of several nested calls may double the last one's.
    const length = value.reduce((sum, part) => sum + part.length, 0);
    budget.work(length);
    budget.hold(length);
    budget.release(length);
    const pairs = labels.names.map((name, i) => [name, labels.values[i] as string] as const);
    return makeLabels([...pairs, [destination, value.join("")]]);
  };
}

type TemplatePart =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "group"; readonly name: string };

/** Splits `$1`, `$name`, `${name}` and `$$` from the text around them; a lone `$` stands for itself. */
function parseTemplate(template: string): TemplatePart[] {
  const parts: TemplatePart[] = [];
  let from = 0;
  for (const match of template.matchAll(groupReference)) {
    if (match.index > from) parts.push({ kind: "text", text: template.slice(from, match.index) });
    const name = match[1] ?? match[2];
    parts.push(name === undefined ? { kind: "text", text: "$" } : { kind: "group", name });
    from = match.index + match[0].length;
  }
  if (from < template.length) parts.push({ kind: "text", text: template.slice(from) });
  return parts;
}
