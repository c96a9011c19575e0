import {
  escapedChars,
  formatLabels,
  invalidArgument,
  type PushFormat,
  quote,
  type SkaldError,
  tooLarge,
} from "@skald/model";

/** Name and value of each label as written: in order, repeated names and empty values included. */
export type LabelPairs = readonly (readonly [name: string, value: string])[];

/** A longer label text of one stream is refused with 413. */
export const maxLabelTextBytes = 16 * 1024 * 1024;
/** More labels of one stream are refused before the limits of its tenant are looked at. */
const maxLabelPairs = 4096;

/**
 * Parses the labels of a stream from the bytes of its push: label text `{a="b"}` in the protobuf and legacy forms, the
 * `stream` object in the JSON form. Throws invalid_argument `couldn't parse labels: ...`, or too_large.
 */
export function parsePushLabels(
  format: PushFormat,
  bytes: Uint8Array,
  start: number,
  length: number,
): LabelPairs {
  if (length > maxLabelTextBytes) {
    throw tooLarge(
      `request body too large: labels of a stream are ${length} bytes, limit ${maxLabelTextBytes} bytes`,
    );
  }
  let text: string;
  try {
    text = utf8.decode(bytes.subarray(start, start + length));
  } catch (cause) {
    throw invalidArgument("couldn't parse labels: 1:1: parse error: invalid UTF-8 rune", { cause });
  }
  return format === "json" ? parseLabelObject(text) : parseLabelText(text);
}

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

const metricName = /[a-zA-Z_:][a-zA-Z0-9_:]*/y;
const labelName = /[a-zA-Z_][a-zA-Z0-9_]*/y;
const operator = /=~|!=|!~/y;

/**
 * Parses `{a="b", c='d'}`: any order, names in quotes or not, three kinds of quotes, a trailing comma, `foo{a="b"}` for a `__name__`, an empty
 * text for no labels. An error names line and column, and the column counts bytes.
 */
