/** Reads the times of messages; the last one that was found is in the fields. */
export class TimestampReader {
  /** Whole seconds since the epoch, and the rest in ns. */
  seconds = 0;
  nanos = 0;
  readonly #clock: WallClock;

  /** `clock` is that of senders who do not name their time zone. */
  constructor(clock: WallClock) {
    this.#clock = clock;
  }

  /** Reads `2003-08-24T05:14:15.000003-07:00` of RFC 5424; returns where it ends, or -1. */
  readIso(bytes: Uint8Array, start: number, end: number): number {
    if (end - start < 20 || bytes[start + 4] !== dash || bytes[start + 7] !== dash) return -1;
    if ((bytes[start + 10]! | 0x20) !== lowerT) return -1;
    const year = digits(bytes, start, 4);
    const month = digits(bytes, start + 5, 2);
    const day = digits(bytes, start + 8, 2);
    const second = readClock(bytes, start + 11);
    if (year < 1970 || second < 0) return -1;
    const dayStart = secondsOfDay(year, month - 1, day);
    if (dayStart === undefined) return -1;
    let at = this.#readFraction(bytes, start + 19, end);
    const zone = at < end ? bytes[at]! | 0x20 : 0;
    let offset = 0;
    if (zone === lowerZ) at++;
    else {
      if (at + 6 > end || bytes[at + 3] !== colon) return -1;
      const size = digits(bytes, at + 1, 2) * 3600 + digits(bytes, at + 4, 2) * 60;
      if (!(size >= 0) || (bytes[at] !== plus && bytes[at] !== dash)) return -1;
      offset = bytes[at] === dash ? -size : size;
      at += 6;
    }
    this.seconds = dayStart + second - offset;
    return at;
  }

  /**
   * Reads `Oct 11 22:14:15` of RFC 3164, which devices also write with a year or with fractions of a second; returns where it
   * ends, or -1. A time without a year is the latest that is not in the future: a message of the last evening of December that
   * arrives in January keeps its year. A clock may be a week ahead, so that January may come in December.
   */
  readBsd(bytes: Uint8Array, start: number, end: number, nowMs: number): number {
    if (end - start < 14 || bytes[start + 3] !== space) return -1;
    const month = monthOf(bytes, start);
    if (month < 0) return -1;
    // The day has two places, the first of which may be blank; some write one place only.
    let at = bytes[start + 4] === space ? start + 5 : start + 4;
    const dayDigits = bytes[at + 1] === space ? 1 : 2;
    const day = digits(bytes, at, dayDigits);
    at += dayDigits;
    if (bytes[at++] !== space || !(day >= 1)) return -1;
    let year = Number.NaN;
    if (bytes[at + 4] === space) {
      year = digits(bytes, at, 4);
      at += 5;
    }
    if (at + 8 > end) return -1;
    const second = readClock(bytes, at);
    if (second < 0) return -1;
    const dayStart = Number.isNaN(year)
      ? latestDay(month, day, second, nowMs / 1000)
      : secondsOfDay(year, month, day);
    if (dayStart === undefined) return -1;
    at = this.#readFraction(bytes, at + 8, end);
    this.seconds = this.#clock.secondsOf(dayStart + second);
    return at;
  }

  /** Reads `.123456` into the nanoseconds; returns where it ends. */
  #readFraction(bytes: Uint8Array, start: number, end: number): number {
    this.nanos = 0;
    let at = start;
    if (at >= end || bytes[at] !== dot) return at;
    let unit = 1e8;
    for (at++; at < end && isDigit(bytes[at]!); at++) {
      if (unit < 1) continue;
      this.nanos += (bytes[at]! - zero) * unit;
      unit /= 10;
    }
    return at;
  }
}

/** By how much clocks of senders may be ahead. */
const maxAheadSeconds = 7 * 86_400;
const zero = 0x30;
const space = 0x20;
const dash = 0x2d;
const plus = 0x2b;
const dot = 0x2e;
const colon = 0x3a;
const lowerT = 0x74;
const lowerZ = 0x7a;

export function isDigit(byte: number): boolean {
  return byte >= zero && byte <= 0x39;
}

