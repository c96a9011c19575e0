import { invalidArgument, type Matcher, type Regex, SkaldError } from "@skald/model";
import {
  type Expr,
  type LabelFilter,
  type RangeOp,
  rangeFacts,
  type VectorOp,
  vectorKinds,
} from "./ast.js";

type CompileRegex = (pattern: string, options: { readonly anchored: boolean }) => Regex;

let compileRegex: CompileRegex | undefined;

/**
 * Gives the parser what compiles regular expressions: `@skald/logql/regex` does so when it is loaded. Until then the parser takes
 * every expression, so that a page in a browser can parse queries before it has loaded the code of RE2.
 */
export function checkRegexesWith(compile: CompileRegex): void {
  compileRegex = compile;
}

/** True when a stream without any of the labels would satisfy every matcher, which includes `{}`. */
export function isEmptyCompatible(matchers: readonly Matcher[]): boolean {
  return matchers.every((matcher) => {
    const { op, value } = matcher;
    if (op === "=") return value === "";
    if (op === "!=") return value !== "";
    if (plainRegex.test(value)) return value.split("|").includes("") === (op === "=~");
    const compiled = compileRegex?.(value, { anchored: true });
    return compiled !== undefined && compiled.test("") === (op === "=~");
  });
}

export const emptyCompatibleReason =
  "queries require at least one regexp or equality matcher that does not have an empty-compatible value. " +
  'For instance, app=~".*" does not meet this requirement, but app=~".+" will';

/** Expressions of names joined by `|` are valid as they stand: no need to compile them. */
const plainRegex = /^[\w /:|-]*$/;

/** Why an RE2 expression that must match all of a text is not valid, or undefined. */
export function regexError(pattern: string): string | undefined {
  if (plainRegex.test(pattern)) return undefined;
  const compiled = tryCompile(pattern, { anchored: true });
  return typeof compiled === "string" ? compiled : undefined;
}

/** Why the expression of a `regexp` stage is refused: it needs at least one named group. */
export function regexpStageError(pattern: string): string | undefined {
  const compiled = tryCompile(pattern, { anchored: false });
  if (compiled === undefined) return undefined;
  if (typeof compiled === "string") return `invalid regexp parser: ${compiled}`;
  const names = compiled.groupNames.filter(Boolean);
  const twice = names.find((name, at) => names.indexOf(name) !== at);
  if (twice !== undefined)
    return `invalid regexp parser: duplicate extracted label name '${twice}'`;
  if (names.length > 0) return undefined;
  return "invalid regexp parser: at least one named capture must be supplied";
}

/** Longest reason; it repeats the expression, which may be as long as the query. */
const reasonCharsMax = 300;

function tryCompile(pattern: string, options: { anchored: boolean }): Regex | string | undefined {
  try {
    return compileRegex?.(pattern, options);
  } catch (error) {
    if (!(error instanceof SkaldError)) throw error;
    const { message } = error;
    return message.length > reasonCharsMax ? `${message.slice(0, reasonCharsMax)}...` : message;
  }
}

/** Why the expression of a `pattern` stage is refused. */
export function patternStageError(pattern: string): string | undefined {
  try {
    parseCapturingPattern(pattern);
    return undefined;
  } catch (error) {
    return `invalid pattern parser: ${(error as SkaldError).message}`;
  }
}

/** Why a range aggregation is refused: its number, its grouping, or an unwrap that is missing or one too many. */
export function rangeAggregationError(
  op: RangeOp,
  given: {
    /** The number in front, as written. */
    readonly parameter: string | undefined;
    readonly unwrapped: boolean;
    readonly grouped: boolean;
  },
): string | undefined {
  const needsParameter = op === "quantile_over_time";
  if (needsParameter && given.parameter === undefined) {
    return `parameter required for operation ${op}`;
  }
  if (!needsParameter && given.parameter !== undefined) {
    return `parameter ${given.parameter} not supported for operation ${op}`;
  }
  if (given.grouped && !rangeFacts[op].groups) return `grouping not allowed for ${op} aggregation`;
  const { unwraps } = rangeFacts[op];
  if (unwraps === "either" || unwraps === (given.unwrapped ? "always" : "never")) return undefined;
  return `invalid aggregation ${op} ${given.unwrapped ? "with" : "without"} unwrap`;
}

