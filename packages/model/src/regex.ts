import { RE2JS, RE2JSException } from "re2js";
import { invalidArgument } from "./errors.js";
import {
  type NeedleFormula,
  type Needles,
  regexFormula,
  regexNeedles,
  regexTexts,
} from "./needles.js";
import { linearRegex } from "./regex-linear.js";
import { parseRegex, type RegexNode, setHas } from "./regex-syntax.js";

/** A compiled RE2 expression: linear time on any input. */
export interface Regex {
  test(text: string): boolean;
  /** The leftmost match at or behind `from` with its groups, as Perl would choose it. */
  exec(text: string, from?: number): RegexMatch | undefined;
  /** Names of the groups 1, 2, ...; the empty string for a group without a name. */
  readonly groupNames: readonly string[];
  /** A match contains at least one of these texts: search them first. Not given when anchored. */
  readonly needles?: Needles;
  /** What else is known of texts that match. Not given when anchored. */
  readonly formula?: NeedleFormula;
  /** `exec` from match to match is linear in all; else each call is linear in the text behind `from`. */
  readonly findsAllInLinearTime: boolean;
  /** An anchored expression that matches just these texts. */
  readonly texts?: readonly string[];
}

export interface RegexMatch {
  readonly start: number;
  readonly end: number;
  /** Text of group i + 1; undefined when it took no part. */
  readonly groups: readonly (string | undefined)[];
}

/**
 * Compiles RE2 syntax. Anchored means that the whole text must match, as in label matchers; the dot then matches a
 * newline too. Throws invalid_argument with the text `error parsing regexp: ...`.
 *
 * What runs it: string searches where the expression is a set of texts or a glob (`regexGlob`), JavaScript's
 * RegExp where regex-linear.ts proves linear time, else re2js.
 */
export function compileRegex(source: string, options: { anchored: boolean }): Regex {
  const { pattern, given } = distinctNames(source);
  // compiled as written first: a bracket that closes the group around it must not pass
  const plain = compileRe2(pattern);
  const re2 = options.anchored ? compileRe2(`^(?s:${pattern})$`) : plain;
  const node = parseRegex(pattern, { dotAll: options.anchored });
  const groupNames = namesOf(plain).map((name) => given.get(name) ?? name);
  if (node === undefined) {
    return {
      groupNames,
      findsAllInLinearTime: false,
      test: (text) => re2.test(text),
      exec: execRe2(re2),
    };
  }
  const texts = options.anchored ? regexTexts(node) : undefined;
  const needles = options.anchored ? undefined : regexNeedles(node);
  const formula = options.anchored ? undefined : regexFormula(node);
  const linear = linearRegex(node, options);
  return {
    groupNames,
    findsAllInLinearTime: linear?.matchesAlike === true,
    test: compileTest(
      node,
      { ...options, texts, needles, linear: linear && jsRegExp(linear) },
      re2,
    ),
    exec: linear?.matchesAlike ? execJs(jsRegExp(linear), linear.startsAtZero) : execRe2(re2),
    ...(texts === undefined ? {} : { texts }),
    ...(needles === undefined ? {} : { needles }),
    ...(formula === undefined ? {} : { formula }),
  };
}

interface TestForms {
  readonly anchored: boolean;
  readonly texts: readonly string[] | undefined;
  readonly needles: Needles | undefined;
  readonly linear: RegExp | undefined;
}

function compileTest(node: RegexNode, forms: TestForms, re2: RE2JS): (text: string) => boolean {
  const { texts, needles, linear } = forms;
  if (texts !== undefined) {
    const set = new Set(texts);
    return (text) => set.has(text);
  }
  if (needles?.complete && !needles.ignoreCase) {
    const { values } = needles;
    if (values.length === 1) {
      const only = values[0] as string;
      return (text) => text.includes(only);
    }
  }
  const glob = regexGlob(node, forms);
  const byGlob = glob && glob.pieces.length > 1 ? compileGlob(glob) : undefined;
  if (glob !== undefined && byGlob !== undefined) {
    if (!glob.oneLine) return byGlob;
    return (text) => (text.includes("\n") ? re2.test(text) : byGlob(text));
  }
  if (linear !== undefined) {
    return (text) => {
      linear.lastIndex = 0;
      return linear.test(text);
    };
  }
  return (text) => re2.test(text);
}

function jsRegExp(linear: { source: string; startsAtZero: boolean }): RegExp {
  return new RegExp(linear.source, linear.startsAtZero ? "uy" : "ug");
}

function execJs(regexp: RegExp, startsAtZero: boolean): Regex["exec"] {
  return (text, from = 0) => {
    if (startsAtZero && from > 0) return undefined;
    regexp.lastIndex = from;
    const m = regexp.exec(text);
    if (m === null) return undefined;
    return { start: m.index, end: m.index + m[0].length, groups: m.slice(1) };
  };
}

