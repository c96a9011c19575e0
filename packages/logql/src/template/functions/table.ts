import { goTime } from "../../go/time.js";
import type { TemplateFunction } from "../value/function.js";
import { builtinFunctions } from "./builtins.js";
import { encodingFunctions } from "./encodings.js";
import { numberFunctions } from "./numbers.js";
import { printFunctions } from "./printf.js";
import { regexFunctions } from "./regexes.js";
import { stringFunctions } from "./strings.js";
import { timeFunctions } from "./times.js";

/** The functions that templates of one kind may call, by name. */
export type FunctionTable = ReadonlyMap<string, TemplateFunction>;

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