/** Why a vector aggregation is refused: its number or its grouping. */
export function vectorAggregationError(
  op: VectorOp,
  given: {
    readonly parameter: number | undefined;
    /** The number as written. */
    readonly parameterText: string | undefined;
    readonly grouped: boolean;
  },
): string | undefined {
  const { parameter, parameterText, grouped } = given;
  const ranks = vectorKinds[op] === "ranks";
  if (!ranks && parameter !== undefined) {
    return `unsupported parameter for operation ${op}(${parameterText},`;
  }
  if (ranks && parameter === undefined) return `parameter required for operation ${op}`;
  if (parameter !== undefined && !Number.isSafeInteger(parameter)) {
    return `invalid parameter ${op}(${parameterText},`;
  }
  if (parameter !== undefined && parameter <= 0) {
    return `invalid parameter (must be greater than 0) ${op}(${parameterText}`;
  }
  if (grouped && vectorKinds[op] === "sorts") {
    return "sort and sort_desc doesn't allow grouping by";
  }
  return grouped && op === "approx_topk" ? `grouping not allowed for ${op} aggregation` : undefined;
}

/** True when a tree is low enough to be walked by recursion; filters may reach further down than expressions. */
export function isWithinHeight(
  expr: Expr,
  levelsMax: { readonly expression: number; readonly filter: number },
): boolean {
  let level: readonly Walkable[] = [expr];
  for (let height = 0; level.length > 0; height++) {
    if (height > levelsMax.filter) return false;
    if (height > levelsMax.expression && !level.every(isFilter)) return false;
    level = level.flatMap(childrenOf);
  }
  return true;
}

function isFilter(node: Walkable): boolean {
  return node.kind === "and" || node.kind === "or" || "name" in node || "matcher" in node;
}

type Walkable = Expr | LabelFilter;

function childrenOf(node: Walkable): readonly Walkable[] {
  switch (node.kind) {
    case "binary":
    case "and":
    case "or":
      return [node.left, node.right];
    case "vector_aggregation":
    case "label_replace":
      return [node.inner];
    case "range_aggregation":
      return [node.log, ...(node.unwrap?.filters ?? [])];
    case "log":
      return node.stages.flatMap((stage) => (stage.kind === "label_filter" ? [stage.filter] : []));
    default:
      return [];
  }
}

/** One piece of a pattern; the name `_` captures without a label. */
export type PatternPiece =
  | { readonly kind: "literal"; readonly text: string }
  | { readonly kind: "capture"; readonly name: string };

/** Parses `<ip> - <_> "<method> <path>"`: literals and captures by turns. Throws invalid_argument. */
function parsePattern(pattern: string, isNamed: boolean): readonly PatternPiece[] {
  const pieces: PatternPiece[] = [];
  const names = new Set<string>();
  let from = 0;
  for (const { index, 0: capture, 1: name = "" } of pattern.matchAll(/<([A-Za-z_]\w*)>/g)) {
    if (index > from) pieces.push({ kind: "literal", text: pattern.slice(from, index) });
    const before = pieces.at(-1);
    if (before?.kind === "capture") {
      throw invalidArgument(
        `found consecutive capture '<${before.name}>${capture}': invalid expression`,
      );
    }
    if (isNamed && names.has(name)) {
      throw invalidArgument(`duplicate capture name (${name}): invalid expression`);
    }
    if (name !== "_") names.add(name);
    pieces.push({ kind: "capture", name });
    from = index + capture.length;
  }
  if (from < pattern.length) pieces.push({ kind: "literal", text: pattern.slice(from) });
  return pieces;
}

/** Parses the pattern of a `pattern` stage, which needs a named capture and no name twice. Throws invalid_argument. */
export function parseCapturingPattern(pattern: string): readonly PatternPiece[] {
  const pieces = parsePattern(pattern, true);
  if (pieces.some((piece) => piece.kind === "capture" && piece.name !== "_")) return pieces;
  throw invalidArgument("at least one capture is required");
}

