const hasBuffer = typeof Buffer !== "undefined";
const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
const encoder = new TextEncoder();

/** Views for decoding; each goes with its bytes, so nothing is kept longer than these. */
const views = new WeakMap<Uint8Array, Buffer>();

/** The text of a range of UTF-8 bytes, also in shared memory; broken bytes become U+FFFD. */
export function readText(bytes: Uint8Array, start: number, end: number): string {
  if (end - start <= 12) {
    let text = "";
    for (let i = start; i < end; i++) {
      const byte = bytes[i]!;
      if (byte >= 128) return decode(bytes, start, end);
      text += String.fromCharCode(byte);
    }
    return text;
  }
  return decode(bytes, start, end);
}

function decode(bytes: Uint8Array, start: number, end: number): string {
  if (!hasBuffer) return decoder.decode(bytes.slice(start, end));
  let view = views.get(bytes);
  if (view === undefined) {
    view = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    views.set(bytes, view);
  }
  return view.toString("utf8", start, end);
}

export function encodeText(text: string): Uint8Array {
  return encoder.encode(text);
}

/** True when the range has exactly these bytes. */
export function bytesEqual(
  bytes: Uint8Array,
  start: number,
  end: number,
  other: Uint8Array,
): boolean {
  if (end - start !== other.length) return false;
  for (let i = 0; i < other.length; i++) if (bytes[start + i] !== other[i]) return false;
  return true;
}

/** True when the range contains the byte. */
export function hasByte(bytes: Uint8Array, start: number, end: number, byte: number): boolean {
  for (let i = start; i < end; i++) if (bytes[i] === byte) return true;
  return false;
}

/** Scratch memory that one row fills from the start; what was given out stays valid when it grows. */
export class Arena {
  bytes = new Uint8Array(4096);
  used = 0;

  /** Room for `count` more bytes behind `used`. */
  reserve(count: number): void {
    if (this.used + count <= this.bytes.length) return;
    this.bytes = new Uint8Array(Math.max(this.bytes.length * 2, count));
    this.used = 0;
  }

  /** Appends a text as UTF-8; it is at the returned start up to `used`. */
  append(text: string): number {
    this.reserve(text.length * 3);
    const start = this.used;
    const { bytes } = this;
    let at = start;
    for (let i = 0; i < text.length; i++) {
      const code = text.charCodeAt(i);
      if (code >= 128) {
        at = start + encoder.encodeInto(text, bytes.subarray(start)).written;
        break;
      }
      bytes[at++] = code;
    }
    this.used = at;
    return start;
  }
}

/** Offset of a text within a range, or -1; for single lines, where the call of a kernel would cost more. */
export function indexOfText(
  bytes: Uint8Array,
  start: number,
  end: number,
  text: Uint8Array,
): number {
  const { length } = text;
  if (length === 0) return start;
  const first = text[0]!;
  const stop = end - length;
  for (let i = start; i <= stop; i++) {
    if (bytes[i] !== first) continue;
    let k = 1;
    while (k < length && bytes[i + k] === text[k]) k++;
    if (k === length) return i;
  }
  return -1;
}

/** True when the range holds the text; with `ignoreCase` the text is lower case and ASCII letters fold. */
export function containsText(
  bytes: Uint8Array,
  start: number,
  end: number,
  text: Uint8Array,
  ignoreCase: boolean,
): boolean {
  if (!ignoreCase) return indexOfText(bytes, start, end, text) >= 0;
  const { length } = text;
  const stop = end - length;
  for (let i = start; i <= stop; i++) {
    let k = 0;
    while (k < length && lower(bytes[i + k]!) === text[k]) k++;
    if (k === length) return true;
  }
  return false;
}

function lower(byte: number): number {
  return byte >= 65 && byte <= 90 ? byte | 32 : byte;
}

/**
 * Finds bytes that are no UTF-8, and the sign U+FFFD that stands for such: parsers put a blank in place of each.
 * Returns the start of the repaired copy in the arena, or -1 when the range is fine as it is.
 */
export function blankBrokenUtf8(arena: Arena, bytes: Uint8Array, from: number, to: number): number {
  let i = from;
  while (i < to) {
    const length = goodLength(bytes, i, to);
    if (length === 0) break;
    i += length;
  }
  if (i === to) return -1;
  arena.reserve(to - from);
  const out = arena.bytes;
  const start = arena.used;
  let at = start;
  for (let k = from; k < to; ) {
    const length = goodLength(bytes, k, to);
    if (length === 0) {
      out[at++] = 32;
      k += isReplacement(bytes, k, to) ? 3 : 1;
      continue;
    }
    for (let n = 0; n < length; n++) out[at++] = bytes[k++]!;
  }
  arena.used = at;
  return start;
}

function isReplacement(bytes: Uint8Array, at: number, end: number): boolean {
  return at + 2 < end && bytes[at] === 0xef && bytes[at + 1] === 0xbf && bytes[at + 2] === 0xbd;
}

/** Length of the character at `at`; 0 when it is broken or U+FFFD. */
function goodLength(bytes: Uint8Array, at: number, end: number): number {
  const c = bytes[at]!;
  if (c < 0x80) return 1;
  const length =
    c >= 0xc2 && c <= 0xdf ? 2 : c >= 0xe0 && c <= 0xef ? 3 : c >= 0xf0 && c <= 0xf4 ? 4 : 0;
  if (length === 0 || at + length > end) return 0;
  const second = bytes[at + 1]!;
  const low = c === 0xe0 ? 0xa0 : c === 0xf0 ? 0x90 : 0x80;
  const high = c === 0xed ? 0x9f : c === 0xf4 ? 0x8f : 0xbf;
  if (second < low || second > high) return 0;
  for (let i = 2; i < length; i++) if ((bytes[at + i]! & 0xc0) !== 0x80) return 0;
  return isReplacement(bytes, at, end) ? 0 : length;
}
