import { type Token, tokenize } from "@skald/logql/syntax";
import { formatMatcher, type Matcher } from "@skald/model";
import { logQueryBefore } from "./parts.js";

/** What may stand at the caret, and which part of the text an offer replaces. */
export interface Place {
  readonly kind: PlaceKind;
  /** The text that an offer replaces. */
  readonly from: number;
  readonly to: number;
  /** What is typed of the word at the caret. */
  readonly prefix: string;
  /** The label or field whose values are wanted. */
  readonly name?: string;
  /** The streams or lines that are meant; undefined for all. */
  readonly query?: string;
}

type PlaceKind =
  | "label"
  | "label-value"
  | "match-operator"
  | "stage"
  | "field-operator"
  | "field-value"
  | "number-field"
  | "grouping"
  | "function";

const matchOps: ReadonlySet<string> = new Set(["=", "!=", "=~", "!~"]);
const compareOps: ReadonlySet<string> = new Set([...matchOps, "==", ">", ">=", "<", "<="]);
const joins: ReadonlySet<string> = new Set(["and", "or", ","]);

/** The place of the caret; undefined where nothing can be offered. */
export function placeAt(text: string, caret: number): Place | undefined {
  const tokens = tokenize(text, { comments: true });
  const at = tokens.findIndex((token) => token.start < caret && caret <= token.end);
  const inside = at < 0 ? undefined : tokens[at];
  if (inside?.type === "comment") return undefined;
  const isWord = inside !== undefined && isWordToken(inside, text, caret);
  const before = tokens.filter((token) => token.end <= (isWord ? inside.start : caret));
  const known = before.filter(({ type }) => type !== "comment" && type !== "$end");
  const from = isWord ? inside.start : caret;
  const to = !isWord ? caret : inside.type === "error" ? caret : inside.end;
  const typed = text.slice(from, caret);
  const prefix = typed.replace(/^["`]/, "");
  const open = openBrace(known);
  const range = { from, to, prefix };
  if (open >= 0) return inSelector(known, open, range, tokens);
  return outsideSelector(text, known, range);
}

/** Words and strings are edited as a whole; a string that is not closed reaches to the caret. */
function isWordToken(token: Token, text: string, caret: number): boolean {
  if (token.type === "error") return text[token.start] === '"' || text[token.start] === "`";
  if (token.type === "STRING") return caret < token.end || token.end - token.start < 2;
  return /^\w/.test(text.slice(token.start, token.end)) && token.type !== "RANGE";
}

function openBrace(tokens: readonly Token[]): number {
  const open = tokens.findLastIndex(({ type }) => type === "{");
  return tokens.findLastIndex(({ type }) => type === "}") > open ? -1 : open;
}

type WordRange = Pick<Place, "from" | "to" | "prefix">;

function inSelector(
  before: readonly Token[],
  open: number,
  range: WordRange,
  tokens: readonly Token[],
): Place | undefined {
  const last = before.at(-1);
  const others = matchersOf(tokens, before[open]!.start).filter(
    ({ start, end }) => end <= range.from || start >= range.to,
  );
  const without = (name?: string) => {
    const left = others.filter((one) => one.name !== name);
    const needed = left.some(({ op, value }) => op === "=" || (op === "=~" && value !== ".*"));
    return needed ? { query: `{${left.map(formatMatcher).join(", ")}}` } : {};
  };
  if (last?.type === "{" || last?.type === ",") return { kind: "label", ...range, ...without() };
  const name = before.at(-2);
  if (last !== undefined && matchOps.has(last.type) && name?.type === "IDENTIFIER") {
    const label = name.value as string;
    return { kind: "label-value", ...range, name: label, ...without(label) };
  }
  if (last?.type === "IDENTIFIER" && range.prefix === "")
    return { kind: "match-operator", ...range };
  return undefined;
}

/** The whole matchers of the selector that begins at an offset. */
function matchersOf(tokens: readonly Token[], start: number): (Matcher & Span)[] {
  const found: (Matcher & Span)[] = [];
  const first = tokens.findIndex((token) => token.start === start);
  for (let at = first + 1; at < tokens.length && tokens[at]?.type !== "}"; at++) {
    const [name, op, value] = [tokens[at], tokens[at + 1], tokens[at + 2]];
    if (name?.type !== "IDENTIFIER" || value?.type !== "STRING") continue;
    if (op === undefined || !matchOps.has(op.type)) continue;
    const matcher = { name: name.value as string, op: op.type as Matcher["op"] };
    const place = { start: name.start, end: value.end };
    found.push({ ...matcher, value: value.value as string, ...place });
  }
  return found;
}

interface Span {
  readonly start: number;
  readonly end: number;
}

function outsideSelector(
  text: string,
  before: readonly Token[],
  range: WordRange,
): Place | undefined {
  const last = before.at(-1);
  const pipe = before.findLast(({ type }) => type === "|");
  const query = pipe === undefined ? undefined : logQueryBefore(text, pipe.start);
  const withQuery = query === undefined ? {} : { query };
  const grouping = groupingAt(before);
  if (grouping) {
    const lines = logQueryIn(text);
    return { kind: "grouping", ...range, ...(lines !== undefined && { query: lines }) };
  }
  if (query !== undefined && last !== undefined) {
    if (last.type === "|") return { kind: "stage", ...range, ...withQuery };
    const second = before.at(-2);
    const conversion = last.type === "(" && before.at(-3)?.type === "unwrap";
    if (last.type === "unwrap" || conversion) return { kind: "number-field", ...range, query };
    const inPipe = last.start > (pipe?.start ?? 0);
    if (inPipe && compareOps.has(last.type) && second?.type === "IDENTIFIER") {
      return { kind: "field-value", ...range, name: second.value as string, query };
    }
    if (inPipe && joins.has(last.type)) return { kind: "stage", ...range, query };
    if (last.type === "IDENTIFIER" && second?.type === "|" && range.prefix === "") {
      return { kind: "field-operator", ...range };
    }
  }
  if (last === undefined || last.type === "(" || /^[+\-*/%^]$/.test(last.type)) {
    return { kind: "function", ...range };
  }
  return undefined;
}

/** Whether the caret stands in the parentheses of `by` or `without`. */
function groupingAt(before: readonly Token[]): boolean {
  const open = before.findLastIndex(({ type }) => type === "(" || type === ")");
  const word = before[open - 1]?.type;
  if (before[open]?.type !== "(" || (word !== "by" && word !== "without")) return false;
  const last = before.at(-1)?.type;
  return last === "(" || last === ",";
}

/** The first log query of a text, for the names that it can be grouped by. */
function logQueryIn(text: string): string | undefined {
  return logQueryBefore(text, text.indexOf("}") + 1) || undefined;
}
