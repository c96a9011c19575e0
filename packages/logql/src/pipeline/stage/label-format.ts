import { invalidArgument } from "@skald/model";
import type { LabelFormat } from "../../syntax/ast.js";
import type { Template } from "../../template/template.js";
import type { GoMap } from "../../template/value/value.js";
import { errorLabel } from "../row/labels.js";
import { labelState } from "../row/row-labels.js";
import { compileLabelTemplate, runTemplate } from "./line-format.js";
import type { PreparedStage, RowStage, RowState } from "./row-state.js";
import { copyLabels, templateLabels } from "./template-labels.js";

export type CompiledLabelFormat =
  | { readonly kind: "rename"; readonly label: string; readonly source: string }
  | { readonly kind: "template"; readonly label: string; readonly template: Template };

/** Checks the targets and compiles the templates. Throws invalid_argument. */
export function compileLabelFormats(
  formats: readonly LabelFormat[],
): readonly CompiledLabelFormat[] {
  const seen = new Set<string>();
  return formats.map((format) => {
    const { label } = format;
    if (label === errorLabel) throw invalidArgument(`${errorLabel} cannot be formatted`);
    if (seen.has(label)) {
      throw invalidArgument(
        `multiple label name '${label}' not allowed in a single format operation`,
      );
    }
    seen.add(label);
    if (format.kind === "rename") return format;
    return { kind: "template", label, template: compileLabelTemplate(format.template, label) };
  });
}

/** `| label_format a=b, c="{{.d}}"`: templates see the labels as they were at the first of them. */
export function prepareLabelFormat(formats: readonly CompiledLabelFormat[]): PreparedStage {
  return (row) => {
    const templates = formats.filter((format) => format.kind === "template");
    // one template needs no copy of the labels: nothing changes before it runs
    const wanted = templates.length > 1 ? labelsOf(templates) : undefined;
    const live = templateLabels(row.labels);
    let data: GoMap | undefined;
    const steps = formats.map((format) => {
      if (format.kind === "rename") return rename(row, format);
      const slot = row.labels.names.slotOf(format.label);
      return () => {
        data ??= wanted === undefined ? live : copyLabels(row.labels, wanted);
        const text = runTemplate(format.template, data, row);
        if (text !== undefined) row.labels.setText(labelState.parsed, slot, text);
        return true;
      };
    });
    return () => {
      data = undefined;
      for (const step of steps) step();
      return true;
    };
  };
}

function labelsOf(
  templates: readonly (CompiledLabelFormat & { kind: "template" })[],
): readonly string[] | "all" {
  const names = new Set<string>();
  for (const { template } of templates) {
    if (template.labels === "all") return "all";
    for (const name of template.labels) names.add(name);
  }
  return [...names];
}

/** Moves a value to another name, where it counts as parsed; nothing happens when there is none. */
function rename({ labels }: RowState, format: CompiledLabelFormat & { kind: "rename" }): RowStage {
  const to = labels.names.slotOf(format.label);
  const from = labels.names.slotOf(format.source);
  return () => {
    if (!labels.find(from)) return true;
    labels.set(labelState.parsed, to, labels.foundBytes, labels.foundStart, labels.foundEnd);
    labels.delete(from);
    return true;
  };
}