function parseLabelText(text: string): LabelPairs {
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

/** Reads from behind the opening brace; returns the position behind the closing one. */
function readLabelSet(text: string, start: number, pairs: [string, string][]): number {
  let at = skipSpace(text, start);
  while (text[at] !== "}") {
    const name = readName(text, at);
    if (name === undefined) throw unexpectedInside(text, at, 'identifier or "}"');
    at = skipSpace(text, name.end);
    if (text[at] !== "=" || match(operator, text, at) !== "") {
      throw unexpectedInside(text, at, '"="');
    }
    at = skipSpace(text, at + 1);
    const value = readQuoted(text, at);
    if (value === undefined) throw unexpectedInside(text, at, "string");
    pairs.push([name.text, value.text]);
    if (pairs.length > maxLabelPairs) {
      throw labelTextError(text, at, `more than ${maxLabelPairs} labels`);
    }
    at = skipSpace(text, value.end);
    if (text[at] === ",") at = skipSpace(text, at + 1);
    else if (text[at] !== "}") throw unexpectedInside(text, at, '"," or "}"');
  }
  return at + 1;
}

/** Reads a name, which may stand in quotes; undefined where there is none that a label may have. */
function readName(text: string, start: number): Token | undefined {
  const plain = match(labelName, text, start);
  if (plain !== "") return { text: plain, end: start + plain.length };
  const quoted = readQuoted(text, start);
  const isLegal = quoted !== undefined && match(labelName, quoted.text, 0) === quoted.text;
  return isLegal && quoted.text !== "" ? quoted : undefined;
}

/** A name or value, and the position behind it. */
interface Token {
  readonly text: string;
  readonly end: number;
}

/**
 * Reads a quoted value of label text: Go escapes between double or single quotes, none between back quotes. Returns
 * undefined when no quote begins there.
 */
function readQuoted(text: string, start: number): Token | undefined {
  const mark = text[start];
  if (mark === "`") {
    const end = text.indexOf("`", start + 1);
    if (end < 0) throw labelTextError(text, start, "unterminated raw string");
    return { text: text.slice(start + 1, end), end: end + 1 };
  }
  if (mark !== '"' && mark !== "'") return undefined;
  const plain = mark === '"' ? plainDouble : plainSingle;
  const end = start + 1 + match(plain, text, start + 1).length;
  if (text[end] === mark) return { text: text.slice(start + 1, end), end: end + 1 };
  return readEscaped(text, start, mark);
}

const plainDouble = /[^"\\\n]*/y;
const plainSingle = /[^'\\\n]*/y;

/** A value with escapes is put together from bytes, because `\xe4\xb8\x96` is one character. */
function readEscaped(text: string, start: number, mark: string): Token {
  const plain = mark === '"' ? plainDouble : plainSingle;
  const parts: Uint8Array[] = [];
  for (let at = start + 1; ; ) {
    const run = match(plain, text, at);
    parts.push(Buffer.from(run));
    at += run.length;
    if (text[at] === mark) {
      try {
        return { text: utf8.decode(Buffer.concat(parts)), end: at + 1 };
      } catch {
        throw labelTextError(text, start, "label value is not valid UTF-8");
      }
    }
    if (text[at] !== "\\") throw labelTextError(text, start, "unterminated quoted string");
    const found = match(escapePattern, text, at);
    parts.push(bytesOfEscape(text, at, found, mark));
    at += found.length;
  }
}

const escapePattern =
  /\\(?:[abfnrtv\\"']|[0-7]{3}|x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8})/y;

/** The bytes that an escape at a position stands for. */
function bytesOfEscape(text: string, at: number, found: string, mark: string): Uint8Array {
  const kind = found[1] ?? "";
  if (kind === "" || ((kind === '"' || kind === "'") && kind !== mark)) {
    throw labelTextError(text, at, "unknown escape sequence");
  }
  if (found.length === 2) return Buffer.from(escapedChars[kind] ?? kind);
  if (found.length === 4) {
    const value =
      kind === "x" ? Number.parseInt(found.slice(2), 16) : Number.parseInt(found.slice(1), 8);
    if (value > 255) throw labelTextError(text, at, "escape sequence is above \\377");
    return Uint8Array.of(value);
  }
  const code = Number.parseInt(found.slice(2), 16);
  if (code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) {
    throw labelTextError(text, at, "escape sequence is an invalid Unicode code point");
  }
  return Buffer.from(String.fromCodePoint(code));
}

function unexpectedInside(text: string, at: number, expected: string): SkaldError {
  if (at >= text.length) {
    return labelTextError(text, at, "unexpected end of input inside braces");
  }
  const found = tokenAt(text, at);
  if (found === undefined) {
    const what = text[at] === "{" ? "left brace" : "character inside braces:";
    return labelTextError(text, at, `unexpected ${what} ${quoteChar(text, at)}`);
  }
  return labelTextError(text, at, `unexpected ${found} in label set, expected ${expected}`);
}

function unexpectedOutside(text: string, at: number): SkaldError {
  const found = tokenAt(text, at) ?? `character: ${quoteChar(text, at)}`;
  return labelTextError(text, at, `unexpected ${found}`);
}

/** A name for the token at a position; undefined for a character that begins none. */
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

function labelTextError(text: string, at: number, message: string): SkaldError {
  const before = text.slice(0, at);
  const line = before.split("\n").length;
  const column = Buffer.byteLength(before.slice(before.lastIndexOf("\n") + 1)) + 1;
  return malformed(`${line}:${column}: parse error: ${message}`);
}

/**
 * Parses the `stream` object of a JSON push. Values are strings or numbers, whose text is kept as written. When a name
 * comes twice, the last value wins; `null` and an empty text mean no labels.
 */
function parseLabelObject(text: string): LabelPairs {
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
  for (const name of pairs.keys()) {
    if (name === "" || match(labelName, name, 0) !== name) throw illegalName(pairs);
  }
  return [...pairs];
}

const number = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;

function readValue(text: string, at: number, name: string): Token {
  if (text[at] === '"') return readString(text, at);
  const found = match(number, text, at);
  if (found !== "") return { text: found, end: at + found.length };
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

/** The parser of label texts words the error, with the column in the canonical text, so both forms answer alike. */
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

/** What a sticky pattern matches at a position; empty for nothing. */
function match(pattern: RegExp, text: string, at: number): string {
  pattern.lastIndex = at;
  return pattern.exec(text)?.[0] ?? "";
}
