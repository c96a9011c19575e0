import { formatLabels, invalidArgument, type SkaldError } from "@skald/model";
import { type LabelPairs, maxLabelPairs } from "./pairs.js";
import { isLabelName, parseLabelText } from "./text.js";

/**
 * Parses the `stream` object of a JSON push: values are strings or numbers, whose text is kept as written; of a name
 * given twice the last value wins; `null` and nothing at all mean no labels. Throws invalid_argument.
 */
export function parseLabelObject(text: string): LabelPairs {
  const pairs = new Map<string, string>();
  let at = skipSpace(text, 0);
  if (at === text.length || text.slice(at).trim() === "null") return [];
  if (text[at] !== "{") throw malformed("the stream of a push must be an object");
  at = skipSpace(text, at + 1);
  while (text[at] !== "}") {
    const name = readString(text, at);
    at = skipSpace(text, name.end);
    if (text[at] !== ":") throw malformed("expected ':' behind a label name");
    const value = readValue(text, skipSpace(text, at + 1), name.text);
    pairs.set(name.text, value.text);
    if (pairs.size > maxLabelPairs) throw malformed(`more than ${maxLabelPairs} labels`);
    at = skipSpace(text, value.end);
    if (text[at] === ",") at = skipSpace(text, at + 1);
    else if (text[at] !== "}") throw malformed("expected ',' or '}' behind a label value");
  }
  for (const name of pairs.keys()) if (!isLabelName(name)) throw illegalName(pairs);
  return [...pairs];
}

interface Token {
  readonly text: string;
  readonly end: number;
}

const number = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;

function readValue(text: string, at: number, name: string): Token {
  if (text[at] === '"') return readString(text, at);
  number.lastIndex = at;
  const found = number.exec(text)?.[0];
  if (found !== undefined) return { text: found, end: at + found.length };
  throw malformed(`value of label '${name.slice(0, 64)}' must be a string`);
}

function readString(text: string, at: number): Token {
  if (text[at] !== '"') throw malformed("expected a string in the stream object");
  let end = text.indexOf('"', at + 1);
  while (end >= 0 && isEscaped(text, end)) end = text.indexOf('"', end + 1);
  if (end < 0) throw malformed("a string of the stream object is not closed");
  try {
    return { text: JSON.parse(text.slice(at, end + 1)) as string, end: end + 1 };
  } catch {
    throw malformed("a string of the stream object is malformed");
  }
}

function isEscaped(text: string, quoteAt: number): boolean {
  let at = quoteAt;
  while (text[at - 1] === "\\") at--;
  return (quoteAt - at) % 2 === 1;
}

/** The label text parser words the error, with the column in the canonical text, so both forms answer alike. */
function illegalName(pairs: ReadonlyMap<string, string>): SkaldError {
  const names = [...pairs.keys()].sort();
  try {
    parseLabelText(formatLabels({ names, values: names.map((name) => pairs.get(name) ?? "") }));
  } catch (error) {
    return error as SkaldError;
  }
  return malformed("illegal label name");
}

function malformed(message: string): SkaldError {
  return invalidArgument(`couldn't parse labels: ${message}`);
}

function skipSpace(text: string, at: number): number {
  while (at < text.length && " \t\n\r".includes(text[at] as string)) at++;
  return at;
}
