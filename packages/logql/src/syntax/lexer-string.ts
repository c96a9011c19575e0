import { escapedChars } from "@skald/model";

/** Offset behind the closing quote of the string that starts here, or -1 when it is not closed. */
export function findStringEnd(text: string, start: number, quote: number): number {
  if (quote === 96) return text.indexOf("`", start + 1) + 1 || -1;
  for (let i = start + 1; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code === quote) return i + 1;
    if (code === 10) return -1;
    if (code === 92) i++;
  }
  return -1;
}

/**
 * Decodes a string literal, quotes included in the offsets: a back-quoted one as it stands, else with Go's escapes.
 * Bytes written as `\xNN` and `\NNN` must make up UTF-8, because a line filter is text.
 */
export function decodeString(
  text: string,
  start: number,
  end: number,
): string | { readonly error: string } {
  const body = text.slice(start + 1, end - 1);
  if (text.charCodeAt(start) === 96 || !body.includes("\\")) return body;
  let out = "";
  let bytes: number[] = [];
  for (let i = 0; i < body.length; ) {
    const piece = readEscape(body, i);
    if (piece === undefined) return { error: "invalid char escape" };
    i = piece.end;
    if (piece.byte !== undefined) {
      bytes.push(piece.byte);
      continue;
    }
    const flushed = decodeBytes(bytes);
    if (flushed === undefined) return { error: "invalid UTF-8 encoding" };
    out += flushed + piece.text;
    bytes = [];
  }
  const flushed = decodeBytes(bytes);
  return flushed === undefined ? { error: "invalid UTF-8 encoding" } : out + flushed;
}

interface Escape {
  readonly end: number;
  readonly text: string;
  /** Set for an escape that stands for a byte above 0x7f. */
  readonly byte?: number;
}

const plainPattern = /[^\\]+/y;
const numericPattern = /\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-7]{3}))/y;
/** Reads an escape, or the plain text up to the next one. */
function readEscape(body: string, at: number): Escape | undefined {
  plainPattern.lastIndex = at;
  const plain = plainPattern.exec(body)?.[0];
  if (plain !== undefined) return { end: at + plain.length, text: plain };
  const simple = escapedChars[body[at + 1] as string];
  if (simple !== undefined) return { end: at + 2, text: simple };
  numericPattern.lastIndex = at;
  const match = numericPattern.exec(body);
  if (match === null) return undefined;
  const end = numericPattern.lastIndex;
  const [, hex, short, long, octal] = match;
  const codePoint = short ?? long;
  if (codePoint !== undefined) {
    const value = Number.parseInt(codePoint, 16);
    const valid = value <= 0x10ffff && (value < 0xd800 || value > 0xdfff);
    return valid ? { end, text: String.fromCodePoint(value) } : undefined;
  }
  const byte = hex !== undefined ? Number.parseInt(hex, 16) : Number.parseInt(octal ?? "", 8);
  if (byte > 0xff) return undefined;
  return byte < 0x80 ? { end, text: String.fromCharCode(byte) } : { end, text: "", byte };
}

function decodeBytes(bytes: readonly number[]): string | undefined {
  if (bytes.length === 0) return "";
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(
      Uint8Array.from(bytes),
    );
  } catch {
    return undefined;
  }
}
