import {
  compileRegex,
  formatLabels,
  invalidArgument,
  type Labels,
  labelValue,
  makeLabels,
} from "@skald/model";
import { RE2JS } from "re2js";
import type { LabelReplaceNode } from "./plan.js";
import type { SeriesMatrix } from "./result.js";

/**
 * label_replace: sets a label of every series whose source label the regular expression matches as a whole. Throws
 * invalid_argument when two series with samples at the same point would become one.
 */
export function replaceLabels(node: LabelReplaceNode, input: SeriesMatrix): SeriesMatrix {
  const replace = compileLabelReplace(node);
  return mergeEqualSeries({ ...input, labels: input.labels.map(replace) });
}

export function compileLabelReplace(node: LabelReplaceNode): (labels: Labels) => Labels {
  compileRegex(node.regex, { anchored: true });
  const regex = RE2JS.compile(`^(?s:${node.regex})$`);
  const parts = parseTemplate(node.replacement);
  const { destination, source } = node;
  return (labels) => {
    const matcher = regex.matcher(labelValue(labels, source));
    if (!matcher.find()) return labels;
    const names = regex.namedGroups();
    const groups = matcher.groupCount();
    const value = parts.map((part) => {
      if (part.kind === "text") return part.text;
      const group = /^\d+$/.test(part.name) ? Number(part.name) : names[part.name];
      return group === undefined || group > groups ? "" : (matcher.group(group) ?? "");
    });
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
  for (const match of template.matchAll(/\$(?:\$|(\w+)|\{(\w+)\})/g)) {
    if (match.index > from) parts.push({ kind: "text", text: template.slice(from, match.index) });
    const name = match[1] ?? match[2];
    parts.push(name === undefined ? { kind: "text", text: "$" } : { kind: "group", name });
    from = match.index + match[0].length;
  }
  if (from < template.length) parts.push({ kind: "text", text: template.slice(from) });
  return parts;
}

/** Joins series that have become equal and never have samples together. */
function mergeEqualSeries(input: SeriesMatrix): SeriesMatrix {
  const rowOf = new Map<string, number>();
  const labels: Labels[] = [];
  const values: Float64Array[] = [];
  const present: Uint8Array[] = [];
  input.labels.forEach((set, s) => {
    const text = formatLabels(set);
    const row = rowOf.get(text);
    if (row === undefined) {
      rowOf.set(text, labels.push(set) - 1);
      values.push((input.values[s] as Float64Array).slice());
      present.push((input.present[s] as Uint8Array).slice());
      return;
    }
    for (let p = 0; p < input.pointCount; p++) {
      if (input.present[s]![p] === 0) continue;
      if (present[row]![p] === 1) {
        throw invalidArgument(
          `label_replace gives duplicate series ${text}; keep the replaced label sets distinct or aggregate first`,
        );
      }
      values[row]![p] = input.values[s]![p] as number;
      present[row]![p] = 1;
    }
  });
  return { pointCount: input.pointCount, labels, values, present };
}
