/** What the reference's JSON reader says when it cannot go on. */
export class NaiveJsonError extends Error {}

export type NaiveJsonType = "string" | "number" | "boolean" | "null" | "object" | "array";

export interface NaiveJsonValue {
  readonly type: NaiveJsonType;
  /** Raw text; of a string without its quotes. */
  readonly raw: string;
  /** Offset behind the value. */
  readonly end: number;
}

const malformed = {
  json: "Malformed JSON error",
  string: "Value is string, but can't find closing '\"' symbol",
  array: "Value is array, but can't find closing ']' symbol",
  object: "Value looks like object, but can't find closing '}' symbol",
  unknown: "Unknown value type",
  escape: "Encountered an invalid escape sequence in a string",
};

/** Calls back for each member of the object that the text begins with; what follows the object is not looked at. */
export function eachMember(text: string, call: (key: string, value: NaiveJsonValue) => void): void {
  let at = skipBlanks(text, 0);
  if (text[at] !== "{") throw new NaiveJsonError(malformed.object);
  at = skipBlanks(text, at + 1);
  if (at >= text.length) throw new NaiveJsonError(malformed.json);
  if (text[at] === "}") return;
  while (true) {
    if (text[at] === "}") return;
    if (text[at] !== '"') throw new NaiveJsonError(malformed.object);
    const keyEnd = stringEnd(text, at);
    if (keyEnd < 0) throw new NaiveJsonError(malformed.json);
    const key = unescapeJson(text.slice(at + 1, keyEnd));
    if (key === undefined) throw new NaiveJsonError(malformed.escape);
    at = skipBlanks(text, keyEnd + 1);
    if (text[at] !== ":") throw new NaiveJsonError(malformed.json);
    const value = readValue(text, at + 1);
    call(key, value);
    at = skipBlanks(text, value.end);
    if (at >= text.length) throw new NaiveJsonError(malformed.array);
    if (text[at] === "}") return;
    if (text[at] !== ",") throw new NaiveJsonError(malformed.object);
    at = skipBlanks(text, at + 1);
    if (at >= text.length) throw new NaiveJsonError(malformed.array);
  }
}

function readValue(text: string, from: number): NaiveJsonValue {
  const at = skipBlanks(text, from);
  const first = text[at];
  if (first === undefined) throw new NaiveJsonError(malformed.json);
  if (first === '"') {
    const end = stringEnd(text, at);
    if (end < 0) throw new NaiveJsonError(malformed.string);
    return { type: "string", raw: text.slice(at + 1, end), end: end + 1 };
  }
  if (first === "{" || first === "[") {
    const end = blockEnd(text, at, first, first === "{" ? "}" : "]");
    if (end < 0) throw new NaiveJsonError(first === "{" ? malformed.object : malformed.array);
    return { type: first === "{" ? "object" : "array", raw: text.slice(at, end), end };
  }
  const raw = /^[^ \n\r\t,}\]]*/.exec(text.slice(at))?.[0] as string;
  const end = at + raw.length;
  if (raw === "true" || raw === "false") return { type: "boolean", raw, end };
  if (raw === "null") return { type: "null", raw, end };
  if (/^[-0-9]/.test(raw)) return { type: "number", raw, end };
  throw new NaiveJsonError(malformed.unknown);
}

function skipBlanks(text: string, at: number): number {
  while (at < text.length && " \n\r\t".includes(text[at] as string)) at++;
  return at;
}

/** Offset of the closing quote of the string that opens at `at`, or -1. */
function stringEnd(text: string, at: number): number {
  for (let i = at + 1; i < text.length; i++) {
    if (text[i] === "\\") i++;
    else if (text[i] === '"') return i;
  }
  return -1;
}

function blockEnd(text: string, at: number, open: string, close: string): number {
  let level = 0;
  for (let i = at; i < text.length; i++) {
    if (text[i] === '"') {
      i = stringEnd(text, i);
      if (i < 0) return -1;
    } else if (text[i] === open) level++;
    else if (text[i] === close && --level === 0) return i + 1;
  }
  return -1;
}

/** Undoes the escapes of a JSON string; undefined when one is wrong. */
function unescapeJson(raw: string): string | undefined {
  const simple: Readonly<Record<string, string | undefined>> = {
    '"': '"',
    "\\": "\\",
    "/": "/",
    b: "\b",
    f: "\f",
    n: "\n",
    r: "\r",
    t: "\t",
  };
  let out = "";
  for (let i = 0; i < raw.length; i++) {
    if (raw[i] !== "\\") {
      out += raw[i];
      continue;
    }
    const c = raw[++i] as string;
    if (c !== "u") {
      const plain = simple[c];
      if (plain === undefined) return undefined;
      out += plain;
      continue;
    }
    const m = /^u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})/.exec(raw.slice(i));
    const single = /^u([0-9a-fA-F]{4})/.exec(raw.slice(i));
    const code = Number.parseInt(single?.[1] ?? "d800", 16);
    if (m !== null) {
      out += String.fromCharCode(code, Number.parseInt(m[2] as string, 16));
      i += 10;
    } else {
      if (code >= 0xd800 && code <= 0xdfff) return undefined;
      out += String.fromCharCode(code);
      i += 4;
    }
  }
  return out;
}

/** The value of a string member as a label has it: bad escapes give an empty text, broken characters blanks. */
export function labelText(value: NaiveJsonValue): string {
  if (value.type !== "string") return value.raw;
  return (unescapeJson(value.raw) ?? "").replaceAll("\ufffd", " ");
}

/**
 * The value at a path of names and indexes, found even when the text breaks off behind it, or what is wrong with it;
 * of equal names the first that leads to a value counts.
 */
export function findPath(
  text: string,
  path: readonly (string | number)[],
  from = 0,
): NaiveJsonValue | NaiveJsonError | undefined {
  const [head, ...rest] = path;
  let at = skipBlanks(text, from);
  const isObject = typeof head === "string";
  if (text[at] !== (isObject ? "{" : "[")) return undefined;
  at = skipBlanks(text, at + 1);
  try {
    for (let index = 0; at < text.length && text[at] !== (isObject ? "}" : "]"); index++) {
      let key: string | number | undefined = index;
      if (isObject) {
        const keyEnd = text[at] === '"' ? stringEnd(text, at) : -1;
        if (keyEnd < 0) return undefined;
        key = unescapeJson(text.slice(at + 1, keyEnd));
        at = skipBlanks(text, keyEnd + 1);
        if (text[at] !== ":") return undefined;
        at++;
      }
      if (key === head) {
        const found = rest.length === 0 ? wantedValue(text, at) : findPath(text, rest, at);
        if (found !== undefined) return found;
      }
      at = skipBlanks(text, readValue(text, at).end);
      if (text[at] !== ",") return undefined;
      at = skipBlanks(text, at + 1);
    }
  } catch (error) {
    if (!(error instanceof NaiveJsonError)) throw error;
  }
  return undefined;
}

function wantedValue(text: string, at: number): NaiveJsonValue | NaiveJsonError {
  try {
    return readValue(text, at);
  } catch (error) {
    if (!(error instanceof NaiveJsonError)) throw error;
    return error;
  }
}
