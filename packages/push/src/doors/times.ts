/** Reads texts of times; after a success the time is in `seconds` and `nanos`. */
export class TimeText {
  seconds = 0;
  nanos = 0;

  /**
   * Reads RFC 3339 (also with a blank for `T`, and without a zone, which means UTC), or a Unix time of which the size tells the
   * unit: seconds with or without a fraction, milliseconds, microseconds or nanoseconds. Returns whether it is one of them.
   */
  read(bytes: Uint8Array, start: number, length: number): boolean {
    if (length < minChars || length > maxChars) return false;
    const text = Buffer.from(bytes.buffer, bytes.byteOffset + start, length).toString("latin1");
    return text.charCodeAt(4) === 0x2d ? this.#readDate(text) : this.#readUnix(text);
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

const minChars = 1;
const maxChars = 64;
const rfc3339 =
  /^(\d{4})-(\d\d)-(\d\d)[Tt ](\d\d):(\d\d):(\d\d)(?:[.,](\d{1,18}))?(?:[Zz]|([+-])(\d\d):?(\d\d)?)?$/;
const unix = /^(\d+)(?:\.(\d*))?([eE][+-]?\d{1,3})?$/;

/** The first nine digits of a fraction. */
function nanosOf(fraction: string): number {
  return fraction === "" ? 0 : Number(fraction.slice(0, 9).padEnd(9, "0"));
}
