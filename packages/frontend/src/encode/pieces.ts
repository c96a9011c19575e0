import type { FoundLines } from "@skald/logql";
import { type BytesColumn, decodeText } from "@skald/model";

/** Longest piece of an answer. */
export const pieceBytes = 64 * 1024;
/** Room that a piece begins with when it is the first: most answers are short. */
const firstPieceBytes = 4 * 1024;
/** Shorter texts are copied one by one: a call that copies them would take longer. */
const shortText = 48;

const encoder = new TextEncoder();

/** The bytes of an answer, made piece by piece: no piece is longer than 64 KiB. */
export type Pieces = Generator<Uint8Array, void>;

/** Puts JSON together, text by text, into pieces that are taken away as soon as they are full. */
export class PieceWriter {
  #piece: Uint8Array = Buffer.allocUnsafeSlow(firstPieceBytes);
  #used = 0;
  #full: Uint8Array[] = [];

  /** The pieces that have become full since the last call. */
  *full(): Pieces {
    if (this.#full.length === 0) return;
    const full = this.#full;
    this.#full = [];
    yield* full;
  }

  /** The pieces that are left, the last one shorter than the others. */
  *rest(): Pieces {
    yield* this.full();
    if (this.#used > 0) yield this.#piece.subarray(0, this.#used);
    this.#used = 0;
  }

  /** Adds a text as it stands. */
  text(text: string): void {
    if (text.length <= shortText && this.#short(text)) return;
    let rest = text;
    while (rest !== "") {
      const { read, written } = encoder.encodeInto(rest, this.#piece.subarray(this.#used));
      this.#used += written;
      if (read === rest.length) return;
      rest = rest.slice(read);
      this.#next();
    }
  }

  /** Adds a text as a JSON string. */
  string(text: string): void {
    this.text(jsonText(text));
  }

  /** Adds a line as a JSON string; each byte that is not UTF-8 becomes U+FFFD. */
  line({ columns, column, value }: FoundLines, row: number): void {
    const { bytes, offsets } = columns[column[row] as number] as BytesColumn;
    const from = offsets[value[row] as number] as number;
    const to = offsets[(value[row] as number) + 1] as number;
    this.text('"');
    for (let at = this.#plain(bytes, from, to); at < to; at = this.#plain(bytes, at, to)) {
      const end = endOfRare(bytes, at, to);
      this.text(jsonText(decodeText(bytes.subarray(at, end))).slice(1, -1));
      at = end;
    }
    this.text('"');
  }

  /** Copies bytes that stand for themselves, or for themselves behind a backslash; gives the place behind them. */
  #plain(bytes: Uint8Array, from: number, to: number): number {
    let at = from;
    while (at < to) {
      if (this.#piece.length - this.#used < 2) this.#next();
      const piece = this.#piece;
      let used = this.#used;
      // Each takes two bytes at most.
      const end = Math.min(to, at + ((piece.length - used) >> 1));
      while (at < end) {
        const byte = bytes[at] as number;
        const width = widths[byte] as number;
        if (width === rare) break;
        // A plain byte takes the place of the backslash: half of all lines have a quote in every few bytes.
        piece[used] = backslash;
        piece[used + width - 1] = byte;
        used += width;
        at++;
      }
      this.#used = used;
      if (at < end) break;
    }
    return at;
  }

  /** Adds a short text of ASCII; false when it is something else. */
  #short(text: string): boolean {
    if (this.#used + text.length > this.#piece.length) return false;
    for (let i = 0; i < text.length; i++) {
      const code = text.charCodeAt(i);
      if (code > 0x7f) return false;
      this.#piece[this.#used + i] = code;
    }
    this.#used += text.length;
    return true;
  }

  /** Makes room: the rest of the present piece, or the next one. */
  #next(): void {
    const full = this.#piece.subarray(0, this.#used);
    this.#piece = Buffer.allocUnsafeSlow(pieceBytes);
    if (full.buffer.byteLength < pieceBytes) {
      this.#piece.set(full);
      return;
    }
    this.#full.push(full);
    this.#used = 0;
  }
}

const htmlUnsafe = /[<>&\u2028\u2029]/g;

const rare = 0;
const plain = 1;
const quoted = 2;
const backslash = 0x5c;

/** Bytes that a byte takes in a JSON string: as it is, or behind a backslash; 0 if it stands there otherwise. */
const widths = Uint8Array.from({ length: 256 }, (_, byte) => {
  const char = String.fromCharCode(byte);
  if ('"\\'.includes(char)) return quoted;
  return byte >= 0x20 && byte < 0x80 && !"<>&".includes(char) ? plain : rare;
});

/** The end of a run of rare bytes: whole characters, or what is none. */
function endOfRare(bytes: Uint8Array, from: number, to: number): number {
  let at = from;
  while (at < to && widths[bytes[at] as number] === rare) at++;
  return at;
}

/** JSON with the characters escaped that HTML would read, as the reference does. */
export function jsonText(value: unknown): string {
  return JSON.stringify(value).replace(
    htmlUnsafe,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

const plainText = /^[ !#-%'-;=?-[\]-~]*$/;

/** The same of a text, without a look at what needs no escape. */
export function quickText(text: string): string {
  return plainText.test(text) ? `"${text}"` : jsonText(text);
}
