import { quote, type SkaldError } from "@skald/model";
import { type LabelPairs, labelTextError, maxLabelPairs } from "./pairs.js";
import { readQuoted } from "./quoted.js";

/**
 * Parses `{a="b", c='d'}`: any order, three kinds of quotes, a trailing comma, `foo{a="b"}` for a `__name__`, nothing
 * at all for no labels. Throws invalid_argument with line and column, the column in bytes.
 */
export function parseLabelText(text: string): LabelPairs {
  const pairs: [string, string][] = [];
  let at = skipSpace(text, 0);
  const metric = match(metricName, text, at);
  if (metric !== "") {
    pairs.push(["__name__", metric]);
    at = skipSpace(text, at + metric.length);
  }
  if (text[at] === "{") at = skipSpace(text, readLabelSet(text, at + 1, pairs));
  if (at < text.length) throw unexpectedOutside(text, at);
  return pairs;
}

/** Whether a name can stand in label text. */
export function isLabelName(name: string): boolean {
  return name !== "" && match(labelName, name, 0) === name;
}

const metricName = /[a-zA-Z_:][a-zA-Z0-9_:]*/y;
const labelName = /[a-zA-Z_][a-zA-Z0-9_]*/y;
const operator = /=~|!=|!~/y;

/** Reads from behind the opening brace; returns the position behind the closing one. */
function readLabelSet(text: string, start: number, pairs: [string, string][]): number {
  let at = skipSpace(text, start);
  while (text[at] !== "}") {
    const name = match(labelName, text, at);
    if (name === "") throw unexpectedInside(text, at, 'identifier or "}"');
    at = skipSpace(text, at + name.length);
    if (text[at] !== "=" || match(operator, text, at) !== "") {
      throw unexpectedInside(text, at, '"="');
    }
    at = skipSpace(text, at + 1);
    const value = readQuoted(text, at);
    if (value === undefined) throw unexpectedInside(text, at, "string");
    pairs.push([name, value.text]);
    if (pairs.length > maxLabelPairs) {
      throw labelTextError(text, at, `more than ${maxLabelPairs} labels`);
    }
    at = skipSpace(text, value.end);
    if (text[at] === ",") at = skipSpace(text, at + 1);
    else if (text[at] !== "}") throw unexpectedInside(text, at, '"," or "}"');
  }
  return at + 1;
}

function unexpectedInside(text: string, at: number, expected: string): SkaldError {
  if (at >= text.length) {
    return labelTextError(text, at, "unexpected end of input inside braces");
  }
  const found = tokenAt(text, at);
  if (found === undefined) {
    const char = quoteChar(text, at);
    const what = text[at] === "{" ? "left brace" : "character inside braces:";
    return labelTextError(text, at, `unexpected ${what} ${char}`);
  }
  return labelTextError(text, at, `unexpected ${found} in label set, expected ${expected}`);
}

function unexpectedOutside(text: string, at: number): SkaldError {
  const found = tokenAt(text, at);
  return labelTextError(
    text,
    at,
    found === undefined ? `unexpected character: ${quoteChar(text, at)}` : `unexpected ${found}`,
  );
}

/** A name for what stands at a position; undefined for a character that begins no token. */
function tokenAt(text: string, at: number): string | undefined {
  const op = match(operator, text, at);
  if (op !== "") return `<op:${op}>`;
  const name = match(labelName, text, at);
  if (name !== "") return `identifier "${clip(name)}"`;
  const char = text[at] as string;
  if ("=,}".includes(char)) return `"${char}"`;
  if (!"\"'`".includes(char)) return undefined;
  const end = text.indexOf(char, at + 1);
  return `string ${quote(clip(text.slice(at, end < 0 ? at + 1 : end + 1)))}`;
}

function quoteChar(text: string, at: number): string {
  const char = String.fromCodePoint(text.codePointAt(at) as number);
  return char === "'" ? "'\\''" : `'${quote(char).slice(1, -1)}'`;
}

function clip(text: string): string {
  return text.length > 64 ? `${text.slice(0, 64)}...` : text;
}

function skipSpace(text: string, at: number): number {
  while (at < text.length && " \t\n\r".includes(text[at] as string)) at++;
  return at;
}

function match(pattern: RegExp, text: string, at: number): string {
  pattern.lastIndex = at;
  return pattern.exec(text)?.[0] ?? "";
}
