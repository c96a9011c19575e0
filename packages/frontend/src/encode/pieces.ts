/** Longest piece of an answer. */
export const pieceBytes = 64 * 1024;
/** Shorter texts and runs of bytes are copied one by one: a call that copies them would take longer. */
const shortText = 48;

const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { ignoreBOM: true });

/** The bytes of an answer, made piece by piece: no piece is longer than 64 KiB. */
export type Pieces = Generator<Uint8Array, void>;

/** Puts JSON together, text by text, into pieces that are taken away as soon as they are full. */
export class PieceWriter {
  #piece = new Uint8Array(pieceBytes);
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

  /** Adds the bytes from .. to - 1 of a column as a JSON string; what is not UTF-8 becomes U+FFFD. */
  line(bytes: Uint8Array, from: number, to: number): void {
    this.text('"');
    for (let at = from; at < to; ) {
      const byte = bytes[at] as number;
      if (plainBytes[byte] === 1) {
        at = this.#plain(bytes, at, to);
      } else if (byte < 0x80) {
        this.text(escapes[byte] as string);
        at++;
      } else {
        const end = endOfWide(bytes, at, to);
        this.text(jsonText(decoder.decode(bytes.subarray(at, end))).slice(1, -1));
        at = end;
      }
    }
    this.text('"');
  }

  /** Copies bytes that need no escape, as far as they go or fit; gives the place behind them. */
  #plain(bytes: Uint8Array, from: number, to: number): number {
    if (this.#used === pieceBytes) this.#next();
    const end = Math.min(to, from + pieceBytes - this.#used);
    let at = from + 1;
    while (at < end && plainBytes[bytes[at] as number] === 1) at++;
    const used = this.#used;
    if (at - from > shortText) this.#piece.set(bytes.subarray(from, at), used);
    else {
      const piece = this.#piece;
      for (let i = from; i < at; i++) piece[used + i - from] = bytes[i] as number;
    }
    this.#used = used + at - from;
    return at;
  }

  /** Adds a short text of ASCII; false when it is something else. */
  #short(text: string): boolean {
    if (this.#used + text.length > pieceBytes) return false;
    for (let i = 0; i < text.length; i++) {
      const code = text.charCodeAt(i);
      if (code > 0x7f) return false;
      this.#piece[this.#used + i] = code;
    }
    this.#used += text.length;
    return true;
  }

  #next(): void {
    this.#full.push(this.#piece.subarray(0, this.#used));
    this.#piece = new Uint8Array(pieceBytes);
    this.#used = 0;
  }
}

const htmlUnsafe = /[<>&\u2028\u2029]/g;

/** 1 for the bytes that stand in a JSON string as they are. */
const plainBytes = Uint8Array.from({ length: 256 }, (_, byte) =>
  byte >= 0x20 && byte < 0x80 && !'"\\<>&'.includes(String.fromCharCode(byte)) ? 1 : 0,
);

/** The end of a run of bytes beyond ASCII: whole characters, or what is none. */
function endOfWide(bytes: Uint8Array, from: number, to: number): number {
  let at = from;
  while (at < to && (bytes[at] as number) >= 0x80) at++;
  return at;
}

/** What the other bytes of ASCII are written as. */
const escapes = Array.from({ length: 0x80 }, (_, byte) =>
  jsonText(String.fromCharCode(byte)).slice(1, -1),
);

/** JSON with the characters escaped that HTML would read, as the reference does. */
export function jsonText(value: unknown): string {
  return JSON.stringify(value).replace(
    htmlUnsafe,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}
