import type { Token } from "@skald/logql/syntax";
import { formatMatcher, type Matcher, quote } from "@skald/model";
import { partsOf, type SelectorPart } from "./parts.js";

/**
 * Changes of a query's text. Each returns a new text in which only the part that it names is different: comments, line breaks
 * and the user's way of writing stay.
 */

/** Adds a matcher to every selector. */
export function addMatcher(text: string, matcher: Matcher): string {
  return splice(
    text,
    partsOf(text).selectors.map(({ start, matchers }) => {
      const last = matchers.at(-1);
      const at = last?.end ?? start + 1;
      return { start: at, end: at, text: (last ? ", " : "") + formatMatcher(matcher) };
    }),
  );
}

/** Removes a matcher of a selector, and the comma that it leaves. */
export function removeMatcher(text: string, selector: number, index: number): string {
  const { tokens, selectors } = partsOf(text);
  const matcher = selectors[selector]?.matchers[index];
  if (matcher === undefined) return text;
  const after = tokens.find(({ start }) => start >= matcher.end);
  if (after?.type === ",") {
    const next = tokens.find(({ start }) => start >= after.end);
    const gap = text.slice(after.end, next?.start ?? after.end);
    const end = /^\s*$/.test(gap) ? after.end + gap.length : after.end;
    return splice(text, [{ start: matcher.start, end, text: "" }]);
  }
  const before = tokens.findLast(({ end }) => end <= matcher.start);
  const gap = before === undefined ? "" : text.slice(before.end, matcher.start);
  const edits = [{ start: matcher.start, end: matcher.end, text: "" }];
  if (before?.type === ",") {
    const end = /^\s*$/.test(gap) ? matcher.start : before.end;
    edits.unshift({ start: before.start, end, text: "" });
  }
  return splice(text, edits);
}

/** Puts another matcher in the place of one. */
export function replaceMatcher(
  text: string,
  selector: number,
  index: number,
  matcher: Matcher,
): string {
  const part = partsOf(text).selectors[selector]?.matchers[index];
  if (part === undefined) return text;
  return splice(text, [{ start: part.start, end: part.end, text: formatMatcher(matcher) }]);
}

/**
 * Adds a stage, written with its pipe, behind the stages of every selector and before an unwrap. Behind a drop or keep that
 * ends in a name `!= "x"` would read as a matcher of that name; there the new stage stands before it.
 */
export function addStage(text: string, stage: string): string {
  const swallowed = stage.startsWith("!=") || stage.startsWith("!~");
  return splice(
    text,
    partsOf(text).selectors.map(({ end, stages }) => {
      let count = stages.length;
      while (swallowed && count > 0 && endsInTarget(stages[count - 1]!.tokens)) count--;
      const at = stages[count - 1]?.end ?? end;
      return { start: at, end: at, text: ` ${stage}` };
    }),
  );
}

function endsInTarget(tokens: readonly Token[]): boolean {
  const word = tokens[1]?.type;
  return (word === "drop" || word === "keep") && tokens.at(-1)?.type === "IDENTIFIER";
}

export function removeStage(text: string, selector: number, index: number): string {
  const stage = partsOf(text).selectors[selector]?.stages[index];
  if (stage === undefined) return text;
  let { start } = stage;
  while (text[start - 1] === " " || text[start - 1] === "\t") start--;
  const glued = start > 0 && !/\s/.test(text[start - 1]!) && /\w/.test(text[stage.end] ?? "");
  return splice(text, [{ start, end: stage.end, text: glued ? " " : "" }]);
}

export function replaceStage(text: string, selector: number, index: number, stage: string): string {
  const part = partsOf(text).selectors[selector]?.stages[index];
  if (part === undefined) return text;
  return splice(text, [{ start: part.start, end: part.end, text: stage }]);
}

/** Where a value comes from: a label of the stream, a field that a stage of the query or the list found, or metadata. */
export type Origin =
  | { readonly kind: "label" }
  | { readonly kind: "metadata" }
  /** The parser that finds it, where the query has none yet. */
  | { readonly kind: "field"; readonly parser: string | undefined };

