import { quote } from "@skald/model";

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
  return { error: `strconv.ParseFloat: parsing ${goQuote(text)}: ${reason}` };
}

/** Go's %q for texts in error messages. */
export function goQuote(text: string): string {
  return quote(text);
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
