export type * from "./pipeline.js";
export type * from "./log-scan.js";
export type * from "./metric-scan.js";
export * from "./plan.js";
export type * from "./result.js";
export * from "./ast.js";
export {
  type ParseErrorDetail,
  type ParseErrorPlace,
  type Position,
  parseError,
  parseErrorDetail,
} from "./errors.js";
export { type TokenizeOptions, tokenize } from "./lexer.js";
export { type ParseSelectorOptions, parseQuery, parseSelector, queryBytesMax } from "./parser.js";
export {
  classOf,
  functionWords,
  keywords,
  type Token,
  type TokenClass,
  type TokenType,
} from "./token.js";
export { formatQuery } from "./format.js";
export { printQuery } from "./print.js";
export { printLabelFilter, printSelector, printStage } from "./print-stage.js";
