import { isDigit, TimestampReader, type WallClock } from "./timestamp.js";

/** A part of the message that was read: `end` 0 stands for none. */
export class Part {
  start = 0;
  end = 0;

  get isGiven(): boolean {
    return this.end > this.start;
  }

  clear(): void {
    this.start = 0;
    this.end = 0;
  }

  set(start: number, end: number): void {
    this.start = start;
    this.end = end;
  }
}

const space = 0x20;
const dash = 0x2d;
const lessThan = 0x3c;
const moreThan = 0x3e;
const colon = 0x3a;
const open = 0x5b;
const close = 0x5d;
const equals = 0x3d;
const quote = 0x22;
const backslash = 0x5c;
const maxPriority = 191;
/** Longer first words are text, not the name of a program. RFC 5424 allows 48. */
const maxTagBytes = 128;
/** Parameters of structured data; a message with more is kept with its data as text. */
const maxParams = 1024;
/** Longest id or name in structured data; RFC 5424 allows 32. Rows repeat the id, so it must not be long. */
const maxNameBytes = 128;
/** Numbers of a parameter: start and end of the id of its element, of its name, and of its value. */
const numbersPerParam = 6;

/**
 * Reads one message after the other; what was found is in the fields until the next one. It reads RFC 5424, RFC 3164 as far as
 * senders agree about it, and RFC 3164 with the times of RFC 5424. What it cannot read stays part of `text`, so that nothing is lost.
 */
export class SyslogMessage {
  /** 0 to 23 and 0 to 7; -1 where the message does not begin with `<n>`. */
  facility = -1;
  severity = -1;
  hasTime = false;
  /** Whether something that looked like a header could not be read. */
  isMalformed = false;
  readonly host = new Part();
  readonly app = new Part();
  readonly process = new Part();
  readonly id = new Part();
  readonly text = new Part();
  /** Parameters of the structured data; see `forEachParam`. */
  paramCount = 0;
  readonly #params = new Uint32Array(maxParams * numbersPerParam);
  readonly #times: TimestampReader;

  /** `clock` is that of senders who do not name their time zone. */
  constructor(clock: WallClock) {
    this.#times = new TimestampReader(clock);
  }

  /** Of a message that has a time: whole seconds since the epoch, and the rest in ns. */
  get seconds(): number {
    return this.#times.seconds;
  }

  get nanos(): number {
    return this.#times.nanos;
  }

  read(bytes: Uint8Array, start: number, givenEnd: number, nowMs: number): void {
    for (const part of [this.host, this.app, this.process, this.id]) part.clear();
    this.hasTime = false;
    this.isMalformed = false;
    this.paramCount = 0;
    const end = trimmedEnd(bytes, start, givenEnd);
    const at = this.#readPriority(bytes, start, end);
    this.text.set(at, end);
    if (at === start) {
      this.isMalformed = true;
      return;
    }
    if (at + 2 <= end && bytes[at] === 0x31 && bytes[at + 1] === space)
      this.#readNew(bytes, at + 2, end);
    else this.#readOld(bytes, at, end, nowMs);
  }

  /** Calls `take` for each parameter with the ranges of its element's id, its name, and its value, which may have escapes. */
  forEachParam(
    take: (
      idStart: number,
      idEnd: number,
      nameStart: number,
      nameEnd: number,
      valueStart: number,
      valueEnd: number,
    ) => void,
  ): void {
    const p = this.#params;
    for (let i = 0; i < this.paramCount * numbersPerParam; i += numbersPerParam) {
      take(p[i]!, p[i + 1]!, p[i + 2]!, p[i + 3]!, p[i + 4]!, p[i + 5]!);
    }
  }

