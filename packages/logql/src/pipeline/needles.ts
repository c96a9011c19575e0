import { windowBytes } from "@skald/kernels";
import { allOf, anyOf, compileRegex, type NeedleFormula } from "@skald/model";
import { factsOf, type LabelFilter, type Stage } from "../syntax/ast.js";
import { encodeText } from "./row/bytes.js";
import { extractedSuffix, isErrorLabel } from "./row/row-labels.js";
import { alternativesOf } from "./stage/label-filter.js";
import type { LabelPrefilter } from "./stage/label-prefilter.js";
import type { LineFilter } from "./stage/line-filter.js";

/** Each text of a formula is asked, and of more than this some is in most blocks. */
const maxTexts = 512;

/** What a block must hold for a row to pass the filters on stored lines and metadata; undefined: nothing is known. */
export function pipelineFormula({
  lineFilters,
  labelFilters,
}: {
  readonly lineFilters: readonly LineFilter[];
  readonly labelFilters: readonly LabelPrefilter[];
}): NeedleFormula | undefined {
  const parts = [
    ...lineFilters.map(({ negated, formula }) => (negated ? undefined : formula)),
    ...labelFilters.map(({ formula }) => formula),
  ];
  return allOf(
    parts.map((part) => (part && countTexts(part) <= maxTexts ? askable(part) : undefined)),
  );
}

function countTexts(formula: NeedleFormula): number {
  if (!("of" in formula)) return 1;
  return formula.of.reduce((sum, part) => sum + countTexts(part), 0);
}

/** The part of a formula that filters know an answer to. */
function askable(formula: NeedleFormula): NeedleFormula | undefined {
  switch (formula.kind) {
    case "all":
      return allOf(formula.of.map(askable));
    case "any":
      return anyOf(formula.of.map(askable));
    case "text":
      return formula.text.length < windowBytes ? undefined : formula;
    case "value":
      return formula;
  }
}

/** What metadata must have for a label filter that stands before any parser. */
export function valueFormula(filter: LabelFilter): NeedleFormula | undefined {
  switch (filter.kind) {
    case "and":
      return allOf([valueFormula(filter.left), valueFormula(filter.right)]);
    case "or":
      return anyOf(alternativesOf(filter).map(valueFormula));
    case "string": {
      const { name, op, value } = filter.matcher;
      // `x_extracted` is the `x` of metadata where the stream has an `x` of its own
      if (name.endsWith(extractedSuffix)) return undefined;
      if (op === "=") return ofValue(name, value);
      if (op !== "=~") return undefined;
      const { texts = [] } = compileRegex(value, { anchored: true });
      return texts.length === 0 ? undefined : anyOf(texts.map((text) => ofValue(name, text)));
    }
    default:
      return undefined;
  }
}

/** A row without the label has the empty value; U+FFFD stands for any broken byte. */
function ofValue(name: string, value: string): NeedleFormula | undefined {
  if (value === "" || value.includes("\ufffd")) return undefined;
  return { kind: "value", name, value: encodeText(value) };
}

/** In JSON and logfmt a value can be written with escapes. */
const backslash = encodeText("\\");
/** A shorter text is in too many lines. */
const lengthMin = 3;

/**
 * What equalities behind a parser say of the line: a value that the parser finds stands in the line as it is, or the
 * line has an escape. Broken characters become blanks, so a value with a blank says nothing.
 */
export function impliedNeedles(stages: readonly Stage[]): readonly ImpliedNeedles[] {
  const implied: ImpliedNeedles[] = [];
  let isParsed = false;
  let hasEscapes = false;
  for (const stage of stages) {
    const { changesLine, hasTemplate, parses, unescapes } = factsOf(stage);
    // From here on labels and lines are no longer what the stored line says.
    if (changesLine || hasTemplate) break;
    isParsed ||= parses;
    hasEscapes ||= unescapes;
    if (!isParsed || stage.kind !== "label_filter") continue;
    for (const [label, value] of equalities(stage.filter)) {
      const text = encodeText(value);
      implied.push({ label, anyOf: hasEscapes ? [text, backslash] : [text] });
    }
  }
  return implied;
}

/** Equalities that must hold for the filter to pass. */
function equalities(filter: LabelFilter): readonly (readonly [label: string, value: string])[] {
  if (filter.kind === "and") return [...equalities(filter.left), ...equalities(filter.right)];
  if (filter.kind !== "string" || filter.matcher.op !== "=") return [];
  const { name, value } = filter.matcher;
  // Metadata of another name may have become x_extracted.
  const isUnsure = isErrorLabel(name) || name.endsWith(extractedSuffix);
  return isUnsure || value.length < lengthMin || value.includes(" ") ? [] : [[name, value]];
}

/** Rows without any of the texts in the stored line cannot pass a later filter on the label. */
export interface ImpliedNeedles {
  /** The label must come from the line: neither the stream nor metadata may have it. */
  readonly label: string;
  readonly anyOf: readonly Uint8Array[];
}
