import type { RegexNode } from "./syntax.js";

/** Every match contains at least one of these texts. */
export interface Needles {
  readonly values: readonly string[];
  /** The values are lower case; ASCII letters match in either case. */
  readonly ignoreCase: boolean;
  /** Containing one of them is not only necessary but enough. */
  readonly complete: boolean;
}

/** Of what follows from combining sets: all ways to write a word. */
const productMax = 8;
/** Of alternatives that the expression writes out. */
const alternativesMax = 20_000;
/** Texts that may be listed and characters that may be copied to join them: nested and long alternatives are worth no more. */
const workMax = 4_000_000;

/** The longest texts that a match must contain; undefined when nothing is known. */
export function regexNeedles(node: RegexNode): Needles | undefined {
  const mode = modeOf(hasCasePair(node));
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
export function modeOf(ignoreCase: boolean): Mode {
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

/** True when the expression has a letter that matches in either case. */
export function hasCasePair(node: RegexNode): boolean {
  switch (node.kind) {
    case "set":
      return isCasePair(node);
    case "concat":
    case "alternate":
      return node.items.some(hasCasePair);
    case "repeat":
    case "group":
      return hasCasePair(node.item);
    default:
      return false;
  }
}

/** No assertion and nothing that is not worked out. */
function isPlain(node: RegexNode): boolean {
  switch (node.kind) {
    case "set":
      return true;
    case "concat":
    case "alternate":
      return node.items.every(isPlain);
    case "repeat":
    case "group":
      return isPlain(node.item);
    default:
      return false;
  }
}

/** All texts that an expression can match, when they are few or written out. */
export function exactTexts(node: RegexNode, mode: Mode): readonly string[] | undefined {
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
export function product(
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

/** The best set of texts of which a match must contain one. */
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
