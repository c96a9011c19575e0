import { quote } from "@skald/model";
import { formatExponent, formatFixed, formatGeneral, formatGoFloat } from "../go/numbers.js";
import { printAll } from "./encodings.js";
import {
  checkLength,
  isList,
  isMap,
  isTime,
  printValue,
  type TemplateFunction,
  TemplateRunError,
  typeName,
  type Value,
} from "./value.js";

export const printFunctions: Readonly<Record<string, TemplateFunction>> = {
  print: { takes: "v*", call: printAll },
  println: {
    takes: "v*",
    call: (args) => `${args.map((arg) => printValue(arg, "<nil>")).join(" ")}\n`,
  },
  printf: { takes: "sv*", call: ([format, ...args]) => new Printer(format as string, args).run() },
};

/** Go's fmt.Sprintf for the values of templates. */
class Printer {
  readonly #format: string;
  readonly #args: readonly Value[];
  #at = 0;
  #out = "";
  /** The argument that comes next. */
  #next = 0;
  /** Some argument was named by its number: those that are left over may be meant to be. */
  #reordered = false;
  /** The current verb has an argument number that does not exist or is misplaced. */
  #badIndex = false;

  constructor(format: string, args: readonly Value[]) {
    this.#format = format;
    this.#args = args;
  }

