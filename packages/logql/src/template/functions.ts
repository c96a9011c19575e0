import { decodeText } from "@skald/model";
import { goTime } from "../go/time.js";
import { encodingFunctions } from "./encodings.js";
import { numberFunctions } from "./numbers.js";
import { printFunctions } from "./printf.js";
import { regexFunctions, stringFunctions } from "./strings.js";
import { timeFunctions } from "./times.js";
import {
  isList,
  isMap,
  isTime,
  isTrue,
  lengthOf,
  type TemplateFunction,
  TemplateRunError,
  typeName,
  type Value,
} from "./value.js";

/** The functions that templates of one kind may call, by name. */
export type FunctionTable = ReadonlyMap<string, TemplateFunction>;

/** Functions of Go's text/template itself; `and` and `or` stop early and live with the evaluator. */
const builtinFunctions: Readonly<Record<string, TemplateFunction>> = {
  not: { takes: "v", call: (args) => !isTrue(args[0] as Value) },
  len: { takes: "v", call: (args) => BigInt(lengthOf(args[0] as Value)) },
  index: { takes: "vv*", call: ([value, ...keys]) => index(value as Value, keys) },
  slice: { takes: "vv*", call: ([value, ...bounds]) => slice(value as Value, bounds) },
  eq: { takes: "vvv*", call: ([first, ...others]) => others.some((o) => equal(first as Value, o)) },
  ne: { takes: "vv", call: (args) => !equal(args[0] as Value, args[1] as Value) },
  lt: { takes: "vv", call: (args) => compare(args[0] as Value, args[1] as Value) < 0 },
  le: { takes: "vv", call: (args) => compare(args[0] as Value, args[1] as Value) <= 0 },
  gt: { takes: "vv", call: (args) => compare(args[0] as Value, args[1] as Value) > 0 },
  ge: { takes: "vv", call: (args) => compare(args[0] as Value, args[1] as Value) >= 0 },
};

/** `and` and `or` are known to the evaluator; here for the parser alone. */
const shortCircuits = ["and", "or"].map((name): [string, TemplateFunction] => [
  name,
  { takes: "v*", call: () => null },
]);

/** What Go has in every template. */
export const goFunctions: FunctionTable = new Map([
  ...shortCircuits,
  ...Object.entries({ ...builtinFunctions, ...printFunctions }),
]);

/** What line_format and label_format have. */
export const logqlFunctions: FunctionTable = new Map([
  ...goFunctions,
  ...Object.entries({
    ...stringFunctions,
    ...regexFunctions,
    ...numberFunctions,
    ...encodingFunctions,
    ...timeFunctions,
    __line__: { takes: "", call: (_, row) => row.line() } satisfies TemplateFunction,
    __timestamp__: {
      takes: "",
      call: (_, row) => goTime(row.timestampNs()),
    } satisfies TemplateFunction,
  }),
]);

function index(value: Value, keys: readonly Value[]): Value {
  if (value === null) throw new TemplateRunError("index of untyped nil");
  return keys.reduce(indexOne, value);
}

function indexOne(value: Value, key: Value): Value {
  if (value === null) throw new TemplateRunError("index of nil pointer");
  if (isMap(value)) {
    if (typeof key !== "string") {
      throw new TemplateRunError(`value has type ${typeName(key)}; should be string`);
    }
    return value.get(key) ?? value.missing;
  }
  if (typeof value !== "string" && !isList(value)) {
    throw new TemplateRunError(`can't index item of type ${typeName(value)}`);
  }
  const items = typeof value === "string" ? new TextEncoder().encode(value) : value;
  if (typeof key !== "bigint") {
    throw new TemplateRunError(`cannot index slice/array with type ${typeName(key)}`);
  }
  const item = key < 0n ? undefined : items[Number(key)];
  if (item === undefined) throw new TemplateRunError(`index out of range: ${key}`);
  return typeof value === "string" ? BigInt(item as number) : (item as Value);
}

function slice(value: Value, bounds: readonly Value[]): Value {
  if (typeof value !== "string" && !isList(value)) {
    throw new TemplateRunError(`can't slice item of type ${typeName(value)}`);
  }
  const bytes = typeof value === "string" ? new TextEncoder().encode(value) : undefined;
  const length = bytes?.length ?? value.length;
  const [from = 0, to = length] = bounds.map((bound) => {
    if (typeof bound !== "bigint") {
      throw new TemplateRunError(`cannot index slice/array with type ${typeName(bound)}`);
    }
    if (bound < 0n || bound > length) throw new TemplateRunError(`index out of range: ${bound}`);
    return Number(bound);
  });
  if (from > to) throw new TemplateRunError(`invalid slice index: ${from} > ${to}`);
  if (bytes !== undefined) return decodeText(bytes.subarray(from, to));
  return (value as readonly Value[]).slice(from, to);
}

function equal(a: Value, b: Value): boolean {
  if (a === null || b === null) return a === b;
  checkKinds(a, b);
  if (isTime(a) && isTime(b)) return a.ns === b.ns;
  return a === b;
}

function compare(a: Value, b: Value): number {
  checkKinds(a, b);
  if (typeof a === "string" && typeof b === "string") return a < b ? -1 : a > b ? 1 : 0;
  if (typeof a === "bigint" && typeof b === "bigint") return a < b ? -1 : a > b ? 1 : 0;
  if (typeof a === "number" && typeof b === "number")
    return a < b ? -1 : a > b ? 1 : a === b ? 0 : Number.NaN;
  throw new TemplateRunError("invalid type for comparison");
}

function checkKinds(a: Value, b: Value): void {
  if (isList(a) || isMap(a) || isList(b) || isMap(b)) {
    throw new TemplateRunError("invalid type for comparison");
  }
  if (typeof a !== typeof b) throw new TemplateRunError("incompatible types for comparison");
}
