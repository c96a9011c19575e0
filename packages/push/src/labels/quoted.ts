import { escapedChars } from "@skald/model";
import { labelTextError } from "./pairs.js";

export interface QuotedText {
  readonly text: string;
  /** Position behind the closing quote. */
  readonly end: number;
}

/**
 * Reads a quoted value of label text: Go escapes between double or single quotes, none between back quotes.
 * Undefined when no quote stands there; throws invalid_argument for a broken one.
 */
export function readQuoted(text: string, start: number): QuotedText | undefined {
  const mark = text[start];
  if (mark === "`") {
    const end = text.indexOf("`", start + 1);
    if (end < 0) throw labelTextError(text, start, "unterminated raw string");
    return { text: text.slice(start + 1, end), end: end + 1 };
  }
  if (mark !== '"' && mark !== "'") return undefined;
  const plain = mark === '"' ? plainDouble : plainSingle;
  plain.lastIndex = start + 1;
  plain.exec(text);
  const end = plain.lastIndex;
  if (text[end] === mark) return { text: text.slice(start + 1, end), end: end + 1 };
  return readEscaped(text, start, mark);
}

const plainDouble = /[^"\\\n]*/y;
const plainSingle = /[^'\\\n]*/y;
const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** Values with escapes are put together from bytes, because `\xe4\xb8\x96` is one character. */
function readEscaped(text: string, start: number, mark: string): QuotedText {
  const parts: Uint8Array[] = [];
  const plain = mark === '"' ? plainDouble : plainSingle;
  for (let at = start + 1; ; ) {
    plain.lastIndex = at;
    plain.exec(text);
    parts.push(Buffer.from(text.slice(at, plain.lastIndex)));
    at = plain.lastIndex;
    if (text[at] === mark) return { text: decode(text, start, parts), end: at + 1 };
    if (text[at] !== "\\") throw labelTextError(text, start, "unterminated quoted string");
    const escaped = readEscape(text, at, mark);
    parts.push(escaped.bytes);
    at = escaped.end;
  }
}

const escapePattern =
  /\\(?:([abfnrtv\\"'])|([0-7]{3})|x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8}))/y;

function readEscape(text: string, at: number, mark: string): { bytes: Uint8Array; end: number } {
  escapePattern.lastIndex = at;
  const m = escapePattern.exec(text);
  const short = m?.[1];
  if (m === null || ((short === '"' || short === "'") && short !== mark)) {
    throw labelTextError(text, at, "unknown escape sequence");
  }
  const end = escapePattern.lastIndex;
  if (short !== undefined) return { bytes: Buffer.from(escapedChars[short] ?? short), end };
  const byte = m[2] === undefined ? m[3] : undefined;
  if (m[2] !== undefined || byte !== undefined) {
    const value =
      m[2] === undefined ? Number.parseInt(byte as string, 16) : Number.parseInt(m[2], 8);
    if (value > 255) throw labelTextError(text, at, "escape sequence is above \\377");
    return { bytes: Uint8Array.of(value), end };
  }
  const code = Number.parseInt((m[4] ?? m[5]) as string, 16);
  if (code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) {
    throw labelTextError(text, at, "escape sequence is an invalid Unicode code point");
  }
  return { bytes: Buffer.from(String.fromCodePoint(code)), end };
}

function decode(text: string, start: number, parts: readonly Uint8Array[]): string {
  try {
    return utf8.decode(Buffer.concat(parts));
  } catch {
    throw labelTextError(text, start, "label value is not valid UTF-8");
  }
}
