import { windowBytes } from "@skald/kernels";
import { allOf, anyOf, compileRegex, type NeedleFormula } from "@skald/model";
import type { LabelFilter } from "../syntax/ast.js";
import type { CompiledPipeline } from "./compiled.js";
import { encodeText } from "./row/bytes.js";

/** Each text of a formula is asked, and of more than this some is in most blocks. */
const maxTexts = 512;

/** What a block must hold for a row to pass the filters on stored lines and metadata; undefined: nothing is known. */
export function pipelineFormula({
  lineFilters,
  labelFilters,
}: Pick<CompiledPipeline, "lineFilters" | "labelFilters">): NeedleFormula | undefined {
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
      return anyOf(alternatives(filter).map(valueFormula));
    case "string": {
      const { name, op, value } = filter.matcher;
      // `x_extracted` is the `x` of metadata where the stream has an `x` of its own
      if (name.endsWith("_extracted")) return undefined;
      if (op === "=") return ofValue(name, value);
      if (op !== "=~") return undefined;
      const { texts = [] } = compileRegex(value, { anchored: true });
      return texts.length === 0 ? undefined : anyOf(texts.map((text) => ofValue(name, text)));
    }
    default:
      return undefined;
  }
}

function alternatives(filter: LabelFilter): readonly LabelFilter[] {
  if (filter.kind !== "or") return [filter];
  return [...alternatives(filter.left), ...alternatives(filter.right)];
}

/** A row without the label has the empty value; U+FFFD stands for any broken byte. */
function ofValue(name: string, value: string): NeedleFormula | undefined {
  if (value === "" || value.includes("\ufffd")) return undefined;
  return { kind: "value", name, value: encodeText(value) };
}