/** The number that some digits write; NaN where other bytes stand. */
function digits(bytes: Uint8Array, start: number, count: number): number {
  let value = 0;
  for (let at = start; at < start + count; at++) {
    const byte = bytes[at]!;
    if (!isDigit(byte)) return Number.NaN;
    value = value * 10 + byte - zero;
  }
  return value;
}

/** The second of the day of `22:14:15`; -1 where there is no such. A leap second is the one after it. */
function readClock(bytes: Uint8Array, start: number): number {
  if (bytes[start + 2] !== colon || bytes[start + 5] !== colon) return -1;
  const hour = digits(bytes, start, 2);
  const minute = digits(bytes, start + 3, 2);
  const second = digits(bytes, start + 6, 2);
  if (!(hour < 24 && minute < 60 && second <= 60)) return -1;
  return hour * 3600 + minute * 60 + second;
}

const monthNames = "janfebmaraprmayjunjulaugsepoctnovdec";

/** 0 to 11; -1 for other letters. */
function monthOf(bytes: Uint8Array, start: number): number {
  for (let month = 0; month < 12; month++) {
    const at = 3 * month;
    if (
      (bytes[start]! | 0x20) === monthNames.charCodeAt(at) &&
      (bytes[start + 1]! | 0x20) === monthNames.charCodeAt(at + 1) &&
      (bytes[start + 2]! | 0x20) === monthNames.charCodeAt(at + 2)
    )
      return month;
  }
  return -1;
}

/** The first second of a day; undefined if the month has no such day. */
function secondsOfDay(year: number, month: number, day: number): number | undefined {
  if (!(month >= 0 && month < 12 && day >= 1)) return undefined;
  const ms = Date.UTC(year, month, day);
  return new Date(ms).getUTCDate() === day ? ms / 1000 : undefined;
}

/** The day, in the latest year that puts the time no more than a week ahead of now; undefined if none of the three has that day. */
function latestDay(
  month: number,
  day: number,
  second: number,
  nowSeconds: number,
): number | undefined {
  const year = new Date(nowSeconds * 1000).getUTCFullYear();
  for (const each of [year + 1, year, year - 1]) {
    const found = secondsOfDay(each, month, day);
    if (found !== undefined && found + second <= nowSeconds + maxAheadSeconds) return found;
  }
  return undefined;
}

const quarterSeconds = 900;

/** Turns the times of a time zone into those of UTC. */
export class WallClock {
  readonly #format: Intl.DateTimeFormat | undefined;
  /** The quarter of an hour of the last answer, by the clock of the zone; no zone changes its clock within one. */
  #quarter = Number.NaN;
  #offset = 0;

  /** A name of the IANA, `UTC`, or `Local` for the zone of this machine. Throws a RangeError for any other. */
  constructor(zone: string) {
    if (zone === "UTC") return;
    this.#format = new Intl.DateTimeFormat("en-US", {
      ...(zone === "Local" ? {} : { timeZone: zone }),
      timeZoneName: "longOffset",
    });
  }

  /** Seconds since the epoch of what the clock of the zone shows, given as if it showed UTC. */
  secondsOf(shown: number): number {
    if (this.#format === undefined) return shown;
    const quarter = Math.floor(shown / quarterSeconds);
    if (quarter !== this.#quarter) {
      // The first guess may be on the wrong side of a change of the clock.
      const guess = offsetAt(this.#format, quarter * quarterSeconds);
      this.#offset = offsetAt(this.#format, quarter * quarterSeconds - guess);
      this.#quarter = quarter;
    }
    return shown - this.#offset;
  }
}

/** Seconds by which a zone is ahead of UTC at a time. */
function offsetAt(format: Intl.DateTimeFormat, seconds: number): number {
  const parts = format.formatToParts(seconds * 1000);
  const text = parts.find(({ type }) => type === "timeZoneName")?.value ?? "";
  const found = /^GMT([+-])(\d\d):(\d\d)(?::(\d\d))?$/.exec(text);
  if (found === null) return 0;
  const [, sign, hours, minutes, rest = "0"] = found;
  const size = Number(hours) * 3600 + Number(minutes) * 60 + Number(rest);
  return sign === "-" ? -size : size;
}
