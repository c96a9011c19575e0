import { formatGoFloat } from "../../go/float.js";
import { printValue, typeName, type Value } from "../value.js";

/** What stands between the percent sign and the verb. */
export interface Flags {
  readonly minus: boolean;
  readonly plus: boolean;
  readonly zero: boolean;
  readonly space: boolean;
  readonly sharp: boolean;
  readonly width: number;
  /** -1 when not given */
  readonly precision: number;
}

/** One argument under its verb, as Go prints it. */
export function formatArgument(verb: string, flags: Flags, value: Value): string {
  switch (verb) {
    case "v":
      if (typeof value === "number" && flags.precision >= 0) return formatFloat("g", flags, value);
      return pad(
        signed(flags, value, cutText(flags, value, printValue(value, "<nil>"))),
        flags,
        value,
      );
    case "T":
      return pad(typeName(value), flags, "");
    case "t":
      return typeof value === "boolean" ? pad(String(value), flags, value) : bad(verb, value);
    case "s":
      return typeof value === "string"
        ? pad(cutText(flags, value, value), flags, value)
        : structured(verb, flags, value);
    case "q":
      if (typeof value === "string") return pad(JSON.stringify(value), flags, value);
      return typeof value === "bigint" ? pad(`'${char(value)}'`, flags, "") : bad(verb, value);
    case "d":
    case "b":
    case "o":
    case "c":
    case "U":
      return typeof value === "bigint"
        ? formatInt(verb, flags, value)
        : structured(verb, flags, value);
    case "x":
    case "X":
      return formatHex(verb, flags, value);
    case "e":
    case "E":
    case "f":
    case "F":
    case "g":
    case "G":
      return typeof value === "number"
        ? formatFloat(verb, flags, value)
        : structured(verb, flags, value);
    default:
      return bad(verb, value);
  }
}

/** A list or map under a verb for its items. */
function structured(verb: string, flags: Flags, value: Value): string {
  if (Array.isArray(value)) {
    return `[${value.map((item: Value) => formatArgument(verb, flags, item)).join(" ")}]`;
  }
  if (verb === "s" && value !== null && typeof value === "object") {
    return pad(printValue(value, "%!s(<nil>)"), flags, value);
  }
  return bad(verb, value);
}

function bad(verb: string, value: Value): string {
  return value === null
    ? `%!${verb}(<nil>)`
    : `%!${verb}(${typeName(value)}=${printValue(value, "<nil>")})`;
}

function cutText(flags: Flags, value: Value, text: string): string {
  return typeof value === "string" && flags.precision >= 0
    ? [...text].slice(0, flags.precision).join("")
    : text;
}

function signed(flags: Flags, value: Value, text: string): string {
  if (typeof value !== "number" && typeof value !== "bigint") return text;
  if (text.startsWith("-") || text.startsWith("+")) return text;
  return flags.plus ? `+${text}` : flags.space ? ` ${text}` : text;
}

function char(value: bigint): string {
  return value >= 0n && value <= 0x10ffffn ? String.fromCodePoint(Number(value)) : "\ufffd";
}

function formatInt(verb: string, flags: Flags, value: bigint): string {
  if (verb === "c") return pad(char(value), flags, "");
  if (verb === "U") return pad(`U+${value.toString(16).toUpperCase().padStart(4, "0")}`, flags, "");
  const radix = verb === "d" ? 10 : verb === "b" ? 2 : 8;
  return pad(signed(flags, value, withPrecision(flags, value.toString(radix))), flags, value);
}

function withPrecision(flags: Flags, text: string): string {
  if (flags.precision < 0) return text;
  const sign = text.startsWith("-") ? "-" : "";
  return sign + text.slice(sign.length).padStart(flags.precision, "0");
}

function formatHex(verb: string, flags: Flags, value: Value): string {
  const cased = (text: string) => (verb === "X" ? text.toUpperCase() : text);
  if (typeof value === "bigint") {
    const text = withPrecision(flags, value.toString(16));
    const sharp = flags.sharp ? text.replace(/^-?/, (sign) => `${sign}0x`) : text;
    return pad(signed(flags, value, cased(sharp)), flags, value);
  }
  if (typeof value === "string") {
    const bytes = [...new TextEncoder().encode(value)];
    return pad(cased(bytes.map((byte) => byte.toString(16).padStart(2, "0")).join("")), flags, "");
  }
  return structured(verb, flags, value);
}

function formatFloat(verb: string, flags: Flags, value: number): string {
  return pad(signed(flags, value, floatText(verb, flags.precision, value)), flags, value);
}

function floatText(verb: string, precision: number, value: number): string {
  if (!Number.isFinite(value)) return formatGoFloat(value);
  const lower = verb.toLowerCase();
  const cased = (text: string) => (verb === "E" || verb === "G" ? text.toUpperCase() : text);
  if (lower === "f") return value.toFixed(Math.min(precision < 0 ? 6 : precision, 100));
  if (lower === "e")
    return cased(exponent(value.toExponential(Math.min(precision < 0 ? 6 : precision, 100))));
  if (precision < 0) return cased(formatGoFloat(value));
  const digits = Math.min(Math.max(precision, 1), 100);
  const scientific = value.toExponential(digits - 1);
  const power = Number(scientific.split("e")[1]);
  if (power < -4 || power >= digits) {
    return cased(exponent(scientific.replace(/\.?0+e/, "e")));
  }
  const fixed = value.toFixed(Math.max(digits - 1 - power, 0));
  return fixed.includes(".") ? fixed.replace(/\.?0+$/, "") : fixed;
}

/** Go writes at least two digits of an exponent. */
function exponent(text: string): string {
  return text.replace(/e([+-])(\d)$/, (_, sign: string, digit: string) => `e${sign}0${digit}`);
}

function pad(text: string, flags: Flags, value: Value): string {
  const length = [...text].length;
  if (length >= flags.width) return text;
  const missing = flags.width - length;
  if (flags.minus) return text + " ".repeat(missing);
  const isNumber = typeof value === "number" || typeof value === "bigint";
  if (!flags.zero || (isNumber && typeof value === "bigint" && flags.precision >= 0)) {
    return " ".repeat(missing) + text;
  }
  const sign = isNumber && /^[+-]/.test(text) ? (text[0] as string) : "";
  return sign + "0".repeat(missing) + text.slice(sign.length);
}
