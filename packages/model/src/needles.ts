import type { RegexNode } from "./regex-syntax.js";
import { someNode } from "./regex-syntax.js";

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

/** Every match contains at least one of these texts. */
export interface Needles {
  readonly values: readonly string[];
  /** The values are lower case; ASCII letters match in either case. */
  readonly ignoreCase: boolean;
  /** Containing one of them is not only necessary but enough. */
  readonly complete: boolean;
}

/** The most texts that combining sets may give: all ways to write a word. */
const productMax = 8;
/** The most alternatives of those that the expression writes out. */
const alternativesMax = 20_000;
/** Texts that may be listed, and characters that may be copied to join them; more would cost more than they save. */
const workMax = 4_000_000;

/** The longest texts that a match must contain; undefined when nothing is known. */
export function regexNeedles(node: RegexNode): Needles | undefined {
  const mode = modeOf(someNode(node, isCasePair));
  const exact = exactTexts(node, mode);
  const isExact = exact !== undefined && isUseful(exact);
  const values = isExact ? exact : best(node, mode);
  if (values === undefined) return undefined;
  return {
    values: [...values, ...mode.signs],
    ignoreCase: mode.ignoreCase,
    complete: isExact && !mode.mixed && mode.signs.size === 0 && isPlain(node),
  };
}

/** All texts that the whole expression can match, when they are few; case counts. */
export function regexTexts(node: RegexNode): readonly string[] | undefined {
  return isPlain(node) ? exactTexts(node, modeOf(false)) : undefined;
}

/** How texts are made of an expression. */
export interface Mode {
  readonly ignoreCase: boolean;
  /** A letter of one case only was seen in ignoreCase mode: the texts say less than the expression. */
  mixed: boolean;
  /** Signs that k and s fold to: a match without the ASCII letters has one of them. */
  readonly signs: Set<string>;
  /** What is left of it. */
  work: number;
}

/** A mode that nothing was seen with. */
function modeOf(ignoreCase: boolean): Mode {
  return { ignoreCase, mixed: false, signs: new Set(), work: workMax };
}

function isUseful(texts: readonly string[]): boolean {
  return texts.length > 0 && texts.every((text) => text !== "");
}

/** A letter in both cases, `[Aa]`, with the sign that k and s fold to. */
function isCasePair(node: RegexNode): boolean {
  if (node.kind !== "set") return false;
  const [a = 0, b, c, d, sign] = node.set;
  if (a !== b || c !== d || c !== a + 32 || a < 65 || a > 90) return false;
  return node.set.length === 4 || (node.set.length === 6 && sign === signs[c]);
}

const signs: Readonly<Record<number, number | undefined>> = { 107: 0x212a, 115: 0x17f };

/** True when there is no assertion, and nothing that is not worked out. */
function isPlain(node: RegexNode): boolean {
  return !someNode(node, ({ kind }) => kind === "assert" || kind === "opaque");
}

/** All texts that an expression can match, when they are few or written out. */
function exactTexts(node: RegexNode, mode: Mode): readonly string[] | undefined {
  switch (node.kind) {
    case "assert":
      return [""];
    case "opaque":
      return undefined;
    case "set":
      return charsOf(node, mode);
    case "group":
      return exactTexts(node.item, mode);
    case "concat": {
      let texts: readonly string[] | undefined = [""];
      for (const item of node.items) {
        texts = texts && product(texts, exactTexts(item, mode), mode);
      }
      return texts;
    }
    case "alternate": {
      const all = node.items.map((item) => exactTexts(item, mode));
      if (all.some((texts) => texts === undefined)) return undefined;
      return union(all as readonly (readonly string[])[], mode);
    }
    case "repeat": {
      if (node.max > 64 || node.max - node.min > 2) return undefined;
      const item = exactTexts(node.item, mode);
      let power: readonly string[] | undefined = [""];
      const texts = new Set<string>(node.min === 0 ? [""] : []);
      for (let i = 1; i <= node.max && power !== undefined; i++) {
        power = product(power, item, mode);
        if (power !== undefined && i >= node.min) for (const text of power) texts.add(text);
      }
      return power === undefined || texts.size > productMax ? undefined : [...texts];
    }
  }
}

