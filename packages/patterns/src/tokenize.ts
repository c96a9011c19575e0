/** Most words of a line. */
const maxWords = 80;
/** Fewest words of a line. */
const minWords = 3;
/** Hash of a word that varies. */
export const anyWord = 0;

/**
 * The words of a line and what stands between them, as places in its bytes; reused for line after line. A word with many
 * digits is `anyWord` at once, and neighbours of that kind are one: `10:11:12.5` is one word.
 */
export class Tokens {
  count = 0;
  /** The hash of each word: `anyWord`, or a number that is never `anyWord`. */
  readonly hashes = new Uint32Array(maxWords);
  readonly starts = new Uint32Array(maxWords);
  readonly ends = new Uint32Array(maxWords);
  /** The hash of everything between words. */
  gapHash = 0;
  /** The hash of the line. Lines that differ only in numbers have the same hash. */
  lineHash = 0;
  end = 0;

  /** Reads the bytes [from, to); false when there are too few or too many words. */
  read(bytes: Uint8Array, from: number, to: number): boolean {
    this.count = 0;
    let gap = hashStart;
    let at = from;
    this.end = to;
    while (at < to) {
      while (at < to && kinds[bytes[at]!] === isGap) at++;
      if (at >= to) break;
      const start = at;
      let hash = hashStart;
      let digits = 0;
      while (at < to && kinds[bytes[at]!] !== isGap) {
        const byte = bytes[at++]!;
        if (kinds[byte] === isDigit) digits++;
        hash = Math.imul(hash ^ byte, hashFactor);
      }
      const isAny = digits > 0 && looksVariable(bytes[start]!, digits, at - start);
      if (!this.#add(start, at, isAny ? anyWord : hash >>> 0 || 1, bytes)) return false;
    }
    let line = hashStart;
    for (let i = 0; i < this.count; i++) {
      line = Math.imul(line ^ this.hashes[i]!, hashFactor);
      const gapEnd = this.starts[i]!;
      for (let p = i === 0 ? from : this.ends[i - 1]!; p < gapEnd; p++) {
        gap = Math.imul(gap ^ bytes[p]!, hashFactor);
      }
      gap = Math.imul(gap ^ 0x100, hashFactor);
    }
    this.gapHash = gap >>> 0;
    this.lineHash = Math.imul(line ^ gap, hashFactor) >>> 0;
    return this.count >= minWords;
  }

  #add(start: number, end: number, hash: number, bytes: Uint8Array): boolean {
    const last = this.count - 1;
    if (hash === anyWord && last >= 0 && this.hashes[last] === anyWord) {
      const between = start - this.ends[last]!;
      if (between === 1 && joins[bytes[start - 1]!] === 1) {
        this.ends[last] = end;
        return true;
      }
    }
    if (this.count === maxWords) return false;
    this.starts[this.count] = start;
    this.ends[this.count] = end;
    this.hashes[this.count++] = hash;
    return true;
  }
}

/** `v1` and `http2` are names, `42`, `5ms`, `a81f03` and `node-10023` are not. */
function looksVariable(first: number, digits: number, length: number): boolean {
  return kinds[first] === isDigit || digits >= 3 || length >= 12;
}

const isGap = 1;
const isDigit = 2;
const hashStart = 0x811c9dc5;
const hashFactor = 0x01000193;

const kinds = Uint8Array.from({ length: 256 }, (_, byte) => {
  if (byte <= 0x20) return isGap;
  if (byte >= 0x30 && byte <= 0x39) return isDigit;
  return "=,;()[]{}\"'|<>/:?&".includes(String.fromCharCode(byte)) ? isGap : 0;
});

/** Signs in the middle of one value. */
const joins = Uint8Array.from({ length: 256 }, (_, byte) =>
  Number(":/,".includes(String.fromCharCode(byte))),
);

const openBrace = 0x7b;
const quote = 0x22;
const backslash = 0x5c;
const blank = 0x20;

/** A part of a line: the bytes [from, to). */
export interface LinePart {
  readonly from: number;
  readonly to: number;
  /** Whether the line has more around it. */
  readonly isInner: boolean;
}

/** The message of a line: in a JSON object the text of the first field that is present (undefined when none is), else the whole line. */
export function messageOf(line: Buffer, fields: readonly Buffer[]): LinePart | undefined {
  if (line[0] !== openBrace) return { from: 0, to: line.length, isInner: false };
  for (const field of fields) {
    const found = line.indexOf(field);
    if (found < 0) continue;
    let at = found + field.length;
    while (line[at] === blank) at++;
    if (line[at] !== quote) continue;
    const from = ++at;
    while (at < line.length && line[at] !== quote) at += line[at] === backslash ? 2 : 1;
    return { from, to: Math.min(at, line.length), isInner: true };
  }
  return undefined;
}

/** The names of fields in the form that `messageOf` searches for. */
export function fieldNeedles(names: readonly string[]): Buffer[] {
  return names.map((name) => Buffer.from(`${JSON.stringify(name)}:`));
}
