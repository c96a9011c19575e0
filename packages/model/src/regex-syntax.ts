/** RE2 syntax as a tree; case folding is already resolved into the sets. */
export type RegexNode =
  | { readonly kind: "set"; readonly set: CharSet }
  /** One character of a class that is not worked out here, such as `\p{Greek}`. */
  | { readonly kind: "opaque" }
  | { readonly kind: "assert"; readonly what: RegexAssertion }
  | { readonly kind: "concat"; readonly items: readonly RegexNode[] }
  | { readonly kind: "alternate"; readonly items: readonly RegexNode[] }
  | {
      readonly kind: "repeat";
      readonly item: RegexNode;
      readonly min: number;
      /** Infinity when open */
      readonly max: number;
      readonly greedy: boolean;
    }
  | { readonly kind: "group"; readonly item: RegexNode; readonly name: string };

/** True when a test holds for the node or one inside it. */
export function someNode(node: RegexNode, test: (node: RegexNode) => boolean): boolean {
  if (test(node)) return true;
  if ("items" in node) return node.items.some((item) => someNode(item, test));
  return "item" in node && someNode(node.item, test);
}

type RegexAssertion = "text-start" | "text-end" | "line-start" | "line-end" | "word" | "not-word";

interface Flags {
  fold: boolean;
  multiline: boolean;
  dotAll: boolean;
  ungreedy: boolean;
}

/**
 * Parses an expression that re2js has accepted; undefined for the rare forms that are not understood here.
 * With `dotAll` the dot matches a newline from the start.
 */
export function parseRegex(pattern: string, options: { dotAll: boolean }): RegexNode | undefined {
  const parser = new Parser(pattern);
  const node = parser.alternation({
    fold: false,
    multiline: false,
    dotAll: options.dotAll,
    ungreedy: false,
  });
  return parser.understood && parser.atEnd ? node : undefined;
}

const anything: CharSet = [0, 0x10ffff];
const anythingButNewline: CharSet = [0, 9, 11, 0x10ffff];

class Parser {
  readonly #text: readonly string[];
  #at = 0;
  understood = true;

  constructor(pattern: string) {
    this.#text = [...pattern];
  }

  get atEnd(): boolean {
    return this.#at >= this.#text.length;
  }

