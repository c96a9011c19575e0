import { compileMatcher, compileRegex } from "@skald/model";
import { parseByteSize, parseDurationText, parseGoFloat } from "../../go/numbers.js";
import { goTime } from "../../go/time.js";
import type { PipelineOptions } from "../../pipeline/pipeline.js";
import type { ParserGuard } from "../../pipeline/row/row.js";
import {
  errorDetailsLabel,
  errorLabel,
  preserveErrorLabel,
  sanitizeLabelName,
  stageErrors,
} from "../../pipeline/row/row-labels.js";
import { parserGuard } from "../../pipeline/stage/fields.js";
import type { LabelTarget, Stage, Unwrap } from "../../syntax/ast.js";
import { parseCapturingPattern } from "../../syntax/check.js";
import { compileTemplate } from "../../template/template.js";
import { mapValue, TemplateRunError } from "../../template/value.js";
import { labelFilter, lineFilter } from "./filters.js";
import { readLogfmt } from "./logfmt.js";
import { json, jsonPaths, logfmtKeys, pattern, unpack } from "./parsers.js";
import { type NaiveResult, type NaiveRow, State } from "./row-state.js";

/**
 * The pipeline as its specification: one row at a time, plain strings and maps, no cleverness. The block pipeline
 * must answer the same.
 */
export function runNaive(options: PipelineOptions, row: NaiveRow): NaiveResult | undefined {
  const state = new State(row);
  for (const [i, stage] of options.stages.entries()) {
    if (!runStage(stage, state, parserGuard(options.stages, i))) return undefined;
  }
  const value = options.unwrap === undefined ? 0 : unwrap(options.unwrap, state);
  if (value === undefined) return undefined;
  return { line: state.line, value, ...state.output(options) };
}

const [escape8, escape7, bell] = ["\u009b", "\u001b", "\u0007"];
const ansiSequence = new RegExp(
  `[${escape7}${escape8}][[\\]()#;?]*` +
    `(?:(?:(?:[a-zA-Z\\d]*(?:;[a-zA-Z\\d]*)*)?${bell})|` +
    "(?:(?:\\d{1,4}(?:;\\d{0,4})*)?[\\dA-PRZcf-ntqry=><~]))",
  "g",
);

function runStage(stage: Stage, state: State, guard: ParserGuard): boolean {
  /** False when the value fails a later filter on its label. */
  const extract = (name: string, value: string): boolean => {
    const target = state.extract(name, value);
    const filter = target === undefined ? undefined : guard.get(target);
    return filter === undefined || labelFilter(filter, state);
  };
  switch (stage.kind) {
    case "line_filter":
      return lineFilter(stage, state.line);
    case "label_filter":
      return labelFilter(stage.filter, state);
    case "json":
      if (stage.extractions.length === 0) return json(state, extract);
      jsonPaths(stage.extractions, state);
      return true;
    case "logfmt": {
      const { pairs, error } = readLogfmt(state.line, stage.strict);
      if (stage.extractions.length > 0) logfmtKeys(stage.extractions, pairs, state);
      else
        for (const [key, value] of pairs) {
          const name = sanitizeLabelName(key);
          const isFound = name !== "" && (value !== "" || stage.keepEmpty);
          if (isFound && !extract(name, value)) return false;
        }
      if (stage.strict && error !== undefined) state.fail(stageErrors.logfmt, error);
      return true;
    }
    case "regexp": {
      const regex = compileRegex(stage.pattern, { anchored: false });
      const match = regex.exec(state.line);
      match?.groups.forEach((value, i) => {
        const name = regex.groupNames[i] as string;
        if (name !== "") state.extract(name, value ?? "");
      });
      return true;
    }
    case "pattern":
      pattern(parseCapturingPattern(stage.pattern), state);
      return true;
    case "unpack":
      unpack(state);
      return true;
    case "decolorize":
      state.line = state.line.replace(ansiSequence, "");
      return true;
    case "line_format": {
      const line = render(stage.template, "line", state, state.all());
      if (line !== undefined) state.line = line;
      return true;
    }
    case "label_format":
      labelFormat(stage.formats, state);
      return true;
    case "drop":
      for (const target of stage.targets) if (hits(target, state)) dropLabel(target, state);
      return true;
    case "keep":
      for (const name of state.names()) {
        const isKept = stage.targets.some((t) => targetName(t) === name && hits(t, state));
        const isError = [errorLabel, errorDetailsLabel, preserveErrorLabel].includes(name);
        if (!isKept && !isError) state.delete(name);
      }
      return true;
  }
}

function labelFormat(formats: (Stage & { kind: "label_format" })["formats"], state: State): void {
  let seen: Map<string, string> | undefined;
  for (const format of formats) {
    if (format.kind === "rename") {
      state.rename(format.label, format.source);
      continue;
    }
    seen ??= state.all();
    const value = render(format.template, "label", state, seen);
    if (value !== undefined) state.set("parsed", format.label, value);
  }
}

function render(
  template: string,
  name: string,
  state: State,
  labels: ReadonlyMap<string, string>,
): string | undefined {
  try {
    return compileTemplate(template, name).run(mapValue(labels, ""), {
      line: () => state.line,
      timestampNs: () => goTime(state.ts).ns,
      nowNs: () => 0n,
    });
  } catch (error) {
    if (!(error instanceof TemplateRunError)) throw error;
    state.fail(stageErrors.template, error.message);
    return undefined;
  }
}

function targetName(target: LabelTarget): string {
  return target.kind === "name" ? target.name : target.matcher.name;
}

/** True when the label exists and the matcher, if any, takes its value. */
function hits(target: LabelTarget, state: State): boolean {
  const name = targetName(target);
  const value =
    name === errorLabel
      ? state.error
      : name === errorDetailsLabel
        ? state.details
        : state.get(name);
  if (value === undefined) return false;
  return target.kind === "name" || compileMatcher(target.matcher)(value);
}

function dropLabel(target: LabelTarget, state: State): void {
  const name = targetName(target);
  if (name === errorLabel) state.error = "";
  else if (name === errorDetailsLabel) state.details = "";
  else state.delete(name);
}

function unwrap({ label, conversion, filters }: Unwrap, state: State): number | undefined {
  const text = state.get(label) ?? "";
  if (text === "") return undefined;
  const parse =
    conversion === "bytes"
      ? parseByteSize
      : conversion === "none"
        ? parseGoFloat
        : parseDurationText;
  const parsed = parse(text);
  if ("error" in parsed) state.fail(stageErrors.unwrap, parsed.error);
  const isDuration = conversion === "duration" || conversion === "duration_seconds";
  const value = "error" in parsed ? 0 : isDuration ? parsed.value / 1e9 : parsed.value;
  return filters.every((filter) => labelFilter(filter, state)) ? value : undefined;
}
