export { goTime } from "./go/time.js";
export { type FunctionTable, goFunctions, logqlFunctions } from "./template/functions.js";
export { compileTemplate, type Template } from "./template/template.js";
export {
  mapValue,
  type TemplateFunction,
  TemplateRunError,
  TemplateSyntaxError,
  type Value,
} from "./template/value.js";

// The face "@skald/logql/template": Go's templates for packages that bring functions of their own.
