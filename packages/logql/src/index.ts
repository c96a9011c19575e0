export { evaluate } from "./engine/engine.js";
export { formatSample } from "./engine/format-sample.js";
export * from "./pipeline/pipeline.js";
export { defaultQueryLimits, type QueryLimits } from "./plan/limits.js";
export * from "./plan/plan.js";
export { planQuery } from "./plan/planner.js";
export type * from "./plan/result.js";
export * from "./plan/split.js";
export { combineMetricPartials } from "./range/combine.js";
export { mergeMetricPartials } from "./range/range.js";
export * from "./scan/log/log-scan.js";
export { groupLogRows, mergeLogPartials, type ResultStream } from "./scan/log/merge.js";
export * from "./scan/metric/metric-scan.js";
export * from "./syntax/ast.js";
export {
  type ParseErrorDetail,
  type ParseErrorPlace,
  type Position,
  parseError,
  parseErrorDetail,
} from "./syntax/errors.js";
export { formatQuery } from "./syntax/format.js";
export { type TokenizeOptions, tokenize } from "./syntax/lexer.js";
export {
  type ParseSelectorOptions,
  parseQuery,
  parseSelector,
  queryBytesMax,
} from "./syntax/parser/parser.js";
export { printQuery } from "./syntax/print.js";
export { printLabelFilter, printSelector, printStage } from "./syntax/print-stage.js";
export {
  classOf,
  functionWords,
  keywords,
  type Token,
  type TokenClass,
  type TokenType,
} from "./syntax/token.js";
