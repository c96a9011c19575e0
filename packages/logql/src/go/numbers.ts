import { goDurationUnits, parseGoDuration, quote } from "@skald/model";

/** A value, or the text of the error that Go's strconv gives. */
export type Parsed<T> = { readonly value: T } | { readonly error: string };

const decimal = /^[+-]?(?:\d(?:_?\d)*\.?(?:\d(?:_?\d)*)?|\.\d(?:_?\d)*)(?:[eE][+-]?\d(?:_?\d)*)?$/;
const special = /^(?:[+-]?(?:inf|infinity)|nan)$/i;
const hexadecimal =
  /^([+-]?)0[xX]_?([0-9a-fA-F](?:_?[0-9a-fA-F])*)?(?:\.([0-9a-fA-F](?:_?[0-9a-fA-F])*)?)?[pP]([+-]?\d+)$/;

/** Go's strconv.ParseFloat: decimal and hexadecimal floats, underscores between digits, Inf, NaN. */
export function parseGoFloat(text: string): Parsed<number> {
  if (decimal.test(text)) {
    const value = Number(text.includes("_") ? text.replaceAll("_", "") : text);
    return Number.isFinite(value) ? { value } : failure(text, "value out of range");
  }
  if (special.test(text)) {
    if (/nan/i.test(text)) return { value: Number.NaN };
    return { value: text[0] === "-" ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY };
  }
  const hex = hexadecimal.exec(text);
  if (hex === null || (hex[2] === undefined && hex[3] === undefined)) {
    return failure(text, "invalid syntax");
  }
  const whole = (hex[2] ?? "").replaceAll("_", "");
  const fraction = (hex[3] ?? "").replaceAll("_", "");
  const mantissa = Number(BigInt(`0x${whole}${fraction || (whole === "" ? "0" : "")}`));
  const value = mantissa * 2 ** (Number(hex[4]) - 4 * fraction.length);
  if (!Number.isFinite(value)) return failure(text, "value out of range");
  return { value: hex[1] === "-" ? -value : value };
}

function failure(text: string, reason: string): { error: string } {
  return { error: `strconv.ParseFloat: parsing ${quote(text)}: ${reason}` };
}

/** Go's `%v` of a float64: shortest digits, with an exponent below 1e-4 and from 1e+06 on. */
export function formatGoFloat(value: number): string {
  if (Number.isNaN(value)) return "NaN";
  if (!Number.isFinite(value)) return value > 0 ? "+Inf" : "-Inf";
  if (value === 0) return Object.is(value, -0) ? "-0" : "0";
  const magnitude = Math.abs(value);
  // JavaScript writes no exponent between 1e-6 and 1e21
  if (magnitude >= 1e-4 && magnitude < 1e6) return String(value);
  const [mantissa, exponent] = value.toExponential().split("e") as [string, string];
  const sign = exponent.startsWith("-") ? "-" : "+";
  return `${mantissa}e${sign}${exponent.slice(1).padStart(2, "0")}`;
}

/** The text of a sample value: the shortest decimal that reads back as the same number, without an exponent. */
export function formatSample(value: number): string {
  if (Number.isNaN(value)) return "NaN";
  if (value === Number.POSITIVE_INFINITY) return "+Inf";
  if (value === Number.NEGATIVE_INFINITY) return "-Inf";
  if (Object.is(value, -0)) return "-0";
  const text = String(value);
  return text.includes("e") ? withoutExponent(text) : text;
}

function withoutExponent(text: string): string {
  const [, sign = "", whole = "", fraction = "", exponentText = ""] =
    /^(-?)(\d+)(?:\.(\d+))?e([+-]\d+)$/.exec(text) ?? [];
  const digits = whole + fraction;
  const point = whole.length + Number(exponentText);
  if (point <= 0) return `${sign}0.${"0".repeat(-point)}${digits}`;
  if (point >= digits.length) return sign + digits.padEnd(point, "0");
  return `${sign}${digits.slice(0, point)}.${digits.slice(point)}`;
}

const maxNs = 2 ** 63;

/**
 * Go's time.ParseDuration: `1h30m`, `-1.5s`, `0`; no days or weeks. Value in ns, exact below 2^53 (104 days); the
 * error is Go's text.
 */
