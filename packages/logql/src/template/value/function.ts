import type { GoTime } from "../../go/time.js";
import type { Budget } from "../../plan/budget.js";
import { TemplateRunError } from "./error.js";
import { isList, isMap, isTime, isTrue, typeName, type Value } from "./value.js";

/**
 * A function of templates. `takes` has one letter per parameter: s string, i int, f float64, t time, v anything;
 * a trailing `*` repeats the last one any number of times, `?` makes it optional.
 */
export interface TemplateFunction {
  readonly takes: string;
  /** May throw TemplateRunError with the text behind `error calling name: `. */
  readonly call: (args: readonly Value[], row: TemplateRow) => Value;
}

/** What a template sees besides the labels. */
export interface TemplateRow {
  line(): string;
  /** ns since the epoch */
  timestampNs(): bigint;
  nowNs(): bigint;
  /** Where the characters that functions and actions make are counted as steps; nowhere if not given. */
  readonly budget?: Budget | undefined;
}

/** Checks count and types of arguments; Go's texts on failure. */
export function checkArguments(
  name: string,
  takes: string,
  args: readonly Value[],
): readonly Value[] {
  const last = takes.at(-1);
  const letters = last === "*" || last === "?" ? takes.slice(0, -1) : takes;
  const least = last === "*" || last === "?" ? letters.length - 1 : letters.length;
  const most = last === "*" ? Number.POSITIVE_INFINITY : letters.length;
  if (args.length < least || args.length > most) {
    const want = last === "*" ? `at least ${least}` : String(least);
    throw new TemplateRunError(`wrong number of args for ${name}: want ${want} got ${args.length}`);
  }
  return args.map((arg, i) => convert(arg, letters[Math.min(i, letters.length - 1)] as string));
}

function convert(arg: Value, letter: string): Value {
  if (arg === null && letter !== "v") {
    throw new TemplateRunError(`invalid value; expected ${expected[letter]}`);
  }
  switch (letter) {
    case "s":
      if (typeof arg === "string") return arg;
      throw new TemplateRunError(`wrong type for value; expected string; got ${typeName(arg)}`);
    case "i":
      if (typeof arg === "bigint") return arg;
      if (typeof arg === "number" && Number.isInteger(arg)) return BigInt(arg);
      throw new TemplateRunError(`wrong type for value; expected int; got ${typeName(arg)}`);
    case "f":
      if (typeof arg === "number") return arg;
      if (typeof arg === "bigint") return Number(arg);
      throw new TemplateRunError(`wrong type for value; expected float64; got ${typeName(arg)}`);
    case "t":
      if (isTime(arg)) return arg;
      throw new TemplateRunError(`wrong type for value; expected time.Time; got ${typeName(arg)}`);
    default:
      return arg;
  }
}

export function text(args: readonly Value[], i: number): string {
  return args[i] as string;
}

export function integer(args: readonly Value[], i: number): number {
  return Number(args[i] as bigint);
}

export function time(args: readonly Value[], i: number): GoTime {
  return args[i] as GoTime;
}

const expected: Readonly<Record<string, string>> = {
  s: "string",
  i: "int",
  f: "float64",
  t: "time.Time",
};

/** Length of a text (bytes), list or map. */
export function lengthOf(value: Value): number {
  if (typeof value === "string") return new TextEncoder().encode(value).length;
  if (isList(value)) return value.length;
  if (isMap(value)) return value.keys().length;
  throw new TemplateRunError(`len of type ${typeName(value)}`);
}

export function isEmpty(value: Value | undefined): boolean {
  return value === undefined || !isTrue(value);
}

/** Longest text a function may build. */
export const textMax = 4 * 1024 * 1024;
