import { RE2JS, RE2JSException } from "re2js";
import { invalidArgument } from "../errors.js";
import type { NeedleFormula } from "../needle/formula.js";
import { regexFormula } from "./formula.js";
import { compileGlob, regexGlob } from "./glob.js";
import { type DistinctNames, distinctNames } from "./group-names.js";
import { linearRegex } from "./linear.js";
import { type Needles, regexNeedles, regexTexts } from "./needles.js";
import { parseRegex, type RegexNode } from "./syntax.js";

/** A compiled RE2 expression: linear time on any input. */
export interface Regex {
  test(text: string): boolean;
  /** The leftmost match at or behind `from` with its groups, as Perl would choose it. */
  exec(text: string, from?: number): RegexMatch | undefined;
  /** Names of the groups 1, 2, ...; the empty string for a group without a name. */
  readonly groupNames: readonly string[];
  /** Texts of which a match contains at least one: search them first. Not given when anchored. */
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
 * What runs it: string searches where the expression is a set of texts or a glob (regex-glob.ts), JavaScript's
 * RegExp where regex-linear.ts proves linear time, else re2js.
 */
export function compileRegex(source: string, options: { anchored: boolean }): Regex {
  const { pattern, given } = source.includes("<") ? distinctNames(source) : unnamed(source);
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

function unnamed(pattern: string): DistinctNames {
  return { pattern, given: noNames };
}

const noNames: ReadonlyMap<string, string> = new Map();

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