export function parseDurationText(text: string): Parsed<number> {
  const sign = text[0] === "-" ? -1 : 1;
  let rest = text[0] === "-" || text[0] === "+" ? text.slice(1) : text;
  if (rest === "0") return { value: 0 };
  if (rest === "") return invalid(text);
  let total = 0;
  while (rest !== "") {
    const m = /^(\d*)(?:\.(\d*))?/.exec(rest) as RegExpExecArray;
    const whole = m[1] as string;
    const fraction = m[2] ?? "";
    if (whole === "" && fraction === "") return invalid(text);
    rest = rest.slice(m[0].length);
    const unit = /^[^.\d]*/.exec(rest)?.[0] ?? "";
    if (unit === "") return { error: `time: missing unit in duration ${quoteBytes(text)}` };
    const scale = goDurationUnits.get(unit);
    if (scale === undefined) {
      return { error: `time: unknown unit ${quoteBytes(unit)} in duration ${quoteBytes(text)}` };
    }
    rest = rest.slice(unit.length);
    total += Number(whole === "" ? 0 : whole) * scale;
    if (fraction !== "") total += Math.trunc(Number(`0.${fraction}`) * scale);
    if (total > maxNs) return invalid(text);
  }
  // Beyond 2^53 the sum is rounded: whether it fits into 64 bits is a question of single nanoseconds.
  if (total === maxNs && parseGoDuration(text) === undefined) return invalid(text);
  return { value: sign * total };
}

function invalid(text: string): { error: string } {
  return { error: `time: invalid duration ${quoteBytes(text)}` };
}

/** Go's quotation of a duration in an error: everything beyond ASCII byte by byte. */
function quoteBytes(text: string): string {
  const bytes = new TextEncoder().encode(text);
  const shown = Array.from(bytes, (byte) => {
    if (byte < 0x20 || byte >= 0x80) return `\\x${byte.toString(16).padStart(2, "0")}`;
    const char = String.fromCharCode(byte);
    return char === '"' || char === "\\" ? `\\${char}` : char;
  });
  return `"${shown.join("")}"`;
}

/** A duration in ns as seconds, rounded as Go's Duration.Seconds: whole seconds and the rest are added. */
export function secondsOf(ns: number): number {
  const whole = Math.trunc(ns / 1e9);
  return whole + (ns - whole * 1e9) / 1e9;
}

const scale = (letter: string): number => 1 + "kmgtpe".indexOf(letter);

/**
 * A humanised size: `10KB` = 10,000, `1.5KiB` = 1536, `512`, `1,000 MB`; units of 1000, with an i of 1024, any case.
 * Value in whole bytes.
 */
export function parseByteSize(text: string): Parsed<number> {
  const digits = /^[\p{Nd}.,]*/u.exec(text)?.[0] ?? "";
  const number = parseGoFloat(digits.replaceAll(",", ""));
  if ("error" in number) return number;
  const unit = text.slice(digits.length).trim().toLowerCase();
  const m = /^(?:b|([kmgtpe])(i?)b?)?$/.exec(unit);
  if (m === null) return { error: `unhandled size name: ${unit}` };
  const factor = m[1] === undefined ? 1 : (m[2] === "i" ? 1024 : 1000) ** scale(m[1]);
  const value = number.value * factor;
  if (value >= 2 ** 64) return { error: `too large: ${text}` };
  return { value: Math.trunc(value) };
}

/** Digits that a double holds exactly. */
const digitsMax = 15;
const powers = Array.from({ length: 23 }, (_, i) => 10 ** i);

/**
 * The value of `[-+]digits[.digits]`; NaN for any other form, which a full parser must read. Exact: digits and power
 * of ten are both exact doubles, so the division rounds once.
 */
export function quickNumber(bytes: Uint8Array, start: number, end: number): number {
  let at = start;
  const sign = bytes[at];
  if (sign === 45 || sign === 43) at++;
  const first = at;
  let value = 0;
  let point = -1;
  for (; at < end; at++) {
    const c = bytes[at]!;
    if (c >= 48 && c <= 57) value = value * 10 + (c - 48);
    else if (c === 46 && point < 0) point = at;
    else return Number.NaN;
  }
  const count = at - first - (point < 0 ? 0 : 1);
  if (count === 0 || count > digitsMax) return Number.NaN;
  if (point >= 0) value /= powers[end - point - 1]!;
  return sign === 45 ? -value : value;
}

/** The value of digits alone, as a size in bytes is written; NaN for any other form. */
export function quickSize(bytes: Uint8Array, start: number, end: number): number {
  for (let i = start; i < end; i++) {
    if (bytes[i]! < 48 || bytes[i]! > 57) return Number.NaN;
  }
  return quickNumber(bytes, start, end);
}

