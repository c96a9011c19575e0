import { type Token, tokenize } from "@skald/logql/syntax";
import { formatMatcher, type Matcher, quote } from "@skald/model";
import type { Field, LabelInfo } from "../api/fields.js";
import { functionHelp, stageHelp } from "./help.js";
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

export interface Offer {
  readonly text: string;
  readonly insert: string;
  /** L label, s text, # number, | stage, f function, = operator. */
  readonly kind: string;
  readonly note: string;
}

/** What offers are made of; each answer comes from the server. */
export interface Sources {
  labels(selector: string | undefined): Promise<readonly LabelInfo[]>;
  labelValues(name: string, selector: string | undefined): Promise<readonly string[]>;
  fields(query: string): Promise<readonly Field[]>;
  fieldValues(name: string, query: string): Promise<readonly string[]>;
}

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

const operators: Readonly<Record<string, string>> = {
  ...{ "=": "is", "!=": "is not", "=~": "matches", "!~": "does not match" },
};
const numberOperators: Readonly<Record<string, string>> = {
  ...{ ">=": "at least", ">": "more than", "<=": "at most", "<": "less than" },
};

/** The offers for a place, best first. */
export async function offersFor(place: Place, sources: Sources): Promise<Offer[]> {
  const { kind, name = "", query } = place;
  switch (kind) {
    case "label":
      return ranked(place, (await sources.labels(query)).map(labelOffer));
    case "label-value":
      return ranked(place, (await sources.labelValues(name, query)).map(valueOffer));
    case "match-operator":
      return Object.entries(operators).map(operatorOffer);
    case "field-operator":
      return Object.entries({ ...operators, ...numberOperators }).map(operatorOffer);
    case "stage":
      return ranked(place, [
        ...(await sources.fields(query ?? "")).map(fieldOffer),
        ...stageHelp.map(({ name: stage, says }) => offer(stage, "|", says)),
      ]);
    case "field-value":
      return ranked(place, valuesOf(await sources.fieldValues(name, query ?? "")));
    case "number-field":
      return ranked(
        place,
        (await sources.fields(query ?? "")).filter(isNumber).map(fieldOffer),
      );
    case "grouping":
      return ranked(place, [
        ...(await sources.labels(undefined)).map(labelOffer),
        ...(query === undefined ? [] : (await sources.fields(query)).map(fieldOffer)),
      ]);
    case "function":
      return ranked(
        place,
        functionHelp.map(({ name: word, signature, says }) =>
          offer(word, "f", `${says} · ${signature}`, `${word}(`),
        ),
      );
  }
}

function offer(text: string, kind: string, note: string, insert = text): Offer {
  return { text, insert, kind, note };
}

function labelOffer({ name, values }: LabelInfo): Offer {
  return offer(name, "L", `${values} value${values === 1 ? "" : "s"}`);
}

function valueOffer(value: string): Offer {
  return offer(value, "s", "", quote(value));
}

function operatorOffer([op, says]: readonly [string, string]): Offer {
  return offer(op, "=", says);
}

function fieldOffer(field: Field): Offer {
  const { name, type, values } = field;
  return offer(
    name,
    isNumber(field) ? "#" : "s",
    `${type}, ${values} value${values === 1 ? "" : "s"}`,
  );
}

export function isNumber({ type }: Field): boolean {
  return type !== "string" && type !== "boolean";
}

/** Values of a field; of numbers the quartiles come first. */
function valuesOf(values: readonly string[]): Offer[] {
  const numbers = values.map(Number);
  if (values.length < 8 || numbers.some(Number.isNaN)) return values.map(valueOffer);
  const sorted = numbers.sort((a, b) => a - b);
  const at = (share: number) => String(sorted[Math.floor(share * (sorted.length - 1))]);
  const marks = { minimum: 0, "lower quarter": 0.25, median: 0.5, "upper quarter": 0.75, maximum: 1 };
  return Object.entries(marks).map(([says, share]) => offer(at(share), "#", says));
}

const offersMax = 200;

/** Offers that begin with what is typed, then those that contain it. */
function ranked({ prefix }: Place, offers: readonly Offer[]): Offer[] {
  const wanted = prefix.toLowerCase();
  const starts = offers.filter(({ text }) => text.toLowerCase().startsWith(wanted));
  const contains = offers.filter(
    ({ text }) => !text.toLowerCase().startsWith(wanted) && text.toLowerCase().includes(wanted),
  );
  return [...starts, ...contains].slice(0, offersMax);
}
