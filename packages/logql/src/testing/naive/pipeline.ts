import { compileMatcher, compileRegex, formatLabels, labelsFromObject } from "@skald/model";
import { parseByteSize } from "../../go/byte-size.js";
import { parseGoDuration } from "../../go/duration.js";
import { type Parsed, parseGoFloat } from "../../go/float.js";
import { goTime } from "../../go/time.js";
import { hasIpOf, parseIpRange } from "../../pipeline/row/ip.js";
import {
  errorDetailsLabel,
  errorLabel,
  extractedName,
  preserveErrorLabel,
  sanitizeLabelName,
  stageErrors,
} from "../../pipeline/row/labels.js";
import { parserGuard } from "../../pipeline/stage/fields/field-sink.js";
import { parseJsonPath } from "../../pipeline/stage/json/path-syntax.js";
import { compileLabelMatch } from "../../pipeline/stage/label-match.js";
import { type PatternPiece, parsePattern } from "../../pipeline/stage/pattern-syntax.js";
import type { ParserGuard } from "../../pipeline/stage/row-state.js";
import type { PipelineOptions, SeriesError } from "../../pipeline/types.js";
import type {
  Extraction,
  LabelFilter,
  LabelTarget,
  LineFilterStage,
  Stage,
  Unwrap,
} from "../../syntax/ast.js";
import { TemplateRunError } from "../../template/error.js";
import { compileTemplate } from "../../template/template.js";
import { mapValue } from "../../template/value.js";
import { eachMember, findPath, labelText, NaiveJsonError, type NaiveJsonValue } from "./json.js";
import { readLogfmt } from "./logfmt.js";

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

export interface NaiveRow {
  readonly labels: Readonly<Record<string, string>>;
  readonly metadata: Readonly<Record<string, string>>;
  readonly ts: bigint;
  readonly line: string;
}

export interface NaiveResult {
  readonly line: string;
  readonly value: number;
  readonly labels: Readonly<Record<string, string>>;
  readonly categories: Readonly<Record<Category, Readonly<Record<string, string>>>>;
  readonly error?: SeriesError;
}

const [escape8, escape7, bell] = ["\u009b", "\u001b", "\u0007"];
const ansiSequence = new RegExp(
  `[${escape7}${escape8}][[\\]()#;?]*` +
    `(?:(?:(?:[a-zA-Z\\d]*(?:;[a-zA-Z\\d]*)*)?${bell})|` +
    "(?:(?:\\d{1,4}(?:;\\d{0,4})*)?[\\dA-PRZcf-ntqry=><~]))",
  "g",
);

type Category = "stream" | "structuredMetadata" | "parsed";
const strength: Readonly<Record<Category, number>> = {
  stream: 0,
  structuredMetadata: 1,
  parsed: 2,
};

class State {
  line: string;
  error = "";
  details = "";
  readonly ts: bigint;
  readonly #labels = new Map<string, { value: string; category: Category }>();
  readonly #streamNames: ReadonlySet<string>;
  readonly #metadataNames = new Set<string>();
  readonly #extracted = new Set<string>();

  constructor(row: NaiveRow) {
    this.line = row.line;
    this.ts = row.ts;
    this.#streamNames = new Set(Object.keys(row.labels));
    for (const [name, value] of Object.entries(row.labels)) {
      this.#labels.set(name, { value, category: "stream" });
    }
    for (const [name, value] of Object.entries(row.metadata)) {
      if (value === "") continue;
      if (name === errorLabel) this.error = value;
      else if (name === errorDetailsLabel) this.details = value;
      else {
        const own = this.#streamNames.has(name) ? extractedName(name) : name;
        this.#metadataNames.add(own);
        this.#labels.set(own, { value, category: "structuredMetadata" });
      }
    }
  }

  get(name: string): string | undefined {
    return this.#labels.get(name)?.value;
  }

  /** A weaker category does not replace a stronger one. */
  set(category: Category, name: string, value: string): void {
    const known = this.#labels.get(name);
    const isBase = known?.category === "stream";
    if (known !== undefined && !isBase && strength[known.category] > strength[category]) return;
    this.#labels.set(name, { value, category });
  }

  delete(name: string): void {
    this.#labels.delete(name);
  }

  rename(to: string, from: string): void {
    const known = this.#labels.get(from);
    if (known === undefined) return;
    this.set("parsed", to, known.value);
    this.#labels.delete(from);
  }

