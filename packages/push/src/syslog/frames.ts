/** How messages follow each other on a connection (RFC 6587); `auto` finds it out message by message. */
export type Framing = "auto" | "octet_counting" | "newline";

/** Takes a message; `isCut` says that bytes of it are missing. The bytes are valid during the call only. */
export type TakeMessage = (bytes: Uint8Array, start: number, end: number, isCut: boolean) => void;

const newline = 0x0a;
const space = 0x20;
const zero = 0x30;
const nine = 0x39;
const lessThan = 0x3c;
/** Longest count: a message of a gigabyte and more is a mistake, and the connection would never recover from it. */
const maxDigits = 9;

/** `between`: before a message; `line`: until a newline; `count`: digits; `first`: the byte behind the count; `octets`: counted bytes. */
type State = "between" | "line" | "count" | "first" | "octets";

/**
 * Cuts the bytes of one connection into messages. A message that lies within one chunk is not copied. Of a longer one at most
 * `maxBytes` are held; the rest of it is skipped.
 *
 * A message that begins with a digit is counted (`11 <34>1 - ...`) if a space and `<` follow the number; any other ends with a newline.
 */
export class SyslogFrames {
  readonly #framing: Framing;
  readonly #maxBytes: number;
  readonly #take: TakeMessage;
  #state: State = "between";
  #held = new Uint8Array(0);
  #heldBytes = 0;
  #isCut = false;
  #digits = 0;
  /** The number that was read, or what is left of it. */
  #count = 0;

  constructor(framing: Framing, maxBytes: number, take: TakeMessage) {
    this.#framing = framing;
    this.#maxBytes = maxBytes;
    this.#take = take;
  }

  /** Memory that an unfinished message takes. */
  get heldBytes(): number {
    return this.#held.length;
  }

  /** Reads what came next. Throws when counts are demanded and there is none: what follows has no borders then. */
  read(chunk: Uint8Array): void {
    for (let at = 0; at < chunk.length; ) {
      switch (this.#state) {
        case "between":
          at = this.#begin(chunk, at);
          break;
        case "line":
          at = this.#readLine(chunk, at);
          break;
        case "count":
          at = this.#readCount(chunk, at);
          break;
        case "first":
          this.#readFirst(chunk[at]!);
          break;
        case "octets":
          at = this.#readOctets(chunk, at);
          break;
      }
    }
  }

  /** Ends the connection: an unfinished message is one. */
  end(): void {
    if (this.#state === "octets") this.#isCut = true;
    if (this.#heldBytes > 0) this.#finish();
  }

  /** Newlines and NULs between messages mean nothing. */
  #begin(chunk: Uint8Array, from: number): number {
    let at = from;
    while (at < chunk.length && isFiller(chunk[at]!)) at++;
    if (at === chunk.length) return at;
    const byte = chunk[at]!;
    const isCounted = this.#framing !== "newline" && byte > zero && byte <= nine;
    if (isCounted) {
      this.#state = "count";
      this.#digits = 0;
      this.#count = 0;
      return at;
    }
    if (this.#framing === "octet_counting") throw new Error("a message has no count");
    this.#state = "line";
    return at;
  }

  #readLine(chunk: Uint8Array, from: number): number {
    const found = chunk.indexOf(newline, from);
    const end = found < 0 ? chunk.length : found;
    if (found >= 0 && this.#heldBytes === 0 && end - from <= this.#maxBytes) {
      this.#state = "between";
      this.#take(chunk, from, end, false);
      return end + 1;
    }
    this.#hold(chunk, from, end);
    if (found >= 0) this.#finish();
    return end + 1;
  }

  #readCount(chunk: Uint8Array, from: number): number {
    let at = from;
    for (; at < chunk.length; at++) {
      const byte = chunk[at]!;
      if (byte < zero || byte > nine || this.#digits === maxDigits) break;
      this.#count = this.#count * 10 + byte - zero;
      this.#digits++;
    }
    this.#hold(chunk, from, at);
    if (at === chunk.length) return at;
    if (chunk[at] !== space) {
      this.#giveUpCount();
      return at;
    }
    this.#hold(chunk, at, at + 1);
    this.#state = "first";
    return at + 1;
  }

  /** Looks at the byte behind the count, which stays unread. */
  #readFirst(byte: number): void {
    if (byte !== lessThan && this.#framing === "auto") {
      this.#giveUpCount();
      return;
    }
    this.#heldBytes = 0;
    this.#state = "octets";
  }

  /** What looked like a count begins a line. */
  #giveUpCount(): void {
    if (this.#framing === "octet_counting") throw new Error("a message has no count");
    this.#state = "line";
  }

  #readOctets(chunk: Uint8Array, from: number): number {
    const end = Math.min(chunk.length, from + this.#count);
    const isWhole = end - from === this.#count;
    if (isWhole && this.#heldBytes === 0 && end - from <= this.#maxBytes) {
      this.#state = "between";
      this.#take(chunk, from, end, false);
      return end;
    }
    this.#hold(chunk, from, end);
    this.#count -= end - from;
    if (isWhole) this.#finish();
    return end;
  }

  #hold(chunk: Uint8Array, from: number, to: number): void {
    const end = Math.min(to, from + this.#maxBytes - this.#heldBytes);
    if (end < to) this.#isCut = true;
    const needed = this.#heldBytes + end - from;
    if (needed > this.#held.length) {
      const larger = new Uint8Array(Math.min(this.#maxBytes, 2 * needed));
      larger.set(this.#held.subarray(0, this.#heldBytes));
      this.#held = larger;
    }
    this.#held.set(chunk.subarray(from, end), this.#heldBytes);
    this.#heldBytes = needed;
  }

  #finish(): void {
    this.#state = "between";
    const end = this.#heldBytes;
    const isCut = this.#isCut;
    this.#heldBytes = 0;
    this.#isCut = false;
    this.#take(this.#held, 0, end, isCut);
    // A connection that had one long message does not keep its memory.
    this.#held = new Uint8Array(0);
  }
}

function isFiller(byte: number): boolean {
  return byte === newline || byte === 0x0d || byte === 0;
}
