import { invalidArgument } from "@skald/model";
import type { LabelFormat } from "../../syntax/ast.js";
import { compileTemplate, type Template } from "../../template/template.js";
import { type GoMap, TemplateRunError, TemplateSyntaxError } from "../../template/value.js";
import type { PreparedStage, RowStage, RowState } from "../row/row.js";
import {
  type CurrentLabels,
  errorDetailsLabel,
  errorLabel,
  labelState,
  stageErrors,
} from "../row/row-labels.js";

/** Compiles the template of line_format. Throws invalid_argument. */
export function compileLineTemplate(source: string): Template {
  return compileStageTemplate(source, "line", "invalid line template");
}

/** Compiles a template for one label of label_format. */
function compileLabelTemplate(source: string, label: string): Template {
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
function runTemplate(template: Template, map: GoMap, row: RowState): string | undefined {
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

type CompiledLabelFormat =
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

/** The labels of the current row as the data of a template. */
function templateLabels(labels: CurrentLabels): GoMap {
  const get = (name: string): string | undefined => {
    if (name === errorLabel && labels.error !== "") return labels.error;
    if (name === errorDetailsLabel && labels.errorDetails !== "") return labels.errorDetails;
    return labels.text(labels.names.slotOf(name));
  };
  return { kind: "map", missing: "", get, keys: () => rowLabelNames(labels) };
}

/** The labels of the row as they are now, for those who read them after changes. */
function copyLabels(labels: CurrentLabels, wanted: readonly string[] | "all"): GoMap {
  const live = templateLabels(labels);
  const values = new Map<string, string>();
  for (const name of wanted === "all" ? live.keys() : wanted) {
    const value = live.get(name);
    if (value !== undefined) values.set(name, value as string);
  }
  return {
    kind: "map",
    missing: "",
    get: (name) => values.get(name),
    keys: () => [...values.keys()].sort(),
  };
}

/** Names of all labels of the row, errors included, sorted. */
export function rowLabelNames(labels: CurrentLabels): readonly string[] {
  const names = new Set(labels.streamSlots.map((slot) => labels.names.nameOf(slot)));
  for (const { slot } of labels.metadata?.columns ?? []) {
    if (labels.isMetadata(slot)) names.add(labels.names.nameOf(slot));
  }
  for (let i = 0; i < labels.touchedCount; i++) {
    const slot = labels.touched[i]!;
    const name = labels.names.nameOf(slot);
    if (labels.state[slot] === labelState.deleted) names.delete(name);
    else names.add(name);
  }
  if (labels.error !== "") names.add(errorLabel);
  if (labels.errorDetails !== "") names.add(errorDetailsLabel);
  return [...names].sort();
}

/** `| decolorize`: takes out the escape sequences of terminals. */
export const prepareDecolorize: PreparedStage = ({ labels, line }) => {
  const { arena } = labels;
  return () => {
    const { bytes, start, end } = line;
    const first = nextEscape(bytes, start, end);
    if (first === end) return true;
    arena.reserve(end - start);
    const out = arena.bytes;
    const from = arena.used;
    let to = from;
    for (let at = start, stop = first; ; stop = nextEscape(bytes, at, end)) {
      while (at < stop) out[to++] = bytes[at++]!;
      if (at === end) break;
      const length = sequenceLength(bytes, at, end);
      if (length > 0) at += length;
      else out[to++] = bytes[at++]!;
    }
    arena.used = to;
    line.replace(out, from, to);
    return true;
  };
};

/** Offset of the next ESC (0x1b) or CSI (U+009B), or the end. */
function nextEscape(bytes: Uint8Array, at: number, end: number): number {
  for (let i = at; i < end; i++) {
    const c = bytes[i]!;
    if (c === 0x1b || (c === 0xc2 && i + 1 < end && bytes[i + 1] === 0x9b)) return i;
  }
  return end;
}

/** Length of the escape sequence at `at`, or 0: intermediate signs, then a text up to BEL or a control sequence. */
function sequenceLength(bytes: Uint8Array, start: number, end: number): number {
  let at = start + (bytes[start] === 0x1b ? 1 : 2);
  while (at < end && is(bytes[at]!, marks.intermediate)) at++;
  let bell = at;
  while (bell < end && (is(bytes[bell]!, marks.alphanumeric) || bytes[bell] === 59)) bell++;
  if (bell < end && bytes[bell] === 7) return bell + 1 - start;
  const stop = controlEnd(bytes, at, end);
  return stop < 0 ? 0 : stop - start;
}

/**
 * End of `(digits{1,4}(;digits{0,4})*)? final`, as long as it can be, or -1. A digit can be the final byte too, so
 * when none follows the last digit takes its place.
 */
function controlEnd(bytes: Uint8Array, from: number, end: number): number {
  let lastFinal = -1;
  let at = from;
  let digits = 0;
  while (at < end && digits < 4 && is(bytes[at]!, marks.digit)) {
    lastFinal = at + 1;
    at++;
    digits++;
  }
  while (digits > 0 && at < end && bytes[at] === 59) {
    at++;
    for (let n = 0; n < 4 && at < end && is(bytes[at]!, marks.digit); n++) {
      lastFinal = at + 1;
      at++;
    }
  }
  return at < end && is(bytes[at]!, marks.final) ? at + 1 : lastFinal;
}

/** What a byte may be in an escape sequence: bits for intermediate signs, digits, letters and digits, and final bytes. */
const marks = { intermediate: 1, digit: 2, alphanumeric: 4, final: 8 } as const;
const charMarks = new Uint8Array(256);
mark("[](#;?)", marks.intermediate);
mark("0123456789", marks.digit | marks.alphanumeric | marks.final);
mark("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz", marks.alphanumeric);
mark("ABCDEFGHIJKLMNOPRZcfghijklmnqrtuy<=>~", marks.final);

function mark(chars: string, bits: number): void {
  for (let i = 0; i < chars.length; i++) charMarks[chars.charCodeAt(i)]! |= bits;
}

function is(c: number, bit: number): boolean {
  return (charMarks[c]! & bit) !== 0;
}