/** ns of `digits[.digits]unit` with one unit; NaN for any other form. */
export function quickDuration(bytes: Uint8Array, start: number, end: number): number {
  let at = end;
  while (at > start && !isDigitOrPoint(bytes[at - 1]!)) at--;
  const unit = unitOf(bytes, at, end);
  const value = at > start && bytes[start]! >= 48 ? quickNumber(bytes, start, at) : Number.NaN;
  const total = value * unit;
  // a fraction of a nanosecond is cut by rules of its own
  return Number.isInteger(total) && total < 9e15 ? total : Number.NaN;
}

function isDigitOrPoint(c: number): boolean {
  return (c >= 48 && c <= 57) || c === 46;
}

function unitOf(bytes: Uint8Array, at: number, end: number): number {
  const first = bytes[at];
  if (end - at === 1) {
    if (first === 115) return 1e9;
    if (first === 109) return 60e9;
    return first === 104 ? 3600e9 : Number.NaN;
  }
  if (end - at !== 2 || bytes[at + 1] !== 115) return Number.NaN;
  if (first === 109) return 1e6;
  if (first === 117) return 1e3;
  return first === 110 ? 1 : Number.NaN;
}

/** Formats a float with a number of decimals, as Go's `%.2f`: exact halves go to the even neighbour. */
export function formatFixed(value: number, decimals: number): string {
  if (!Number.isInteger(Math.abs(value) * 2 ** (decimals + 1)) && decimals <= 100) {
    return value.toFixed(decimals);
  }
  const digits = roundScaled(Math.abs(value), decimals)
    .toString()
    .padStart(decimals + 1, "0");
  const point = digits.length - decimals;
  return `${signOf(value)}${digits.slice(0, point)}${decimals === 0 ? "" : `.${digits.slice(point)}`}`;
}

/** Formats a float with one digit, a number of decimals and an exponent of at least two digits, as Go's `%.2e`. */
export function formatExponent(value: number, decimals: number): string {
  const { digits, exponent } = significant(value, decimals + 1);
  const fraction = decimals === 0 ? "" : `.${digits.slice(1)}`;
  const power = String(Math.abs(exponent)).padStart(2, "0");
  return `${signOf(value)}${digits[0]}${fraction}e${exponent < 0 ? "-" : "+"}${power}`;
}

/** Formats a float with a number of significant digits and no zeros behind them, as Go's `%.3g`, in the shorter form. */
export function formatGeneral(value: number, precision: number): string {
  const count = Math.max(precision, 1);
  const { digits, exponent } = significant(value, count);
  const kept = digits.replace(/0+$/, "").length;
  // As many decimals as there are digits that count; a whole number has its zeros.
  if (exponent < -4 || exponent >= Math.max(count, 1)) {
    return formatExponent(value, Math.max(kept - 1, 0));
  }
  return formatFixed(value, Math.max(kept - 1 - exponent, 0));
}

/** The first digits of a value, rounded, and the power of ten of the first one. */
function significant(value: number, count: number): { digits: string; exponent: number } {
  if (value === 0) return { digits: "0".repeat(count), exponent: 0 };
  const magnitude = Math.abs(value);
  // The shortest digits may be those of the next power of ten.
  for (let exponent = Number(magnitude.toExponential().split("e")[1]) - 1; ; exponent++) {
    const digits = roundScaled(magnitude, count - 1 - exponent).toString();
    if (digits.length <= count) return { digits: digits.padEnd(count, "0"), exponent };
  }
}

/** value * 10^decimals as the nearest whole number, halves to even. */
function roundScaled(value: number, decimals: number): bigint {
  const bits = new DataView(new ArrayBuffer(8));
  bits.setFloat64(0, value);
  const word = bits.getBigUint64(0);
  const biased = Number((word >> 52n) & 0x7ffn);
  const mantissa = (word & 0xf_ffff_ffff_ffffn) | (biased === 0 ? 0n : 1n << 52n);
  const power = BigInt((biased === 0 ? 1 : biased) - 1075);
  const ten = 10n ** BigInt(Math.abs(decimals));
  const above = mantissa * (power > 0n ? 1n << power : 1n) * (decimals > 0 ? ten : 1n);
  const below = (power < 0n ? 1n << -power : 1n) * (decimals < 0 ? ten : 1n);
  const whole = above / below;
  const twice = (above % below) * 2n;
  return twice > below || (twice === below && whole % 2n === 1n) ? whole + 1n : whole;
}

function signOf(value: number): string {
  return value < 0 || Object.is(value, -0) ? "-" : "";
}
