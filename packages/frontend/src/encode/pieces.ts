/** Longest piece of an answer. */
export const pieceBytes = 64 * 1024;
/** Shorter texts are copied character by character: asking the encoder would take longer. */
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
    if (!isPlain(bytes, from, to)) {
      this.string(decoder.decode(bytes.subarray(from, to)));
      return;
    }
    this.text('"');
    for (let at = from; at < to; ) {
      if (this.#used === pieceBytes) this.#next();
      const length = Math.min(to - at, pieceBytes - this.#used);
      this.#piece.set(bytes.subarray(at, at + length), this.#used);
      this.#used += length;
      at += length;
    }
    this.text('"');
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

/** 1 for the bytes that stand in a JSON string as they are. */
const plainBytes = Uint8Array.from({ length: 256 }, (_, byte) =>
  byte >= 0x20 && byte < 0x80 && !'"\\<>&'.includes(String.fromCharCode(byte)) ? 1 : 0,
);

function isPlain(bytes: Uint8Array, from: number, to: number): boolean {
  for (let at = from; at < to; at++) if (plainBytes[bytes[at] as number] === 0) return false;
  return true;
}

const htmlUnsafe = /[<>&\u2028\u2029]/g;

/** JSON with the characters escaped that HTML would read, as the reference does. */
export function jsonText(value: unknown): string {
  return JSON.stringify(value).replace(
    htmlUnsafe,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}
