import { decodeText } from "@skald/model";
import {
  isEmpty,
  printValue,
  type TemplateFunction,
  TemplateRunError,
  text,
  type Value,
  valueOfJson,
} from "./value.js";

const one = (call: (value: string) => string): TemplateFunction => ({
  takes: "s",
  call: (args) => call(text(args, 0)),
});
const joined = (call: (value: string) => string): TemplateFunction => ({
  takes: "v*",
  call: (args) => call(printAll(args.map((arg) => arg ?? "<no value>"))),
});

export const encodingFunctions: Readonly<Record<string, TemplateFunction>> = {
  urlencode: one(queryEscape),
  urlquery: joined(queryEscape),
  urldecode: one(queryUnescape),
  b64enc: one((value) => toBase64(new TextEncoder().encode(value))),
  b64dec: one(fromBase64),
  fromJson: { takes: "s", call: (args) => valueOfJson(text(args, 0)) ?? null },
  default: {
    takes: "vv*",
    call: ([fallback, given]) => (isEmpty(given) ? (fallback as Value) : (given as Value)),
  },
  html: joined((value) => value.replace(/[&<>"'\0]/g, (c) => htmlEscapes[c] as string)),
  js: joined((value) =>
    value.replace(
      // biome-ignore lint/suspicious/noControlCharactersInRegex: what is escaped, and what is printable
      /[\\'"<>&=\0-\x1f]|[^\0-\x7f\p{L}\p{M}\p{N}\p{P}\p{S}]/gu,
      (c) => jsEscapes[c] ?? `\\u${code(c)}`,
    ),
  ),
};

/** Go's fmt.Sprint: a blank between neighbours that are both no texts. */
export function printAll(args: readonly Value[]): string {
  let out = "";
  for (const [i, arg] of args.entries()) {
    if (i > 0 && typeof arg !== "string" && typeof args[i - 1] !== "string") out += " ";
    out += printValue(arg, "<nil>");
  }
  return out;
}

const htmlEscapes: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&#34;",
  "'": "&#39;",
  "\0": "\ufffd",
};
const jsEscapes: Readonly<Record<string, string | undefined>> = {
  "\\": "\\\\",
  "'": "\\'",
  '"': '\\"',
};

function code(c: string): string {
  return (c.codePointAt(0) as number).toString(16).toUpperCase().padStart(4, "0");
}

/** Everything but letters, digits and `-_.~` is written as %XX, a blank as +. */
function queryEscape(value: string): string {
  // through bytes: half a surrogate pair would throw
  return encodeURIComponent(decodeText(new TextEncoder().encode(value)))
    .replace(/[!'()*]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`)
    .replaceAll("%20", "+");
}

function queryUnescape(value: string): string {
  const bad = /%(?![0-9a-fA-F]{2}).{0,2}/s.exec(value);
  if (bad !== null) {
    throw new TemplateRunError(`invalid URL escape ${JSON.stringify(bad[0])}`);
  }
  const bytes: number[] = [];
  for (const part of value.replaceAll("+", " ").split(/(%[0-9a-fA-F]{2})/)) {
    if (part.startsWith("%")) bytes.push(Number.parseInt(part.slice(1), 16));
    else for (const byte of new TextEncoder().encode(part)) bytes.push(byte);
  }
  return decodeText(Uint8Array.from(bytes));
}

const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

function toBase64(bytes: Uint8Array): string {
  let out = "";
  for (let i = 0; i < bytes.length; i += 3) {
    const left = bytes.length - i;
    const triple = ((bytes[i] as number) << 16) | ((bytes[i + 1] ?? 0) << 8) | (bytes[i + 2] ?? 0);
    out += alphabet[triple >> 18];
    out += alphabet[(triple >> 12) & 63];
    out += left > 1 ? alphabet[(triple >> 6) & 63] : "=";
    out += left > 2 ? alphabet[triple & 63] : "=";
  }
  return out;
}

/** Padding may be missing; the answer to a text that is not base64 is the error's text. */
function fromBase64(value: string): string {
  const given = new TextEncoder().encode(value);
  const rest = given.length % 4;
  const text =
    Array.from(given, (byte) => String.fromCharCode(byte)).join("") +
    "=".repeat(rest > 1 ? 4 - rest : 0);
  const bytes: number[] = [];
  let held = 0;
  let count = 0;
  for (let i = 0; i < text.length; i++) {
    const c = text[i] as string;
    if (c === "\n" || c === "\r") continue;
    const digit = alphabet.indexOf(c);
    if (digit < 0) {
      const bad = c === "=" ? badPadding(text, i, count) : i;
      if (bad !== undefined) return `illegal base64 data at input byte ${bad}`;
      bytes.push((held >> (count * 6 - 8)) & 255);
      if (count === 3) bytes.push((held >> 2) & 255);
      return decodeText(Uint8Array.from(bytes));
    }
    held = (held << 6) | digit;
    if (++count < 4) continue;
    bytes.push((held >> 16) & 255, (held >> 8) & 255, held & 255);
    held = 0;
    count = 0;
  }
  if (count > 0) return `illegal base64 data at input byte ${text.length - count}`;
  return decodeText(Uint8Array.from(bytes));
}

/** Where the padding that begins at `at`, behind `count` digits of a group, is wrong; undefined if it is not. */
function badPadding(text: string, at: number, count: number): number | undefined {
  if (count < 2) return at;
  let next = skipLineEnds(text, at + 1);
  if (count === 2) {
    if (next === text.length) return next;
    if (text[next] !== "=") return next - 1;
    next = skipLineEnds(text, next + 1);
  }
  return next < text.length ? next : undefined;
}

function skipLineEnds(text: string, from: number): number {
  let at = from;
  while (text[at] === "\n" || text[at] === "\r") at++;
  return at;
}