  run(): string {
    while (this.#at < this.#format.length) {
      const percent = this.#format.indexOf("%", this.#at);
      const end = percent < 0 ? this.#format.length : percent;
      this.#write(this.#format.slice(this.#at, end));
      this.#at = end + 1;
      if (percent >= 0) this.#directive();
    }
    if (!this.#reordered && this.#next < this.#args.length) this.#extra();
    return this.#out;
  }

  #directive(): void {
    this.#badIndex = false;
    const marks = this.#match(marksPattern);
    let numbered = this.#argumentNumber();
    const width = this.#size("WIDTH", numbered);
    if (width.starred) numbered = false;
    const precision = this.#precision(numbered);
    numbered = precision.numbered ?? numbered;
    if (!numbered) this.#argumentNumber();
    const code = this.#format.codePointAt(this.#at);
    if (code === undefined) {
      this.#write("%!(NOVERB)");
      return;
    }
    const verb = String.fromCodePoint(code);
    this.#at += verb.length;
    const minus = marks.includes("-") || width.value < 0;
    this.#print(verb, {
      minus,
      plus: marks.includes("+"),
      zero: marks.includes("0") && width.value >= 0,
      space: marks.includes(" "),
      sharp: marks.includes("#"),
      width: Math.abs(width.value),
      precision: precision.value,
    });
  }

  #print(verb: string, flags: Flags): void {
    if (verb === "%") this.#write("%");
    else if (this.#badIndex) this.#write(`%!${verb}(BADINDEX)`);
    else if (this.#next >= this.#args.length) this.#write(`%!${verb}(MISSING)`);
    else if (flags.precision > precisionMax) {
      throw new TemplateRunError("precision of printf too large");
    } else this.#write(formatArgument(verb, flags, this.#args[this.#next++] as Value));
  }

  /** Reads `[n]`: the argument to take next. */
  #argumentNumber(): boolean {
    if (this.#format[this.#at] !== "[") return false;
    this.#reordered = true;
    const close = this.#format.indexOf("]", this.#at);
    const digits = close < 0 ? "" : this.#format.slice(this.#at + 1, close);
    this.#at = close < 0 ? this.#at + 1 : close + 1;
    const isNumber = /^\d+$/.test(digits) && Number(digits) <= sizeMax;
    const index = Number(digits) - 1;
    if (isNumber && index >= 0 && index < this.#args.length) this.#next = index;
    else this.#badIndex = true;
    return isNumber;
  }

  /** Reads a width or precision: digits, or `*` for the next argument. */
  #size(
    what: "WIDTH" | "PREC",
    numbered: boolean,
  ): { readonly value: number; readonly starred: boolean; readonly given: boolean } {
    if (this.#format[this.#at] === "*") {
      this.#at++;
      const arg = this.#args[this.#next];
      if (this.#next < this.#args.length) this.#next++;
      const fits = typeof arg === "bigint" && arg >= -sizeMax && arg <= sizeMax;
      if (!fits || (what === "PREC" && arg < 0n)) this.#write(`%!(BAD${what})`);
      return { value: fits ? Number(arg) : 0, starred: true, given: fits };
    }
    const digits = this.#match(digitsPattern);
    if (digits !== "" && numbered) this.#badIndex = true;
    if (Number(digits) > sizeMax) this.#at = this.#format.length;
    return { value: Number(digits), starred: false, given: digits !== "" };
  }

  /** Reads `.5` or `.[2]*`; -1 when there is none. `numbered`: an argument's number has been read since. */
  #precision(numbered: boolean): { readonly value: number; readonly numbered?: boolean } {
    if (this.#format[this.#at] !== ".") return { value: -1 };
    this.#at++;
    if (numbered) this.#badIndex = true;
    const named = this.#argumentNumber();
    const { value, starred, given } = this.#size("PREC", false);
    if (!starred) return { value, numbered: named };
    return { value: given && value >= 0 ? value : -1, numbered: false };
  }

  #extra(): void {
    const extra = this.#args
      .slice(this.#next)
      .map((arg) => (arg === null ? "<nil>" : `${typeName(arg)}=${printValue(arg, "<nil>")}`));
    this.#write(`%!(EXTRA ${extra.join(", ")})`);
  }

  #match(pattern: RegExp): string {
    pattern.lastIndex = this.#at;
    const found = pattern.exec(this.#format)?.[0] ?? "";
    this.#at += found.length;
    return found;
  }

  #write(text: string): void {
    this.#out += text;
    checkLength(this.#out.length);
  }
}

const marksPattern = /[-+# 0]*/y;
const digitsPattern = /\d*/y;
/** Go's bound of a width, a precision and the number of an argument. */
const sizeMax = 1_000_000;
/** More digits than any number of a template has. */
const precisionMax = 1000;

/** What stands between the percent sign and the verb. */
interface Flags {
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
function formatArgument(verb: string, flags: Flags, value: Value): string {
  if (verb === "T") return formatText(flags, value === null ? "<nil>" : typeName(value));
  if (value === null) return verb === "v" ? pad("<nil>", flags) : `%!${verb}(<nil>)`;
  if (verb !== "v") return formatValue(verb, flags, value);
  // With the verb v these two flags ask for names of fields and for Go syntax.
  const plain = { ...flags, plus: false, sharp: false };
  return flags.sharp ? formatSyntax(plain, value) : formatValue(verb, plain, value);
}

function formatValue(verb: string, flags: Flags, value: Value): string {
  switch (typeof value) {
    case "string":
      return formatString(verb, flags, value);
    case "bigint":
      return formatInt(verb, flags, value);
    case "number":
      return formatFloat(verb, flags, value);
    case "boolean":
      return verb === "t" || verb === "v" ? pad(String(value), flags) : bad(verb, flags, value);
    default:
      return formatStructured(verb, flags, value);
  }
}

/** A list or map: its items under the verb. */
function formatStructured(verb: string, flags: Flags, value: Value): string {
  const item = (each: Value) => (each === null ? "<nil>" : formatValue(verb, flags, each));
  if (isList(value)) return `[${value.map(item).join(" ")}]`;
  if (isMap(value)) {
    const pairs = value.keys().map((key) => `${item(key)}:${item(value.get(key) ?? null)}`);
    return `map[${pairs.join(" ")}]`;
  }
  const isText = isTime(value) && "vsqxX".includes(verb);
  return isText ? formatString(verb, flags, printValue(value)) : bad(verb, flags, value);
}

/** A value as Go would have it in a program. */
function formatSyntax(flags: Flags, value: Value): string {
  const item = (each: Value) => (each === null ? "interface {}(nil)" : formatSyntax(flags, each));
  if (typeof value === "string") return formatString("q", flags, value);
  if (isList(value)) return `${typeName(value)}{${value.map(item).join(", ")}}`;
  if (!isMap(value)) return formatValue("v", flags, value);
  const pairs = value.keys().map((key) => `${item(key)}:${item(value.get(key) ?? null)}`);
  return `${typeName(value)}{${pairs.join(", ")}}`;
}

function bad(verb: string, flags: Flags, value: Value): string {
  return `%!${verb}(${typeName(value)}=${formatValue("v", flags, value)})`;
}

function formatString(verb: string, flags: Flags, value: string): string {
  switch (verb) {
    case "v":
    case "s":
      return formatText(flags, value);
    case "q":
      return pad(quoted(flags, cut(flags, value)), flags);
    case "x":
    case "X":
      return pad(hexOfBytes(verb, flags, value), flags);
    default:
      return bad(verb, flags, value);
  }
}

function formatText(flags: Flags, text: string): string {
  return pad(cut(flags, text), flags);
}

function cut(flags: Flags, text: string): string {
  return flags.precision < 0 ? text : [...text].slice(0, flags.precision).join("");
}

function quoted(flags: Flags, text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: what cannot stand in back quotes
  if (flags.sharp && !/[\x00-\x08\x0a-\x1f`\x7f\ufeff\ufffd]/.test(text)) return `\`${text}\``;
  return flags.plus ? asciiOnly(quote(text)) : quote(text);
}

function asciiOnly(text: string): string {
  return text.replace(/[^\0-\x7f]/gu, (char) => {
    const code = (char.codePointAt(0) as number).toString(16);
    return code.length > 4 ? `\\U${code.padStart(8, "0")}` : `\\u${code.padStart(4, "0")}`;
  });
}

function hexOfBytes(verb: string, flags: Flags, value: string): string {
  const all = [...new TextEncoder().encode(value)];
  const bytes = flags.precision < 0 ? all : all.slice(0, flags.precision);
  if (bytes.length === 0) return "";
  const hex = bytes.map((byte) => byte.toString(16).padStart(2, "0"));
  const mark = flags.sharp ? "0x" : "";
  const text = flags.space ? hex.map((each) => mark + each).join(" ") : mark + hex.join("");
  return verb === "X" ? text.toUpperCase() : text;
}

function formatInt(verb: string, flags: Flags, value: bigint): string {
  const radix = radixes[verb];
  if (radix !== undefined) return formatRadix(verb, flags, value, radix);
  switch (verb) {
    case "c":
      return pad(char(value), flags);
    case "q": {
      const text = quote(char(value)).slice(1, -1).replace('\\"', '"').replace("'", "\\'");
      return pad(`'${flags.plus ? asciiOnly(text) : text}'`, flags);
    }
    case "U": {
      const digits = BigInt.asUintN(64, value).toString(16).toUpperCase();
      const point = `U+${digits.padStart(Math.max(flags.precision, 4), "0")}`;
      return pad(flags.sharp ? `${point} '${char(value)}'` : point, { ...flags, zero: false });
    }
    default:
      return bad(verb, flags, value);
  }
}

const radixes: Readonly<Record<string, number | undefined>> = {
  ...{ v: 10, d: 10, b: 2, o: 8, O: 8, x: 16, X: 16 },
};

function formatRadix(verb: string, flags: Flags, value: bigint, radix: number): string {
  const unpadded = { ...flags, zero: false };
  if (flags.precision === 0 && value === 0n) return pad("", unpadded);
  const sign = value < 0n ? "-" : flags.plus ? "+" : flags.space ? " " : "";
  const zeros = flags.zero && !flags.minus ? flags.width - sign.length : 0;
  const digits = (value < 0n ? -value : value)
    .toString(radix)
    .padStart(flags.precision < 0 ? zeros : flags.precision, "0");
  const text = `${sign}${radixMark(verb, flags, digits)}${digits}`;
  return pad(verb === "X" ? text.toUpperCase() : text, unpadded);
}

function radixMark(verb: string, flags: Flags, digits: string): string {
  if (verb === "O") return "0o";
  if (!flags.sharp) return "";
  if (verb === "o") return digits.startsWith("0") ? "" : "0";
  return verb === "b" ? "0b" : verb === "x" || verb === "X" ? "0x" : "";
}

/** The character of a code point; U+FFFD for what is none. */
function char(value: bigint): string {
  const isSurrogate = value >= 0xd800n && value <= 0xdfffn;
  const isPoint = value >= 0n && value <= 0x10ffffn && !isSurrogate;
  return isPoint ? String.fromCodePoint(Number(value)) : "\ufffd";
}

function formatFloat(verb: string, flags: Flags, value: number): string {
  const digits = floatText(verb, flags.precision, Math.abs(value));
  if (digits === undefined) return bad(verb, flags, value);
  const sign = value < 0 || Object.is(value, -0) ? "-" : flags.plus ? "+" : flags.space ? " " : "";
  if (!Number.isFinite(value)) {
    const isBare = Number.isNaN(value) || sign !== "";
    return pad(isBare ? sign + digits : `+${digits}`, { ...flags, zero: false });
  }
  const shown = flags.sharp ? withAllDigits(verb, flags.precision, digits) : digits;
  const zeros = flags.zero && !flags.minus ? flags.width - sign.length : 0;
  return pad(sign + shown.padStart(zeros, "0"), { ...flags, zero: false });
}

/** A number that is not negative; undefined for a verb that is not for floats. */
function floatText(verb: string, precision: number, value: number): string | undefined {
  if (!"vgGeEfF".includes(verb)) return undefined;
  if (!Number.isFinite(value)) return Number.isNaN(value) ? "NaN" : "Inf";
  const lower = verb.toLowerCase();
  if (lower === "f") return formatFixed(value, precision < 0 ? 6 : precision);
  const text =
    lower === "e"
      ? formatExponent(value, precision < 0 ? 6 : precision)
      : precision < 0
        ? formatGoFloat(value)
        : formatGeneral(value, precision);
  return verb === "E" || verb === "G" ? text.toUpperCase() : text;
}

/** With a point always, and of `g` with the zeros that it leaves out. */
function withAllDigits(verb: string, precision: number, text: string): string {
  const [mantissa = "", ...tail] = text.split(/(?=[eE])/);
  const pointed = mantissa.includes(".") ? mantissa : `${mantissa}.`;
  const wanted = "vgG".includes(verb) ? (precision < 0 ? 6 : precision) : 0;
  const counted = pointed.replace(".", "").replace(/^0+(?=.)/, "").length;
  return pointed + "0".repeat(Math.max(wanted - counted, 0)) + tail.join("");
}

function pad(text: string, flags: Flags): string {
  const missing = flags.width - [...text].length;
  if (missing <= 0) return text;
  if (flags.minus) return text + " ".repeat(missing);
  return (flags.zero ? "0" : " ").repeat(missing) + text;
}
