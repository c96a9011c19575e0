// The face "@skald/logql/template": Go's templates, for whoever has functions of its own.
export { formatGoFloat } from "./go/float.js";
export { goTime } from "./go/time.js";
export { type FunctionTable, goFunctions, logqlFunctions } from "./template/functions/table.js";
export { compileTemplate, type Template } from "./template/template.js";
export { TemplateRunError, TemplateSyntaxError } from "./template/value/error.js";
export type { TemplateFunction, TemplateRow } from "./template/value/function.js";
export { mapValue, type Value } from "./template/value/value.js";