export interface Wanted {
  readonly name: string;
  readonly value: string;
  /** Lines that have the value, or all others. */
  readonly negated: boolean;
}

/**
 * Adds a filter by a value that somebody clicked. A label becomes a matcher: one that only asks for any value is replaced, and
 * a second wanted value makes `=~"a|b"` of an equality. Everything else becomes a filter behind its parser.
 */
export function addFilter(text: string, wanted: Wanted, origin: Origin): string {
  const { name, value, negated } = wanted;
  if (origin.kind === "label") return addLabelFilter(text, wanted);
  const parser = origin.kind === "field" ? origin.parser : undefined;
  const parsed = parser !== undefined && !hasParser(text, parser);
  const filter = `| ${name}${negated ? "!=" : "="}${quote(value)}`;
  if (partsOf(text).selectors.some(({ stages }) => stages.some((one) => sameText(one, filter)))) {
    return text;
  }
  return addStage(text, parsed ? `| ${parser} ${filter}` : filter);
}

function sameText({ tokens }: { readonly tokens: readonly Token[] }, stage: string): boolean {
  const other = partsOf(`{a="b"} ${stage}`).selectors[0]?.stages[0]?.tokens ?? [];
  const isSame = (token: Token, at: number) =>
    token.type === other[at]?.type && token.value === other[at]?.value;
  return tokens.length === other.length && tokens.every(isSame);
}

function addLabelFilter(text: string, { name, value, negated }: Wanted): string {
  const { selectors } = partsOf(text);
  const edits = selectors.map((selector): Edit => {
    const added = { name, op: negated ? "!=" : "=", value } as const;
    const own = selector.matchers.filter((one) => one.name === name);
    if (own.some((one) => one.op === added.op && one.value === value)) return nothing;
    const replaced = own.find((one) => takesValue(one, negated));
    if (replaced === undefined) return appended(selector, added);
    const values = [...alternativesOf(replaced), value];
    const matcher = isAny(replaced)
      ? added
      : { name, op: negated ? ("!~" as const) : ("=~" as const), value: unite(values) };
    return { start: replaced.start, end: replaced.end, text: formatMatcher(matcher) };
  });
  return splice(text, edits);
}

/** Whether a further value of its label goes into a matcher. */
function takesValue(matcher: Matcher, negated: boolean): boolean {
  if (isAny(matcher)) return !negated;
  if (negated) return matcher.op === "!=" || (matcher.op === "!~" && isPlain(matcher.value));
  return matcher.op === "=" || (matcher.op === "=~" && isPlain(matcher.value));
}

function isAny({ op, value }: Matcher): boolean {
  return op === "=~" && (value === ".+" || value === ".*");
}

/** A list of texts without further metacharacters than those that are escaped. */
function isPlain(regex: string): boolean {
  return /^(?:[^\\^$.*+?()[\]{}]|\\[^\w\s])+$/.test(regex);
}

function alternativesOf({ op, value }: Matcher): string[] {
  if (op === "=" || op === "!=") return [value];
  return (value.match(/(?:\\.|[^|\\])+/gs) ?? []).map((one) => one.replace(/\\(.)/gs, "$1"));
}

function unite(values: readonly string[]): string {
  return [...new Set(values)].map(escapeRegex).join("|");
}

export function escapeRegex(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&");
}

function appended({ start, matchers }: SelectorPart, matcher: Matcher): Edit {
  const last = matchers.at(-1);
  const at = last?.end ?? start + 1;
  return { start: at, end: at, text: (last ? ", " : "") + formatMatcher(matcher) };
}

/** Whether a query has a parser of its kind already. */
function hasParser(text: string, parser: string): boolean {
  return partsOf(text).selectors.some(({ stages }) =>
    stages.some(({ tokens }) => tokens[1]?.type === parser),
  );
}

interface Edit {
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

const nothing: Edit = { start: 0, end: 0, text: "" };

/** Applies edits that do not overlap. */
export function splice(text: string, edits: readonly Edit[]): string {
  let out = text;
  for (const edit of [...edits].sort((a, b) => b.start - a.start)) {
    out = out.slice(0, edit.start) + edit.text + out.slice(edit.end);
  }
  return out;
}