  /** A parser found a value. The first parser that finds a name wins; `replaces` lets the same parser go on. */
  extract(name: string, value: string, replaces?: ReadonlySet<string>): string | undefined {
    const taken = this.#streamNames.has(name) || this.#metadataNames.has(name);
    const target = taken ? extractedName(name) : name;
    if (this.#extracted.has(target) && !replaces?.has(target)) return undefined;
    this.#extracted.add(target);
    this.set("parsed", target, value);
    return target;
  }

  fail(kind: string, details?: string): false {
    this.error = kind;
    if (details !== undefined) this.details = details;
    return false;
  }

  names(): readonly string[] {
    return [...this.#labels.keys()];
  }

  all(): Map<string, string> {
    const labels = new Map([...this.#labels].map(([name, label]) => [name, label.value]));
    if (this.error !== "") labels.set(errorLabel, this.error);
    if (this.details !== "") labels.set(errorDetailsLabel, this.details);
    return labels;
  }

  output({ output, unwrap }: PipelineOptions): Omit<NaiveResult, "line" | "value"> {
    const all = this.all();
    const categories = { stream: {}, structuredMetadata: {}, parsed: {} } as Record<
      Category,
      Record<string, string>
    >;
    for (const [name, { value, category }] of this.#labels) categories[category][name] = value;
    if (this.error !== "") categories.parsed[errorLabel] = this.error;
    if (this.details !== "") categories.parsed[errorDetailsLabel] = this.details;
    if (output.kind === "log") return { labels: Object.fromEntries(all), categories };
    const { grouping } = output;
    const asksForError = grouping?.without === false && grouping.labels.includes(errorLabel);
    if (this.error !== "" && !asksForError) {
      const labels = Object.fromEntries(all);
      const labelsText = formatLabels(labelsFromObject(labels));
      return { labels, categories, error: { kind: this.error, labelsText } };
    }
    const keeps = (name: string) => {
      if (grouping?.without === false) return grouping.labels.includes(name);
      return name !== unwrap?.label && !grouping?.labels.includes(name);
    };
    const labels = [...all].filter(([name, value]) => keeps(name) && value !== "");
    return { labels: Object.fromEntries(labels), categories };
  }
}

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
      pattern(parsePattern(stage.pattern), state);
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

function lineFilter({ op, alternatives }: LineFilterStage, line: string): boolean {
  const found = alternatives.some(({ kind, value }) => {
    if (kind === "ip") return hasIpOf(parseIpRange(value), line);
    if (op === "|=" || op === "!=") return line.includes(value);
    if (op === "|~" || op === "!~") return compileRegex(value, { anchored: false }).test(line);
    return matchesPattern(parsePattern(value), line);
  });
  return found === op.startsWith("|");
}

/** Literals one behind the other, each at its first place, at least one byte in each gap, up to the end. */
function matchesPattern(pieces: readonly PatternPiece[], line: string): boolean {
  let at = 0;
  for (const [i, piece] of pieces.entries()) {
    if (piece.kind === "capture") continue;
    const found = line.indexOf(piece.text, at);
    if (found === -1 || (i > 0 && found === at)) return false;
    at = found + piece.text.length;
  }
  return pieces.at(-1)?.kind === "capture" ? at < line.length : at === line.length;
}

function labelFilter(filter: LabelFilter, state: State): boolean {
  switch (filter.kind) {
    case "and": {
      const left = labelFilter(filter.left, state);
      return labelFilter(filter.right, state) && left;
    }
    case "or":
      return labelFilter(filter.left, state) || labelFilter(filter.right, state);
    case "string": {
      const { name } = filter.matcher;
      const value = name === errorLabel ? state.error : (state.get(name) ?? "");
      return compileLabelMatch(filter.matcher)(value);
    }
    case "number":
      return compare(filter, state, parseGoFloat, filter.value);
    case "duration":
      return compare(filter, state, parseGoDuration, Number(filter.value));
    case "bytes":
      return compare(filter, state, parseByteSize, filter.value);
    case "ip": {
      if (state.error !== "") return true;
      const value = state.get(filter.name);
      if (value === undefined) return false;
      return hasIpOf(parseIpRange(filter.value), value) === (filter.op === "==");
    }
  }
}

function compare(
  { name, op }: { readonly name: string; readonly op: string },
  state: State,
  parse: (text: string) => Parsed<number>,
  want: number,
): boolean {
  const text = state.get(name);
  if (text === undefined) return false;
  const parsed = parse(text);
  if ("error" in parsed) {
    if (state.error === "") state.fail(stageErrors.labelFilter, parsed.error);
    return true;
  }
  const got = parsed.value;
  if (op === "==") return got === want;
  if (op === "!=") return got !== want;
  if (op === ">") return got > want;
  if (op === ">=") return got >= want;
  return op === "<" ? got < want : got <= want;
}

class Dropped extends Error {}

/** False when the row is dropped. */
function json(state: State, extract: (name: string, value: string) => boolean): boolean {
  const walk = (text: string, prefix: string) => {
    eachMember(text, (key, value) => {
      const name =
        prefix === "" ? sanitizeLabelName(key) : `${prefix}_${sanitizeLabelName(key, true)}`;
      if (value.type === "object") walk(value.raw, name);
      else if (value.type !== "null" && value.type !== "array" && name !== "") {
        if (!extract(name, labelText(value))) throw new Dropped();
      }
    });
  };
  try {
    guardJson(state, () => walk(state.line, ""));
  } catch (error) {
    if (error instanceof Dropped) return false;
    throw error;
  }
  return true;
}

function guardJson(state: State, work: () => void): void {
  try {
    work();
  } catch (error) {
    if (!(error instanceof NaiveJsonError)) throw error;
    state.fail(stageErrors.json, error.message);
  }
}

function jsonPaths(extractions: readonly Extraction[], state: State): void {
  if (state.line === "") return;
  if (!/^[{["]/.test(state.line)) {
    state.fail(stageErrors.json);
    return;
  }
  for (const { label, path } of extractions) {
    const value = findPath(state.line, parseJsonPath(path));
    if (value instanceof NaiveJsonError) state.fail(stageErrors.json, value.message);
    else if (value !== undefined)
      state.extract(label, value.type === "null" ? "" : labelText(value));
  }
  fillMissing(extractions, state);
}

function fillMissing(extractions: readonly Extraction[], state: State): void {
  for (const { label } of extractions) {
    if (state.get(label) === undefined) state.set("parsed", label, "");
  }
}

/** The last value of a key wins, and a key spelled like the label sets it too. */
function logfmtKeys(
  extractions: readonly Extraction[],
  pairs: readonly (readonly [string, string])[],
  state: State,
): void {
  const own = new Set<string>();
  for (const [key, value] of pairs) {
    const name = sanitizeLabelName(key);
    for (const { label, path } of extractions) {
      if (name !== path && name !== label) continue;
      const target = state.extract(label, value, own);
      if (target !== undefined) own.add(target);
    }
  }
  fillMissing(extractions, state);
}

function pattern(pieces: readonly PatternPiece[], state: State): void {
  let rest = state.line;
  if (rest === "") return;
  let from = 0;
  const first = pieces[0];
  if (first?.kind === "literal") {
    if (!rest.startsWith(first.text)) return;
    rest = rest.slice(first.text.length);
    from = 1;
  }
  for (let i = from; i < pieces.length; i += 2) {
    const { name } = pieces[i] as PatternPiece & { kind: "capture" };
    const literal = pieces[i + 1] as (PatternPiece & { kind: "literal" }) | undefined;
    const end = literal === undefined ? -1 : rest.indexOf(literal.text);
    if (name !== "_") state.extract(name, end < 0 ? rest : rest.slice(0, end));
    if (end < 0) return;
    rest = rest.slice(end + (literal?.text.length ?? 0));
  }
}

function unpack(state: State): void {
  if (state.line === "") return;
  if (!state.line.startsWith("{")) {
    state.fail(stageErrors.json, "expecting json object(6), but it is not");
    return;
  }
  guardJson(state, () => {
    const members: (readonly [string, NaiveJsonValue])[] = [];
    eachMember(state.line, (key, value) => members.push([key, value]));
    const texts = members.filter(([, value]) => value.type === "string");
    const entry = texts.findLast(([key]) => key === "_entry");
    if (entry === undefined) return;
    for (const [key, value] of texts) {
      const name = sanitizeLabelName(key);
      if (key !== "_entry" && name !== "") state.extract(name, labelText(value));
    }
    state.line = labelText(entry[1]);
  });
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
    conversion === "bytes" ? parseByteSize : conversion === "none" ? parseGoFloat : parseGoDuration;
  const parsed = parse(text);
  if ("error" in parsed) state.fail(stageErrors.unwrap, parsed.error);
  const isDuration = conversion === "duration" || conversion === "duration_seconds";
  const value = "error" in parsed ? 0 : isDuration ? parsed.value / 1e9 : parsed.value;
  return filters.every((filter) => labelFilter(filter, state)) ? value : undefined;
}