function charsOf(node: RegexNode & { kind: "set" }, mode: Mode): readonly string[] | undefined {
  if (mode.ignoreCase && isCasePair(node)) {
    if (node.set.length === 6) mode.signs.add(String.fromCharCode(node.set[4] as number));
    return [String.fromCharCode((node.set[0] as number) + 32)];
  }
  const chars: string[] = [];
  for (let i = 0; i < node.set.length; i += 2) {
    if ((node.set[i + 1] as number) - (node.set[i] as number) > 3) return undefined;
    for (let code = node.set[i] as number; code <= (node.set[i + 1] as number); code++) {
      // half of a surrogate pair has no bytes of its own
      if (code >= 0xd800 && code <= 0xdfff) return undefined;
      chars.push(String.fromCodePoint(code));
    }
    if (chars.length > 4) return undefined;
  }
  if (!mode.ignoreCase) return chars;
  if (chars.some((c) => /[a-zA-Z]/.test(c))) mode.mixed = true;
  return [...new Set(chars.map((c) => (/[A-Z]/.test(c) ? c.toLowerCase() : c)))];
}

function union(parts: readonly (readonly string[])[], mode: Mode): readonly string[] | undefined {
  const texts = [...new Set(parts.flat())];
  mode.work -= texts.length;
  return texts.length <= alternativesMax && mode.work >= 0 ? texts : undefined;
}

/** Each of `a` followed by each of `b`; undefined when these are too many, unless one side has only one. */
function product(
  a: readonly string[],
  b: readonly string[] | undefined,
  mode: Mode,
): readonly string[] | undefined {
  if (b === undefined) return undefined;
  const count = a.length * b.length;
  if (count > productMax) {
    if (count > a.length && count > b.length) return undefined;
    mode.work -= count * ((a[0]?.length ?? 0) + (b[0]?.length ?? 0));
    if (mode.work < 0) return undefined;
  }
  return a.flatMap((left) => b.map((right) => left + right));
}

/** The best set of texts such that a match must contain one of them. */
function best(node: RegexNode, mode: Mode): readonly string[] | undefined {
  switch (node.kind) {
    case "group":
      return best(node.item, mode);
    case "repeat":
      return node.min === 0 ? undefined : best(node.item, mode);
    case "set": {
      const chars = charsOf(node, mode);
      return chars !== undefined && isUseful(chars) ? chars : undefined;
    }
    case "alternate": {
      const parts = node.items.map((item) => best(item, mode));
      if (parts.some((part) => part === undefined)) return undefined;
      return union(parts as readonly (readonly string[])[], mode);
    }
    case "concat":
      return bestOfConcat(node.items, mode);
    default:
      return undefined;
  }
}

function bestOfConcat(items: readonly RegexNode[], mode: Mode): readonly string[] | undefined {
  let found: readonly string[] | undefined;
  let run: readonly string[] = [""];
  const offer = (texts: readonly string[] | undefined) => {
    if (texts !== undefined && isUseful(texts) && score(texts) > score(found)) found = texts;
  };
  for (const item of items) {
    const texts = exactTexts(item, mode);
    const longer = product(run, texts, mode);
    if (longer !== undefined) {
      run = longer;
      continue;
    }
    offer(run);
    offer(best(item, mode));
    run = texts ?? [""];
  }
  offer(run);
  return found;
}

/** Longer texts refuse more; alternatives cost more, though many are searched in one pass. */
function score(texts: readonly string[] | undefined): number {
  if (texts === undefined) return 0;
  const shortest = texts.reduce(
    (least, text) => Math.min(least, text.length),
    Number.POSITIVE_INFINITY,
  );
  return shortest - 0.4 * Math.min(texts.length - 1, 4);
}

/**
 * What a text must contain to match: all parts of a sequence, one of the branches of an alternation. Undefined when
 * nothing is known.
 */
export function regexFormula(node: RegexNode): NeedleFormula | undefined {
  const mode = modeOf(someNode(node, isCasePair));
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
