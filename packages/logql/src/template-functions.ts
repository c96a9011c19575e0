import { goTime } from "./go-time.js";
import { builtinFunctions } from "./template-builtins.js";
import { encodingFunctions } from "./template-encodings.js";
import type { TemplateFunction } from "./template-function.js";
import { numberFunctions } from "./template-numbers.js";
import { printFunctions } from "./template-printf.js";
import { regexFunctions } from "./template-regexes.js";
import { stringFunctions } from "./template-strings.js";
import { timeFunctions } from "./template-times.js";

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