function execRe2(re2: RE2JS): Regex["exec"] {
  const count = re2.groupCount();
  return (text, from = 0) => {
    const matcher = re2.matcher(text);
    if (from > text.length || !matcher.find(from)) return undefined;
    const groups: (string | undefined)[] = [];
    for (let i = 1; i <= count; i++) groups.push(matcher.group(i) ?? undefined);
    return { start: matcher.start(), end: matcher.end(), groups };
  };
}

function compileRe2(pattern: string): RE2JS {
  try {
    return RE2JS.compile(pattern);
  } catch (error) {
    if (error instanceof RE2JSException) {
      throw invalidArgument(wording(error.message), { cause: error });
    }
    throw error;
  }
}

/** Go's wording where re2js has another one. */
function wording(message: string): string {
  return message.replace(/(trailing backslash at end of expression)$/, "$1: ``");
}

function namesOf(re2: RE2JS): readonly string[] {
  const names: string[] = new Array(re2.groupCount()).fill("");
  for (const [name, index] of Object.entries(re2.namedGroups())) names[index - 1] = name;
  return names;
}

/** Pieces of fixed length with anything (or nothing) between neighbours: `^src=.*allow$`, `a.+b`, `.*x.*`. */
export interface Glob {
  readonly pieces: readonly GlobPiece[];
  readonly fromStart: boolean;
  readonly toEnd: boolean;
  /** The gaps do not match a newline: the form holds only for texts without one. */
  readonly oneLine: boolean;
}

/** A text, or one character set per position. */
export type GlobPiece = readonly (RegexNode & { kind: "set" })[];

/** Reads an expression as a glob; undefined when it is something else. Groups are seen through. */
function regexGlob(node: RegexNode, options: { anchored: boolean }): Glob | undefined {
  const parts: Part[] = [];
  if (!flatten(node, parts)) return undefined;
  let fromStart = options.anchored;
  let toEnd = options.anchored;
  if (parts[0] === "start") {
    fromStart = true;
    parts.shift();
  }
  if (parts.at(-1) === "end") {
    toEnd = true;
    parts.pop();
  }
  const pieces: (RegexNode & { kind: "set" })[][] = [[]];
  let oneLine = false;
  for (const part of parts) {
    if (part === "start" || part === "end") return undefined;
    if (part === "gap" || part === "line-gap") {
      if (part === "line-gap") oneLine = true;
      pieces.push([]);
    } else (pieces.at(-1) as GlobPiece[number][]).push(part);
  }
  return { pieces, fromStart, toEnd, oneLine };
}

type Part = (RegexNode & { kind: "set" }) | "gap" | "line-gap" | "start" | "end";

const partsMax = 512;

function flatten(node: RegexNode, into: Part[]): boolean {
  if (into.length > partsMax) return false;
  switch (node.kind) {
    case "set":
      into.push(node);
      return true;
    case "group":
      return flatten(node.item, into);
    case "concat":
      return node.items.every((item) => flatten(item, into));
    case "assert":
      if (node.what !== "text-start" && node.what !== "text-end") return false;
      into.push(node.what === "text-start" ? "start" : "end");
      return true;
    case "repeat":
      return flattenRepeat(node, into);
    default:
      return false;
  }
}

function flattenRepeat(node: RegexNode & { kind: "repeat" }, into: Part[]): boolean {
  if (node.max === Number.POSITIVE_INFINITY) {
    if (node.item.kind !== "set" || node.min > 1) return false;
    const { set } = node.item;
    const dot = set[0] === 0 && set.at(-1) === 0x10ffff;
    const isAny = dot && set.length === 2;
    const isLine = dot && set.length === 4 && set[1] === 9 && set[2] === 11;
    if (!isAny && !isLine) return false;
    if (node.min === 1) into.push(node.item);
    into.push(isAny ? "gap" : "line-gap");
    return true;
  }
  if (node.min !== node.max || node.max > 64) return false;
  for (let i = 0; i < node.max; i++) if (!flatten(node.item, into)) return false;
  return true;
}

/** The text of a piece that has one character at each position. */
function pieceText(piece: GlobPiece): string | undefined {
  let text = "";
  for (const { set } of piece) {
    const code = set[0] as number;
    if (set.length !== 2 || code !== set[1] || (code >= 0xd800 && code <= 0xdfff)) return undefined;
    text += String.fromCodePoint(code);
  }
  return text;
}

/** Tests a text; the pieces are searched from left to right, each as early as it fits. */
function compileGlob(glob: Glob): ((text: string) => boolean) | undefined {
  const finders = glob.pieces.map(compilePiece);
  if (finders.some((finder) => finder === undefined)) return undefined;
  const pieces = finders as readonly PieceFinder[];
  const last = pieces.length - 1;
  return (text) => {
    let at = 0;
    for (let i = 0; i <= last; i++) {
      const piece = pieces[i] as PieceFinder;
      if (i === 0 && glob.fromStart) {
        at = piece.matchAt(text, 0);
        if (i === last && glob.toEnd) return at === text.length;
      } else if (i === last && glob.toEnd) {
        const start = piece.startBefore(text, text.length);
        return start >= at && piece.matchAt(text, start) === text.length;
      } else at = piece.find(text, at);
      if (at < 0) return false;
    }
    return true;
  };
}

