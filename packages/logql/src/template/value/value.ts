import { formatGoFloat } from "../../go/float.js";
import { formatGoTime, type GoTime } from "../../go/time.js";

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