/** Parses the pattern of a `|>` line filter, whose captures have no names. Throws invalid_argument. */
export function parseMatchingPattern(pattern: string): readonly PatternPiece[] {
  const pieces = parsePattern(pattern, false);
  for (const piece of pieces) {
    if (piece.kind !== "capture" || piece.name === "_") continue;
    throw invalidArgument(`named captures are not allowed: found '<${piece.name}>'`);
  }
  return pieces;
}

/**
 * Estimates what it takes to compile an RE2 expression, in instructions, in time linear to its length. Made before compiling,
 * because a short text can ask for much time and memory.
 */
export function regexCost(pattern: string): number {
  return programCost(pattern) + classCost(pattern);
}

/** To make the ranges of `\pL` takes as long as to make this many instructions. */
const unicodeClassCost = 80;
/** The last character with another case: RE2 looks at each character of a range up to it, to fold it. */
const lastFolded = 0x1e943;
/** That many take as long as one instruction. */
const foldedPerInstruction = 64;

/** What classes take while the expression is read, however often they are repeated. */
function classCost(pattern: string): number {
  const unicode = unicodeClassCost * (pattern.match(/\\[pP]/g)?.length ?? 0);
  if (!/\(\?[A-Za-z]*i/.test(pattern)) return unicode;
  let folded = 0;
  for (const [, hex, char = ""] of pattern.matchAll(/-(?:\\x\{([\da-fA-F]+)\}|(\P{ASCII}))/gu)) {
    const last = hex === undefined ? char.codePointAt(0)! : Number.parseInt(hex, 16);
    folded += Math.min(last, lastFolded);
  }
  return unicode + Math.ceil(folded / foldedPerInstruction);
}

/** The instructions of the program; a repetition such as `(.{30}x){33}` costs as much as its copies. */
function programCost(pattern: string): number {
  if (!pattern.includes("{")) return pattern.length;
  const lastNamedEnd = pattern.lastIndexOf(":]");
  const outer: number[] = [];
  let sum = 0;
  let last = 0;
  for (let at = 0; at < pattern.length; ) {
    const end = pieceEnd(pattern, at, lastNamedEnd);
    const char = pattern[at];
    if (char === "(") {
      outer.push(sum);
      sum = 0;
      last = 0;
    } else if (char === ")") {
      // One that closes nothing, which RE2 refuses, counts all before it.
      last = sum + 2;
      sum = (outer.pop() ?? 0) + last;
    } else if (char === "{" && end > at + 1) {
      const grown = last * Math.max(1, timesOf(pattern.slice(at + 1, end - 1)));
      sum += grown - last;
      last = grown;
    } else {
      last = end - at;
      sum += last;
    }
    at = end;
  }
  return outer.reduce((total, cost) => total + cost, sum);
}

/** Offset behind an escape, a quoted run, a class, a repetition, or the one character that stands here. */
function pieceEnd(pattern: string, at: number, lastNamedEnd: number): number {
  if (pattern[at] === "[") return classEnd(pattern, at, lastNamedEnd);
  if (pattern.startsWith("\\Q", at)) {
    const close = pattern.indexOf("\\E", at + 2);
    return close < 0 ? pattern.length : close + 2;
  }
  piecePattern.lastIndex = at;
  return at + (piecePattern.exec(pattern)?.[0].length ?? 1);
}

const piecePattern = /\\[pPx]\{[^{}]{0,40}\}|\\[\s\S]|\{\d{1,9}(?:,\d{0,9})?\}/y;

/** Offset behind the class that starts here, with `[:alpha:]` inside; the end of the text when it is not closed. */
function classEnd(pattern: string, start: number, lastNamedEnd: number): number {
  let at = start + 1;
  if (pattern[at] === "^") at++;
  if (pattern[at] === "]") at++;
  for (; at < pattern.length; at++) {
    const char = pattern[at];
    if (char === "]") return at + 1;
    if (char === "\\") at++;
    else if (at + 2 <= lastNamedEnd && pattern.startsWith("[:", at)) {
      at = pattern.indexOf(":]", at + 2) + 1;
    }
  }
  return pattern.length;
}

/** The larger number of `2`, `2,`, `2,5`. */
function timesOf(counts: string): number {
  return Math.max(...counts.split(",").map(Number));
}
