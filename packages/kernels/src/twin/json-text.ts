import { PushFaultSignal, pushFault } from "../shared/raw-push.js";

/** Deepest nesting of a JSON value that is skipped or kept as text. */
const maxJsonDepth = 512;

/**
 * A cursor over JSON text that validates as it goes and unescapes strings in place: the result of an escape is
 * never longer than the escape, so a string ends up as a range of `bytes` and nothing else moves. Raw control
 * characters within strings are let through, as many agents send them; invalid UTF-8 stays as it is; a lone
 * surrogate becomes U+FFFD.
 */
export class JsonText {
  readonly bytes: Uint8Array;
  at = 0;
  /** The string read last. */
  start = 0;
  length = 0;
  readonly #arrays = new Uint8Array(maxJsonDepth + 1);

  constructor(bytes: Uint8Array) {
    this.bytes = bytes;
  }

  fail(fault: number): never {
    throw new PushFaultSignal(this.at >= this.bytes.length ? pushFault.jsonEnd : fault, this.at);
  }

  /** Skips blanks and returns the next byte without taking it, -1 at the end. */
  peek(): number {
    const bytes = this.bytes;
    while (this.at < bytes.length) {
      const byte = bytes[this.at]!;
      if (byte !== 0x20 && byte !== 0x0a && byte !== 0x0d && byte !== 0x09) return byte;
      this.at++;
    }
    return -1;
  }

  /** Skips blanks and takes the byte, or fails. */
  expect(byte: number): void {
    if (this.peek() !== byte) this.fail(pushFault.jsonSyntax);
    this.at++;
  }

  /**
   * Moves on within an object or array whose opening was taken: true when an item follows, false when it is
   * closed. `first` is true before the first item.
   */
  hasNext(first: boolean, close: number): boolean {
    const byte = this.peek();
    if (byte === close) {
      this.at++;
      return false;
    }
    if (first) return true;
    if (byte !== 0x2c) this.fail(pushFault.jsonSyntax);
    this.at++;
    return true;
  }

  /** Reads a key and its colon; the key is the string read last. */
  readKey(): void {
    if (this.peek() !== 0x22) this.fail(pushFault.jsonSyntax);
    this.readString();
    this.expect(0x3a);
  }

  /** True when the string read last is this ASCII text. */
  isString(text: Uint8Array): boolean {
    if (this.length !== text.length) return false;
    for (let i = 0; i < text.length; i++) if (this.bytes[this.start + i] !== text[i]) return false;
    return true;
  }

  /** Reads the string at the cursor, which stands on its opening quote, and unescapes it in place. */
  readString(): void {
    const bytes = this.bytes;
    let at = this.at + 1;
    this.start = at;
    for (; at < bytes.length; at++) {
      const byte = bytes[at]!;
      if (byte === 0x22) {
        this.length = at - this.start;
        this.at = at + 1;
        return;
      }
      if (byte === 0x5c) {
        this.#unescapeRest(at);
        return;
      }
    }
    this.at = at;
    throw new PushFaultSignal(pushFault.jsonString, this.start - 1);
  }

  /** Skips one value of any kind, checking it; without recursion. */
  skipValue(): void {
    const arrays = this.#arrays;
    let depth = 0;
    for (;;) {
      const byte = this.peek();
      if (byte === 0x7b || byte === 0x5b) {
        this.at++;
        if (++depth > maxJsonDepth) throw new PushFaultSignal(pushFault.jsonDepth, this.at);
        arrays[depth] = byte === 0x5b ? 1 : 0;
        if (this.hasNext(true, byte + 2)) {
          if (byte === 0x7b) this.#skipKey();
          continue;
        }
        depth--;
      } else {
        this.#skipScalar(byte);
      }
      for (; depth > 0; depth--) {
        if (!this.hasNext(false, arrays[depth] === 1 ? 0x5d : 0x7d)) continue;
        if (arrays[depth] === 0) this.#skipKey();
        break;
      }
      if (depth === 0) return;
    }
  }

