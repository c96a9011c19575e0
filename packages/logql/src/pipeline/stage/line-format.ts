import { invalidArgument } from "@skald/model";
import { compileTemplate, type Template } from "../../template/template.js";
import { TemplateRunError, TemplateSyntaxError } from "../../template/value/error.js";
import type { GoMap } from "../../template/value/value.js";
import { stageErrors } from "../row/labels.js";
import type { PreparedStage, RowState } from "./row-state.js";
import { templateLabels } from "./template-labels.js";

/** Compiles the template of line_format. Throws invalid_argument. */
export function compileLineTemplate(source: string): Template {
  return compileStageTemplate(source, "line", "invalid line template");
}

/** Compiles a template for one label of label_format. */
export function compileLabelTemplate(source: string, label: string): Template {
  return compileStageTemplate(source, "label", `invalid template for label '${label}'`);
}

function compileStageTemplate(source: string, name: string, complaint: string): Template {
  try {
    return compileTemplate(source, name);
  } catch (error) {
    if (!(error instanceof TemplateSyntaxError)) throw error;
    throw invalidArgument(`${complaint}: ${error.message}`, { cause: error });
  }
}

/** `| line_format "..."`: the line becomes what the template makes of the labels; an error leaves it as it is. */
export function prepareLineFormat(template: Template): PreparedStage {
  return (row) => {
    const { labels, line } = row;
    const { arena } = labels;
    const map = templateLabels(labels);
    return () => {
      const text = runTemplate(template, map, row);
      if (text === undefined) return true;
      const start = arena.append(text);
      line.replace(arena.bytes, start, arena.used);
      return true;
    };
  };
}

/** The text of a template, or undefined when it failed; then the row has the error. */
export function runTemplate(template: Template, map: GoMap, row: RowState): string | undefined {
  try {
    return template.run(map, {
      line: () => row.line.text,
      timestampNs: () => row.timestampNs(),
      nowNs: () => row.nowNs(),
      budget: row.budget,
    });
  } catch (error) {
    if (!(error instanceof TemplateRunError)) throw error;
    row.labels.fail(stageErrors.template, error.message);
    return undefined;
  }
}
