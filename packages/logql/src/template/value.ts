import { formatGoFloat } from "../go/numbers.js";
import { formatGoTime, type GoTime } from "../go/time.js";
import type { Budget } from "../plan/budget.js";

/**
 * A value inside a template. bigint is Go's int, number is float64, null is nil; `missing` of a map is what an
 * absent key gives.
 */
export type Value = string | bigint | number | boolean | null | GoTime | GoMap | readonly Value[];

export interface GoMap {
  readonly kind: "map";
  readonly missing: "" | null;
  get(key: string): Value | undefined;
  /** Sorted. */
  keys(): readonly string[];
}

export function isMap(value: Value): value is GoMap {
  return typeof value === "object" && value !== null && "kind" in value && value.kind === "map";
}

export function isTime(value: Value): value is GoTime {
  return typeof value === "object" && value !== null && "kind" in value && value.kind === "time";
}

export function isList(value: Value): value is readonly Value[] {
  return Array.isArray(value);
}

/** Go's `%v`, and what an action prints; nil is `<no value>` at the top and `<nil>` inside. */
export function printValue(value: Value, nil = "<no value>"): string {
  switch (typeof value) {
    case "string":
      return value;
    case "number":
      return formatGoFloat(value);
    case "bigint":
    case "boolean":
      return String(value);
    default:
      if (value === null) return nil;
      if (isList(value)) return `[${value.map((item) => printValue(item, "<nil>")).join(" ")}]`;
      if (isTime(value)) return formatGoTime(value, "2006-01-02 15:04:05.999999999 -0700 MST");
      return `map[${value
        .keys()
        .map((key) => `${key}:${printValue(value.get(key) ?? null, "<nil>")}`)
        .join(" ")}]`;
  }
}

/** Go's truth: not false, zero, nil or empty. */
export function isTrue(value: Value): boolean {
  if (value === null) return false;
  if (isList(value)) return value.length > 0;
  if (isMap(value)) return value.keys().length > 0;
  if (isTime(value)) return true;
  return typeof value === "bigint" ? value !== 0n : Boolean(value);
}

/** Name of the type as Go's error texts have it. */
export function typeName(value: Value): string {
  switch (typeof value) {
    case "string":
      return "string";
    case "bigint":
      return "int";
    case "number":
      return "float64";
    case "boolean":
      return "bool";
    default:
      if (value === null) return "nil";
      if (isList(value)) return "[]interface {}";
      if (isTime(value)) return "time.Time";
      return value.missing === "" ? "map[string]string" : "map[string]interface {}";
  }
}

/** JSON as values: numbers are float64; undefined when the text is not JSON. */
export function valueOfJson(text: string): Value | undefined {
  try {
    return fromPlain(JSON.parse(text));
  } catch {
    return undefined;
  }
}

/** Deeper values are not JSON for a template. */
const depthMax = 500;

function fromPlain(value: unknown, depth = 0): Value {
  if (depth > depthMax) throw new RangeError("nested too deeply");
  if (Array.isArray(value)) return value.map((item) => fromPlain(item, depth + 1));
  if (typeof value === "object" && value !== null) {
    const entries = new Map(
      Object.entries(value).map(([key, item]) => [key, fromPlain(item, depth + 1)]),
    );
    return mapValue(entries, null);
  }
  return value as string | number | boolean | null;
}

export function mapValue(entries: ReadonlyMap<string, Value>, missing: "" | null): GoMap {
  return {
    kind: "map",
    missing,
    get: (key) => entries.get(key),
    keys: () => [...entries.keys()].sort(),
  };
}

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
  return args.map((arg, i) => {
    try {
      return convert(arg, letters[Math.min(i, letters.length - 1)] as string);
    } catch (error) {
      throw error instanceof TemplateRunError ? new ArgumentError(error.message, i) : error;
    }
  });
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
const textMax = 4 * 1024 * 1024;

/** Throws TemplateRunError for a text that would be longer than `textMax`. */
export function checkLength(length: number): void {
  if (length > textMax) throw new TemplateRunError(`result longer than ${textMax} characters`);
}

/** A template that does not parse; the message is Go's text behind `template: name:line: `. */
export class TemplateSyntaxError extends Error {
  /** Offset in the template. */
  readonly at: number;

  constructor(message: string, at: number) {
    super(message);
    this.name = "TemplateSyntaxError";
    this.at = at;
  }
}

/** A template that fails on the data of a row; the message is Go's. */
export class TemplateRunError extends Error {
  constructor(message: string) {
    super(message);
    this.name = "TemplateRunError";
  }
}

/** An argument of the wrong type, by its place. */
export class ArgumentError extends TemplateRunError {
  readonly place: number;

  constructor(message: string, place: number) {
    super(message);
    this.place = place;
  }
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