  /** Returns where the message goes on behind `<34>`; `start` if it does not begin so. */
  #readPriority(bytes: Uint8Array, start: number, end: number): number {
    this.facility = -1;
    this.severity = -1;
    if (bytes[start] !== lessThan) return start;
    let value = 0;
    let at = start + 1;
    for (; at < end && at < start + 4 && isDigit(bytes[at]!); at++) {
      value = value * 10 + bytes[at]! - 0x30;
    }
    if (at === start + 1 || at >= end || bytes[at] !== moreThan || value > maxPriority) {
      return start;
    }
    this.facility = value >> 3;
    this.severity = value & 7;
    return at + 1;
  }

  /** RFC 5424, from its time on: `TIME HOST APP PROCID MSGID DATA [TEXT]`, each of which may be `-`. */
  #readNew(bytes: Uint8Array, start: number, end: number): void {
    let at = start;
    if (at + 2 <= end && bytes[at] === dash && bytes[at + 1] === space) at += 2;
    else {
      const after = this.#times.readIso(bytes, at, end);
      if (after < 0 || bytes[after] !== space || after >= end) {
        this.#giveUp(at);
        return;
      }
      this.hasTime = true;
      at = after + 1;
    }
    for (const part of [this.host, this.app, this.process, this.id]) {
      const found = indexOf(bytes, space, at, end);
      if (found === end) {
        this.#giveUp(at);
        return;
      }
      if (found - at !== 1 || bytes[at] !== dash) part.set(at, found);
      at = found + 1;
    }
    const after = this.#readData(bytes, at, end);
    if (after < 0) this.#giveUp(at);
    else if (after === end) this.text.set(end, end);
    else this.text.set(afterMark(bytes, after + 1, end), end);
  }

  /** Keeps what follows as text. */
  #giveUp(at: number): void {
    this.isMalformed = true;
    this.paramCount = 0;
    this.text.start = at;
  }

  /** Returns where the structured data end, -1 if they cannot be read; a space or the end of the message follows. */
  #readData(bytes: Uint8Array, start: number, end: number): number {
    let at = start;
    if (at >= end) return -1;
    if (bytes[at] === dash) at++;
    else {
      if (bytes[at] !== open) return -1;
      while (at < end && bytes[at] === open) {
        at = this.#readElement(bytes, at + 1, end);
        if (at < 0) return -1;
      }
    }
    return at === end || bytes[at] === space ? at : -1;
  }

  /** Reads `id name="value" ...]`; returns where it ends, or -1. */
  #readElement(bytes: Uint8Array, idStart: number, end: number): number {
    const idEnd = nameEnd(bytes, idStart, end);
    if (idEnd === idStart || idEnd - idStart > maxNameBytes) return -1;
    let at = idEnd;
    while (at < end && bytes[at] === space) {
      const start = at + 1;
      const stop = nameEnd(bytes, start, end);
      if (stop === start || stop - start > maxNameBytes) return -1;
      if (bytes[stop] !== equals || bytes[stop + 1] !== quote) return -1;
      const valueStart = stop + 2;
      const valueEnd = closingQuote(bytes, valueStart, end);
      if (valueEnd < 0 || this.paramCount === maxParams) return -1;
      const params = this.#params;
      let i = this.paramCount++ * numbersPerParam;
      params[i++] = idStart;
      params[i++] = idEnd;
      params[i++] = start;
      params[i++] = stop;
      params[i++] = valueStart;
      params[i++] = valueEnd;
      at = valueEnd + 1;
    }
    return at < end && bytes[at] === close ? at + 1 : -1;
  }

  /** RFC 3164, from its time on: `TIME HOST APP[PID]: TEXT`. Host and program may be missing. */
  #readOld(bytes: Uint8Array, start: number, end: number, nowMs: number): void {
    let at = this.#times.readBsd(bytes, start, end, nowMs);
    if (at < 0) at = this.#times.readIso(bytes, start, end);
    if (at < 0 || (at < end && bytes[at] !== space && bytes[at] !== colon)) {
      this.isMalformed = true;
      return;
    }
    this.hasTime = true;
    if (bytes[at] === colon && at < end) at++;
    if (bytes[at] === space && at < end) at++;
    this.text.start = at;
    if (this.#readTag(bytes, at, end)) return;
    const hostEnd = indexOf(bytes, space, at, end);
    this.host.set(at, hostEnd);
    this.text.start = Math.min(end, hostEnd + 1);
    this.#readTag(bytes, this.text.start, end);
  }

  /** Reads `app[pid]: ` or `app: `; false where the next word is none of these. */
  #readTag(bytes: Uint8Array, start: number, end: number): boolean {
    const limit = Math.min(end, start + maxTagBytes);
    let at = start;
    while (at < limit && !endsTag(bytes[at]!)) at++;
    if (at === start || at === limit || bytes[at] === space) return false;
    const tagEnd = at;
    if (bytes[at] === open) {
      const found = indexOf(bytes, close, at, limit);
      if (found === limit) return false;
      this.process.set(at + 1, found);
      at = found + 1;
    } else if (at + 1 < end && bytes[at + 1] !== space) return false;
    if (at < end && bytes[at] === colon) at++;
    if (at < end && bytes[at] === space) at++;
    this.app.set(start, tagEnd);
    this.text.start = at;
    return true;
  }
}

/** The end without the newlines and NULs that some senders put behind a message. */
function trimmedEnd(bytes: Uint8Array, start: number, end: number): number {
  let at = end;
  while (at > start) {
    const byte = bytes[at - 1]!;
    if (byte !== 0x0a && byte !== 0x0d && byte !== 0) break;
    at--;
  }
  return at;
}

/** The text may begin with a byte order mark, which says that it is UTF-8. */
function afterMark(bytes: Uint8Array, start: number, end: number): number {
  const isMark =
    end - start >= 3 &&
    bytes[start] === 0xef &&
    bytes[start + 1] === 0xbb &&
    bytes[start + 2] === 0xbf;
  return isMark ? start + 3 : start;
}

/** Where a byte is; `end` if it is not there. It looks no further, which the method of the bytes would do. */
function indexOf(bytes: Uint8Array, byte: number, start: number, end: number): number {
  let at = start;
  while (at < end && bytes[at] !== byte) at++;
  return at;
}

/** Where a name of structured data ends. */
function nameEnd(bytes: Uint8Array, start: number, end: number): number {
  let at = start;
  while (at < end) {
    const byte = bytes[at]!;
    if (byte <= space || byte === equals || byte === close || byte === quote) break;
    at++;
  }
  return at;
}

function closingQuote(bytes: Uint8Array, start: number, end: number): number {
  for (let at = start; at < end; at++) {
    if (bytes[at] === quote) return at;
    if (bytes[at] === backslash) at++;
  }
  return -1;
}

function endsTag(byte: number): boolean {
  return byte <= space || byte === colon || byte === open;
}