  /** Flags set inside, `(?i)`, hold until the end of the enclosing group. */
  alternation(flags: Flags): RegexNode {
    const own = { ...flags };
    const branches: RegexNode[] = [this.#sequence(own)];
    while (this.#accept("|")) branches.push(this.#sequence(own));
    return branches.length === 1
      ? (branches[0] as RegexNode)
      : { kind: "alternate", items: branches };
  }

  #sequence(flags: Flags): RegexNode {
    const items: RegexNode[] = [];
    while (!this.atEnd && this.#peek() !== "|" && this.#peek() !== ")") {
      const atom = this.#atom(flags);
      if (atom !== undefined) items.push(...this.#repeated(atom, flags));
    }
    return items.length === 1 ? (items[0] as RegexNode) : { kind: "concat", items };
  }

  #repeated(atoms: readonly RegexNode[], flags: Flags): readonly RegexNode[] {
    const last = atoms.at(-1);
    const bounds = last === undefined ? undefined : this.#bounds();
    if (last === undefined || bounds === undefined) return atoms;
    const lazy = this.#accept("?");
    const [min, max] = bounds;
    return [
      ...atoms.slice(0, -1),
      { kind: "repeat", item: last, min, max, greedy: lazy === flags.ungreedy },
    ];
  }

  #bounds(): readonly [number, number] | undefined {
    if (this.#accept("*")) return [0, Number.POSITIVE_INFINITY];
    if (this.#accept("+")) return [1, Number.POSITIVE_INFINITY];
    if (this.#accept("?")) return [0, 1];
    const m = /^\{(\d+)(?:(,)(\d*))?\}/.exec(this.#ahead(24));
    if (m === null) return undefined;
    this.#at += m[0].length;
    const min = Number(m[1]);
    if (m[2] === undefined) return [min, min];
    return [min, m[3] === "" ? Number.POSITIVE_INFINITY : Number(m[3])];
  }

  /** The next atom; several for a quoted run, none for a flag group. */
  #atom(flags: Flags): readonly RegexNode[] | undefined {
    const c = this.#next();
    switch (c) {
      case "(":
        return this.#group(flags);
      case "[":
        return [this.#bracket(flags)];
      case ".":
        return [{ kind: "set", set: flags.dotAll ? anything : anythingButNewline }];
      case "^":
        return [{ kind: "assert", what: flags.multiline ? "line-start" : "text-start" }];
      case "$":
        return [{ kind: "assert", what: flags.multiline ? "line-end" : "text-end" }];
      case "\\":
        return this.#escape(flags);
      case "*":
      case "+":
      case "?":
        // a quantifier behind a flag group repeats the atom before it
        return [this.#giveUpNode()];
      default:
        return [literal(c, flags)];
    }
  }

  #group(flags: Flags): readonly RegexNode[] | undefined {
    let name: string | undefined = "";
    let inner = flags;
    if (this.#accept("?")) {
      const named = /^P?<([^>]+)>/.exec(this.#ahead(200));
      const set = /^([imsU]*)(?:-([imsU]+))?([:)])/.exec(this.#ahead(24));
      if (named !== null) {
        this.#at += [...named[0]].length;
        name = named[1];
      } else if (set !== null) {
        this.#at += set[0].length;
        inner = { ...flags };
        applyFlags(inner, set[1] as string, true);
        applyFlags(inner, set[2] ?? "", false);
        if (set[3] === ")") {
          Object.assign(flags, inner);
          if (this.#peek() === "{") this.understood = false;
          return undefined;
        }
        name = undefined;
      } else {
        this.understood = false;
        this.#at = this.#text.length;
        return undefined;
      }
    }
    const item = this.alternation(inner);
    if (!this.#accept(")")) this.understood = false;
    if (name === undefined) return [item];
    return [{ kind: "group", item, name }];
  }

  #escape(flags: Flags): readonly RegexNode[] {
    const c = this.#next();
    if (c === "Q") return this.#quoted(flags);
    const assertion = assertions[c];
    if (assertion !== undefined) return [{ kind: "assert", what: assertion }];
    const perl = perlSet(c, flags.fold);
    if (perl !== undefined) return [{ kind: "set", set: perl }];
    if (c === "p" || c === "P") {
      this.#unicodeClass();
      return [{ kind: "opaque" }];
    }
    return [literal(String.fromCodePoint(this.#escapedCode(c)), flags)];
  }

  #quoted(flags: Flags): readonly RegexNode[] {
    const items: RegexNode[] = [];
    while (!this.atEnd) {
      if (this.#peek() === "\\" && this.#text[this.#at + 1] === "E") {
        this.#at += 2;
        break;
      }
      items.push(literal(this.#next(), flags));
    }
    return items;
  }

  #unicodeClass(): void {
    if (this.#next() !== "{") return;
    while (!this.atEnd && this.#next() !== "}");
  }

  #escapedCode(c: string): number {
    if (c === "x") {
      const hex = /^(?:\{([0-9a-fA-F]+)\}|([0-9a-fA-F]{2}))/.exec(this.#ahead(12));
      if (hex === null) return this.#giveUp();
      this.#at += hex[0].length;
      return Number.parseInt((hex[1] ?? hex[2]) as string, 16);
    }
    if (/[0-7]/.test(c)) {
      const octal = /^[0-7]{0,2}/.exec(this.#ahead(2))?.[0] ?? "";
      this.#at += octal.length;
      return Number.parseInt(c + octal, 8);
    }
    const control = controls[c];
    if (control !== undefined) return control;
    return /[a-zA-Z89]/.test(c) ? this.#giveUp() : (c.codePointAt(0) as number);
  }

  #bracket(flags: Flags): RegexNode {
    const negated = this.#accept("^");
    const ranges: number[] = [];
    let opaque = false;
    for (let first = true; first || this.#peek() !== "]"; first = false) {
      if (this.atEnd) return this.#giveUpNode();
      const posix = /^\[:(\^?)(\w+):\]/.exec(this.#ahead(16));
      if (posix !== null) {
        this.#at += posix[0].length;
        const set = posixSets[posix[2] as string];
        if (set === undefined) return this.#giveUpNode();
        ranges.push(...(posix[1] === "^" ? negateSet(set) : set));
        continue;
      }
      const item = this.#bracketItem(flags);
      if (item === undefined) opaque = true;
      else if (typeof item === "object") ranges.push(...item);
      else ranges.push(item, this.#rangeEnd(item));
    }
    this.#at++;
    if (opaque) return { kind: "opaque" };
    const set = charSet(ranges);
    const folded = flags.fold ? foldSet(set) : set;
    if (folded === undefined) return { kind: "opaque" };
    return { kind: "set", set: negated ? negateSet(folded) : folded };
  }

  /** One end of a range, a set, or undefined for a class that is not worked out. */
  #bracketItem(flags: Flags): number | CharSet | undefined {
    const c = this.#next();
    if (c !== "\\") return c.codePointAt(0) as number;
    const e = this.#next();
    const perl = perlSet(e, flags.fold);
    if (perl !== undefined) return perl;
    if (e !== "p" && e !== "P") return this.#escapedCode(e);
    this.#unicodeClass();
    return undefined;
  }

  #rangeEnd(start: number): number {
    if (this.#peek() !== "-" || this.#text[this.#at + 1] === "]") return start;
    this.#at++;
    const c = this.#next();
    return c === "\\" ? this.#escapedCode(this.#next()) : (c.codePointAt(0) as number);
  }

  #giveUp(): number {
    this.understood = false;
    return 0;
  }

  #giveUpNode(): RegexNode {
    this.understood = false;
    this.#at = this.#text.length;
    return { kind: "opaque" };
  }

  #peek(): string | undefined {
    return this.#text[this.#at];
  }

  #next(): string {
    return this.#text[this.#at++] ?? "";
  }

  #accept(c: string): boolean {
    if (this.#text[this.#at] !== c) return false;
    this.#at++;
    return true;
  }

  #ahead(count: number): string {
    return this.#text.slice(this.#at, this.#at + count).join("");
  }
}

function applyFlags(flags: Flags, letters: string, on: boolean): void {
  if (letters.includes("i")) flags.fold = on;
  if (letters.includes("m")) flags.multiline = on;
  if (letters.includes("s")) flags.dotAll = on;
  if (letters.includes("U")) flags.ungreedy = on;
}

function literal(c: string, flags: Flags): RegexNode {
  const code = c.codePointAt(0) ?? 0;
  if (!flags.fold) return { kind: "set", set: [code, code] };
  const set = foldSet([code, code]);
  return set === undefined ? { kind: "opaque" } : { kind: "set", set };
}

const assertions: Readonly<Record<string, RegexAssertion | undefined>> = {
  A: "text-start",
  z: "text-end",
  b: "word",
  B: "not-word",
};
const controls: Readonly<Record<string, number | undefined>> = {
  a: 7,
  f: 12,
  t: 9,
  n: 10,
  r: 13,
  v: 11,
};

/** A set of code points: sorted disjoint ranges, first, last, first, last, ... */
export type CharSet = readonly number[];

const maxCode = 0x10ffff;

/** Sorts and joins ranges given in any order. */
export function charSet(ranges: readonly number[]): CharSet {
  const pairs: [number, number][] = [];
  for (let i = 0; i < ranges.length; i += 2) {
    pairs.push([ranges[i] as number, ranges[i + 1] as number]);
  }
  pairs.sort((a, b) => a[0] - b[0]);
  const joined: number[] = [];
  for (const [first, last] of pairs) {
    const end = joined.at(-1);
    if (end !== undefined && first <= end + 1) joined[joined.length - 1] = Math.max(end, last);
    else joined.push(first, last);
  }
  return joined;
}

export function negateSet(set: CharSet): CharSet {
  const inverse: number[] = [];
  let next = 0;
  for (let i = 0; i < set.length; i += 2) {
    if ((set[i] as number) > next) inverse.push(next, (set[i] as number) - 1);
    next = (set[i + 1] as number) + 1;
  }
  if (next <= maxCode) inverse.push(next, maxCode);
  return inverse;
}

export function setsMeet(a: CharSet, b: CharSet): boolean {
  for (let i = 0, j = 0; i < a.length && j < b.length; ) {
    if ((a[i + 1] as number) < (b[j] as number)) i += 2;
    else if ((b[j + 1] as number) < (a[i] as number)) j += 2;
    else return true;
  }
  return false;
}

export function setHas(set: CharSet, code: number): boolean {
  for (let i = 0; i < set.length; i += 2) {
    if (code >= (set[i] as number) && code <= (set[i + 1] as number)) return true;
  }
  return false;
}

/**
 * Adds the other case of ASCII letters, and of k and s the signs that fold to them (U+212A, U+017F); undefined when
 * the set holds other characters, whose folding is left to the regex engine.
 */
function foldSet(set: CharSet): CharSet | undefined {
  const ranges: number[] = [...set];
  for (let i = 0; i < set.length; i += 2) {
    const first = set[i] as number;
    const last = set[i + 1] as number;
    if (last > 127) return undefined;
    for (let code = first; code <= last; code++) {
      if ((code >= 65 && code <= 90) || (code >= 97 && code <= 122)) {
        ranges.push(code ^ 32, code ^ 32);
      }
      if ((code | 32) === 107) ranges.push(0x212a, 0x212a);
      if ((code | 32) === 115) ranges.push(0x17f, 0x17f);
    }
  }
  return charSet(ranges);
}

const digit: CharSet = [48, 57];
const space: CharSet = [9, 10, 12, 13, 32, 32];
const word: CharSet = [48, 57, 65, 90, 95, 95, 97, 122];

const perlSets: Readonly<Record<string, CharSet | undefined>> = { d: digit, s: space, w: word };

/** `\d` and its kin: ASCII only, unless folding adds to them; undefined for any other letter. */
function perlSet(letter: string, fold: boolean): CharSet | undefined {
  const set = perlSets[letter.toLowerCase()];
  if (set === undefined) return undefined;
  const folded = fold ? (foldSet(set) as CharSet) : set;
  return letter === letter.toLowerCase() ? folded : negateSet(folded);
}

/** `[[:alpha:]]` and its kin. */
const posixSets: Readonly<Record<string, CharSet | undefined>> = {
  alnum: [48, 57, 65, 90, 97, 122],
  alpha: [65, 90, 97, 122],
  ascii: [0, 127],
  blank: [9, 9, 32, 32],
  cntrl: [0, 31, 127, 127],
  digit,
  graph: [33, 126],
  lower: [97, 122],
  print: [32, 126],
  punct: [33, 47, 58, 64, 91, 96, 123, 126],
  space: [9, 13, 32, 32],
  upper: [65, 90],
  word,
  xdigit: [48, 57, 65, 70, 97, 102],
};
