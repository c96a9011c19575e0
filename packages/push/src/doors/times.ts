/** Reads texts of times; after a success the time is in `seconds` and `nanos`. */
export class TimeText {
  seconds = 0;
  nanos = 0;
  /** The last date that was read, and its first second. */
  #dayText: Uint8Array = new Uint8Array(0);
  #day = 0;

  /**
   * Reads RFC 3339 (also with a blank for `T`, and without a zone, which means UTC), or a Unix time of which the size tells the
   * unit: seconds with or without a fraction, milliseconds, microseconds or nanoseconds. Returns whether it is one of them.
   */
  read(bytes: Uint8Array, start: number, length: number): boolean {
    if (length < minChars || length > maxChars) return false;
    if (bytes[start + 4] === dash && this.#readUtc(bytes, start, length)) return true;
    const text = Buffer.from(bytes.buffer, bytes.byteOffset + start, length).toString("latin1");
    return text.charCodeAt(4) === dash ? this.#readDate(text) : this.#readUnix(text);
  }

  /** Reads `2026-11-28T10:00:00.123Z`, the form that agents send, of a day from 1970 on. */
  #readUtc(bytes: Uint8Array, start: number, length: number): boolean {
    if (length < 20 || bytes[start + 10] !== 0x54 || bytes[start + length - 1] !== 0x5a)
      return false;
    const hour = twoDigits(bytes, start + 11);
    const minute = twoDigits(bytes, start + 14);
    const second = twoDigits(bytes, start + 17);
    if (bytes[start + 13] !== colon || bytes[start + 16] !== colon) return false;
    if (!(hour < 24 && minute < 60 && second < 60)) return false;
    const day = this.#dayOf(bytes, start);
    if (day < 0) return false;
    let nanos = 0;
    if (length > 20) {
      if (bytes[start + 19] !== dot || length === 21 || length > 30) return false;
      let unit = 1e9;
      for (let at = start + 20; at < start + length - 1; at++) {
        const digit = bytes[at]! - zero;
        if (!(digit >= 0 && digit <= 9)) return false;
        unit /= 10;
        nanos += digit * unit;
      }
    }
    this.seconds = day + hour * 3600 + minute * 60 + second;
    this.nanos = nanos;
    return true;
  }

  /** The first second of the day of a date, which mostly is that of the time before; -1 for what is no date. */
  #dayOf(bytes: Uint8Array, start: number): number {
    if (this.#isDay(bytes, start)) return this.#day;
    const text = Buffer.from(bytes.subarray(start, start + 10)).toString("latin1");
    const seconds = Date.parse(`${text}T00:00:00Z`) / 1000;
    const isDate = seconds >= 0 && new Date(seconds * 1000).toISOString().startsWith(text);
    if (!isDate) return -1;
    this.#dayText = bytes.slice(start, start + 10);
    this.#day = seconds;
    return seconds;
  }

  #isDay(bytes: Uint8Array, start: number): boolean {
    for (let i = 0; i < 10; i++) if (bytes[start + i] !== this.#dayText[i]) return false;
    return true;
  }

  #readDate(text: string): boolean {
    const m = rfc3339.exec(text);
    if (m === null) return false;
    const [, year, month, day, hour, minute, second, fraction = "", sign, zoneHour, zoneMinute] = m;
    const [y, mo, d] = [Number(year), Number(month), Number(day)];
    const [h, mi, s] = [Number(hour), Number(minute), Number(second)];
    const ms = Date.UTC(y, mo - 1, d, h, mi, Math.min(s, 59));
    const isDate = new Date(ms).getUTCDate() === d && mo >= 1 && mo <= 12;
    if (!isDate || h > 23 || mi > 59 || s > 60 || Number(zoneHour ?? 0) > 23) return false;
    const zone = (Number(zoneHour ?? 0) * 60 + Number(zoneMinute ?? 0)) * 60;
    this.seconds = ms / 1000 - (sign === "-" ? -zone : zone);
    this.nanos = nanosOf(fraction);
    return true;
  }

  #readUnix(text: string): boolean {
    const m = unix.exec(text);
    if (m === null) return false;
    const [, whole = "", fraction = "", exponent] = m;
    if (exponent !== undefined) return this.#readExponent(Number(text));
    // The number of digits tells the unit: 11 digits of seconds are the year 5138.
    const digits = whole.length;
    const power = digits <= 11 ? 0 : digits <= 14 ? 3 : digits <= 17 ? 6 : 9;
    if (digits > 20) return false;
    this.seconds = Number(whole.slice(0, digits - power) || 0);
    this.nanos = nanosOf(whole.slice(digits - power) + fraction);
    return true;
  }

  /** `1.7e9` is a number of JSON too; as a double it has micros at best. */
  #readExponent(value: number): boolean {
    if (!(value >= 0 && value < 1e20)) return false;
    return this.#readUnix(value < 1e11 ? value.toFixed(6) : value.toFixed(0));
  }
}

const dash = 0x2d;
const colon = 0x3a;
const dot = 0x2e;
const zero = 0x30;

/** NaN where there are no two digits. */
function twoDigits(bytes: Uint8Array, at: number): number {
  const tens = bytes[at]! - zero;
  const ones = bytes[at + 1]! - zero;
  return tens >= 0 && tens <= 9 && ones >= 0 && ones <= 9 ? tens * 10 + ones : Number.NaN;
}

const minChars = 1;
const maxChars = 64;
const rfc3339 =
  /^(\d{4})-(\d\d)-(\d\d)[Tt ](\d\d):(\d\d):(\d\d)(?:[.,](\d{1,18}))?(?:[Zz]|([+-])(\d\d):?(\d\d)?)?$/;
const unix = /^(\d+)(?:\.(\d*))?([eE][+-]?\d{1,3})?$/;

/** The first nine digits of a fraction. */
function nanosOf(fraction: string): number {
  return fraction === "" ? 0 : Number(fraction.slice(0, 9).padEnd(9, "0"));
}
