import {
  compileRegex,
  formatLabels,
  invalidArgument,
  type Labels,
  labelValue,
  makeLabels,
} from "@skald/model";
import type { LabelReplaceNode } from "../plan/plan.js";
import type { SeriesMatrix } from "../plan/result.js";
import { joinEqualSeries } from "./join.js";

/**
 * label_replace: sets a label of every series whose source label the regular expression matches as a whole. Throws
 * invalid_argument when two series with samples at the same point would become one.
 */
export function replaceLabels(node: LabelReplaceNode, input: SeriesMatrix): SeriesMatrix {
  const replace = compileLabelReplace(node);
  return joinEqualSeries({ ...input, labels: input.labels.map(replace) }, (labels) =>
    invalidArgument(
      `label_replace gives duplicate series ${formatLabels(labels)}; keep the replaced label sets distinct or aggregate first`,
    ),
  );
}

function compileLabelReplace(node: LabelReplaceNode): (labels: Labels) => Labels {
  const regex = compileRegex(node.regex, { anchored: true });
  const names = ["", ...regex.groupNames];
  const parts = parseTemplate(node.replacement);
  const { destination, source } = node;
  return (labels) => {
    const text = labelValue(labels, source);
    const match = regex.exec(text);
    if (match === undefined) return labels;
    const groups = [text, ...match.groups];
    const value = parts.map((part) =>
      part.kind === "text" ? part.text : groupText(part.name, groups, names),
    );
    const pairs = labels.names.map((name, i) => [name, labels.values[i] as string] as const);
    return makeLabels([...pairs, [destination, value.join("")]]);
  };
}

/** The text of a group by number (0 is the whole match) or by name; empty when there is none. */
function groupText(
  name: string,
  groups: readonly (string | undefined)[],
  names: readonly string[],
): string {
  if (/^\d+$/.test(name)) return groups[Number(name)] ?? "";
  return groups.find((text, i) => names[i] === name && text !== undefined) ?? "";
}

type TemplatePart =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "group"; readonly name: string };

/** Splits `$1`, `$name`, `${name}` and `$$` from the text around them; a lone `$` stands for itself. */
function parseTemplate(template: string): TemplatePart[] {
  const parts: TemplatePart[] = [];
  let from = 0;
  for (const match of template.matchAll(/\$(?:\$|(\w+)|\{(\w+)\})/g)) {
    if (match.index > from) parts.push({ kind: "text", text: template.slice(from, match.index) });
    const name = match[1] ?? match[2];
    parts.push(name === undefined ? { kind: "text", text: "$" } : { kind: "group", name });
    from = match.index + match[0].length;
  }
  if (from < template.length) parts.push({ kind: "text", text: template.slice(from) });
  return parts;
}
