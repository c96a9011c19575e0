import { goTime } from "../../go/time.js";
import type { TemplateFunction } from "../function.js";
import { builtinFunctions } from "./builtins.js";
import { encodingFunctions } from "./encodings.js";
import { numberFunctions } from "./numbers.js";
import { printFunctions } from "./printf.js";
import { regexFunctions } from "./regexes.js";
import { stringFunctions } from "./strings.js";
import { timeFunctions } from "./times.js";

const functions: ReadonlyMap<string, TemplateFunction> = new Map(
  Object.entries({
    ...builtinFunctions,
    ...printFunctions,
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
);

/** The function of a name; undefined for `and` and `or` too. */
export function templateFunction(name: string): TemplateFunction | undefined {
  return functions.get(name);
}

export function hasTemplateFunction(name: string): boolean {
  return name === "and" || name === "or" || functions.has(name);
}
