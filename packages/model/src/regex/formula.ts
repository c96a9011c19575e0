import { allOf, anyOf, formulaOfText, type NeedleFormula } from "../needle/formula.js";
import { exactTexts, hasCasePair, type Mode, modeOf, product } from "./needles.js";
import type { RegexNode } from "./syntax.js";

/**
 * What a text must contain to match: all parts of a sequence, one of the branches of an alternation. Undefined when
 * nothing is known.
 */
export function regexFormula(node: RegexNode): NeedleFormula | undefined {
  const mode = modeOf(hasCasePair(node));
  return formulaOf(node, mode);
}

function formulaOf(node: RegexNode, mode: Mode): NeedleFormula | undefined {
  switch (node.kind) {
    case "group":
      return formulaOf(node.item, mode);
    case "repeat":
      return node.min === 0 ? undefined : formulaOf(node.item, mode);
    case "alternate":
      return anyOf(node.items.map((item) => formulaOf(item, mode)));
    case "concat":
      return formulaOfConcat(node.items, mode);
    default:
      return formulaOfTexts(exactTexts(node, mode), mode);
  }
}

/** Neighbours whose texts are known are joined: texts as long as can be say most. */
function formulaOfConcat(items: readonly RegexNode[], mode: Mode): NeedleFormula | undefined {
  const parts: (NeedleFormula | undefined)[] = [];
  let run: readonly string[] = [""];
  for (const item of items) {
    const texts = exactTexts(item, mode);
    const longer = product(run, texts, mode);
    if (longer !== undefined) {
      run = longer;
      continue;
    }
    parts.push(formulaOfTexts(run, mode));
    if (texts === undefined) parts.push(formulaOf(item, mode));
    run = texts ?? [""];
  }
  parts.push(formulaOfTexts(run, mode));
  return allOf(parts);
}

function formulaOfTexts(
  texts: readonly string[] | undefined,
  mode: Mode,
): NeedleFormula | undefined {
  if (texts === undefined || texts.length === 0) return undefined;
  const folds = mode.ignoreCase;
  return anyOf(texts.map((text) => formulaOfText(text, folds)));
}
