/**
 * What must stand in a block so that a row of it can pass a query: plain data, made from a query and asked of the filters
 * of segments. A block that cannot have it need not be read.
 */
export type NeedleFormula =
  | { readonly kind: "all" | "any"; readonly of: readonly NeedleFormula[] }
  | NeedleText
  | NeedleValue;

/** A stored line contains the text (UTF-8), whatever the case of its ASCII letters. */
export interface NeedleText {
  readonly kind: "text";
  readonly text: Uint8Array;
  /** For k and s the line may have U+212A and U+017F, as in a regular expression without case. */
  readonly folds: boolean;
}

/** A row has structured metadata of the name with just this value. */
export interface NeedleValue {
  readonly kind: "value";
  readonly name: string;
  readonly value: Uint8Array;
}

/** The formulas that are known must all hold. */
export function allOf(parts: readonly (NeedleFormula | undefined)[]): NeedleFormula | undefined {
  const known = parts.filter((part) => part !== undefined);
  return known.length < 2 ? known[0] : { kind: "all", of: known };
}

/** One of the formulas must hold; nothing is known when one of them is not. */
export function anyOf(parts: readonly (NeedleFormula | undefined)[]): NeedleFormula | undefined {
  const known = parts.filter((part) => part !== undefined);
  if (known.length < parts.length) return undefined;
  return known.length < 2 ? known[0] : { kind: "any", of: known };
}

const encoder = new TextEncoder();

/** Nothing is said of a text with the sign for broken bytes: it matches the bytes that it stands for as well. */
export function formulaOfText(text: string, folds: boolean): NeedleFormula | undefined {
  if (text === "" || text.includes("\ufffd")) return undefined;
  return { kind: "text", text: encoder.encode(text), folds };
}
