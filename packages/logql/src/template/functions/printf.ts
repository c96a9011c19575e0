import { TemplateRunError } from "../value/error.js";
import { type TemplateFunction, textMax } from "../value/function.js";
import { printValue, typeName, type Value } from "../value/value.js";
import { printAll } from "./encodings.js";
import { type Flags, formatArgument } from "./format-argument.js";

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
  /** The verb at hand has a number that is no argument's, or stands in the wrong place. */
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
    if (this.#out.length > textMax) {
      throw new TemplateRunError(`result longer than ${textMax} characters`);
    }
  }
}

const marksPattern = /[-+# 0]*/y;
const digitsPattern = /\d*/y;
/** Go's bound of a width, a precision and the number of an argument. */
const sizeMax = 1_000_000;
/** More digits than any number of a template has. */
const precisionMax = 1000;