  #skipKey(): void {
    if (this.peek() !== 0x22) this.fail(pushFault.jsonSyntax);
    this.#skipString();
    this.expect(0x3a);
  }

  #skipScalar(byte: number): void {
    if (byte === 0x22) this.#skipString();
    else if (byte === 0x74) this.skipWord(0x74727565, 0);
    else if (byte === 0x66) this.skipWord(0x66616c73, 0x65);
    else if (byte === 0x6e) this.skipWord(0x6e756c6c, 0);
    else if (byte === 0x2d || isDigit(byte)) this.#skipNumber();
    else this.fail(pushFault.jsonSyntax);
  }

  /** Takes true, false or null: four letters big endian and a fifth or 0. */
  skipWord(four: number, fifth: number): void {
    const bytes = this.bytes;
    for (let shift = 24; shift >= 0; shift -= 8) {
      if (bytes[this.at] !== ((four >>> shift) & 0xff)) this.fail(pushFault.jsonSyntax);
      this.at++;
    }
    if (fifth === 0) return;
    if (bytes[this.at] !== fifth) this.fail(pushFault.jsonSyntax);
    this.at++;
  }

  #skipNumber(): void {
    const bytes = this.bytes;
    if (bytes[this.at] === 0x2d) this.at++;
    if (bytes[this.at] === 0x30) this.at++;
    else this.#skipDigits();
    if (bytes[this.at] === 0x2e) {
      this.at++;
      this.#skipDigits();
    }
    if ((bytes[this.at]! | 0x20) !== 0x65) return;
    this.at++;
    if (bytes[this.at] === 0x2b || bytes[this.at] === 0x2d) this.at++;
    this.#skipDigits();
  }

  #skipDigits(): void {
    if (!isDigit(this.bytes[this.at] ?? -1)) this.fail(pushFault.jsonSyntax);
    while (isDigit(this.bytes[this.at] ?? -1)) this.at++;
  }

  #skipString(): void {
    const bytes = this.bytes;
    const open = this.at++;
    while (this.at < bytes.length) {
      const byte = bytes[this.at++]!;
      if (byte === 0x22) return;
      if (byte === 0x5c) this.#readEscape();
    }
    throw new PushFaultSignal(pushFault.jsonString, open);
  }

  #unescapeRest(from: number): void {
    const bytes = this.bytes;
    let to = from;
    this.at = from;
    while (this.at < bytes.length) {
      const byte = bytes[this.at++]!;
      if (byte === 0x22) {
        this.length = to - this.start;
        return;
      }
      if (byte !== 0x5c) bytes[to++] = byte;
      else to = this.#writeCodePoint(this.#readEscapedCodePoint(), to);
    }
    throw new PushFaultSignal(pushFault.jsonString, this.start - 1);
  }

  /** Reads an escape and, where it is the first half of a surrogate pair, the second. */
  #readEscapedCodePoint(): number {
    const unit = this.#readEscape();
    if (unit < 0xd800 || unit > 0xdfff) return unit;
    const bytes = this.bytes;
    const after = this.at;
    if (unit > 0xdbff || bytes[after] !== 0x5c || bytes[after + 1] !== 0x75) return 0xfffd;
    this.at = after + 1;
    const low = this.#readEscape();
    if (low >= 0xdc00 && low <= 0xdfff) return 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00);
    this.at = after;
    return 0xfffd;
  }

  /** Reads what follows a backslash: a UTF-16 code unit. */
  #readEscape(): number {
    const byte = this.bytes[this.at];
    switch (byte) {
      case 0x22:
      case 0x5c:
      case 0x2f:
        this.at++;
        return byte;
      case 0x62:
        this.at++;
        return 8;
      case 0x66:
        this.at++;
        return 12;
      case 0x6e:
        this.at++;
        return 10;
      case 0x72:
        this.at++;
        return 13;
      case 0x74:
        this.at++;
        return 9;
      case 0x75:
        this.at++;
        return this.#readHex();
      default:
        return this.fail(pushFault.jsonEscape);
    }
  }

  #readHex(): number {
    let unit = 0;
    for (let i = 0; i < 4; i++) {
      const digit = hexDigit(this.bytes[this.at] ?? -1);
      if (digit < 0) this.fail(pushFault.jsonEscape);
      unit = unit * 16 + digit;
      this.at++;
    }
    return unit;
  }

  #writeCodePoint(point: number, to: number): number {
    const bytes = this.bytes;
    let at = to;
    if (point < 0x80) {
      bytes[at++] = point;
      return at;
    }
    if (point < 0x800) {
      bytes[at++] = 0xc0 | (point >> 6);
    } else {
      if (point < 0x10000) {
        bytes[at++] = 0xe0 | (point >> 12);
      } else {
        bytes[at++] = 0xf0 | (point >> 18);
        bytes[at++] = 0x80 | ((point >> 12) & 0x3f);
      }
      bytes[at++] = 0x80 | ((point >> 6) & 0x3f);
    }
    bytes[at++] = 0x80 | (point & 0x3f);
    return at;
  }
}

function isDigit(byte: number): boolean {
  return byte >= 0x30 && byte <= 0x39;
}

function hexDigit(byte: number): number {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30;
  const letter = byte | 0x20;
  return byte > 0 && letter >= 0x61 && letter <= 0x66 ? letter - 0x57 : -1;
}