interface PieceFinder {
  /** End of the match at `at`, or -1. */
  matchAt(text: string, at: number): number;
  /** End of the first match at or behind `at`, or -1. */
  find(text: string, at: number): number;
  /** Where a match that ends at `end` starts, or -1 when it does not fit. */
  startBefore(text: string, end: number): number;
}

function compilePiece(piece: GlobPiece): PieceFinder | undefined {
  const text = pieceText(piece);
  if (text !== undefined) {
    return {
      matchAt: (subject, at) => (subject.startsWith(text, at) ? at + text.length : -1),
      find: (subject, at) => {
        const found = subject.indexOf(text, at);
        return found < 0 ? -1 : found + text.length;
      },
      startBefore: (_, end) => end - text.length,
    };
  }
  const matchAt = (subject: string, at: number) => {
    for (const { set } of piece) {
      const code = subject.codePointAt(at);
      if (code === undefined || !setHas(set, code)) return -1;
      at += code > 0xffff ? 2 : 1;
    }
    return at;
  };
  const find = (subject: string, at: number) => {
    for (let start = at; start <= subject.length; start++) {
      if (isInsidePair(subject, start)) continue;
      const end = matchAt(subject, start);
      if (end >= 0) return end;
    }
    return -1;
  };
  const startBefore = (subject: string, end: number) => {
    let start = end;
    for (let i = 0; i < piece.length; i++) {
      start--;
      if (isInsidePair(subject, start)) start--;
    }
    return start;
  };
  return { matchAt, find, startBefore };
}

/** True between the halves of a surrogate pair. */
function isInsidePair(text: string, at: number): boolean {
  if (at <= 0 || at >= text.length) return false;
  const low = text.charCodeAt(at);
  if (low < 0xdc00 || low > 0xdfff) return false;
  const high = text.charCodeAt(at - 1);
  return high >= 0xd800 && high <= 0xdbff;
}

/** An expression whose named groups have names of their own, and what they were called. */
export interface DistinctNames {
  readonly pattern: string;
  /** The name given for each made-up one. */
  readonly given: ReadonlyMap<string, string>;
}

/** What is not a group, or one with its name: an escape, quoted text, a class. */
const piece =
  /\\Q[\s\S]*?(?:\\E|$)|\\[\s\S]|\[\^?\]?(?:\[:\^?\w+:\]|\\[\s\S]|[^\]\\])*\]|\(\?P?<(\w+)>/g;

/** Several groups may have one name in RE2 syntax as Go reads it, but not in what runs it here. */
function distinctNames(pattern: string): DistinctNames {
  const given = new Map<string, string>();
  if (!pattern.includes("<")) return { pattern, given };
  const seen = new Set<string>();
  const distinct = pattern.replace(piece, (text, name?: string) => {
    if (name === undefined || !seen.has(name)) {
      if (name !== undefined) seen.add(name);
      return text;
    }
    let other = `${name}_${given.size}`;
    while (pattern.includes(other)) other += "_";
    given.set(other, name);
    return `(?P<${other}>`;
  });
  return { pattern: distinct, given };
}

/** `$1`, `$name`, `${name}` and `$$` in a replacement; a bare name is as long as it can be. */
const groupReference = /\$(?:\$|([\p{L}\p{Nd}_]+)|\{([\p{L}\p{Nd}_]+)\})/gu;

/**
 * Compiles the replacement of matches, as Go's Regexp.Expand reads it; a lone `$` stands for itself. Gives the texts that
 * a match is replaced by, one behind the other. Of several groups of one name the first that took part counts.
 */
export function compileReplacement(
  template: string,
  { groupNames }: Regex,
): (whole: string, groups: RegexMatch["groups"]) => string[] {
  const parts: ((groups: RegexMatch["groups"]) => string)[] = [];
  const names = ["", ...groupNames];
  let from = 0;
  for (const match of template.matchAll(groupReference)) {
    const text = template.slice(from, match.index);
    const name = match[1] ?? match[2];
    from = match.index + match[0].length;
    if (name === undefined) parts.push(() => `${text}$`);
    else if (/^(?:0|[1-9]\d*)$/.test(name))
      parts.push((groups) => text + (groups[Number(name)] ?? ""));
    else {
      const isNamed = (group: string | undefined, i: number) =>
        names[i] === name && group !== undefined;
      parts.push((groups) => text + (groups.find(isNamed) ?? ""));
    }
  }
  const rest = template.slice(from);
  return (whole, groups) => {
    const all = [whole, ...groups];
    return [...parts.map((part) => part(all)), rest];
  };
}
