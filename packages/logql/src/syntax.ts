export * from "./syntax/ast.js";
export { factsOf, type StageFacts, stageFacts } from "./syntax/ast.js";
export { type ParseErrorDetail, type Position, parseErrorDetail } from "./syntax/errors.js";
export { type TokenizeOptions, tokenize } from "./syntax/lexer.js";
export type { BinaryOp, CompareOp } from "./syntax/operator.js";
export {
  type ParseSelectorOptions,
  parseQuery,
  parseSelector,
  queryBytesMax,
} from "./syntax/parser.js";
export { formatQuery, printQuery } from "./syntax/print.js";
export { printLabelFilter, printSelector } from "./syntax/print-filter.js";
export { printStage } from "./syntax/stages.js";
export {
  classOf,
  functionWords,
  keywords,
  type Token,
  type TokenClass,
  type TokenType,
} from "./syntax/token.js";
