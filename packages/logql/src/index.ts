export * from "./ast.js";
export { evaluate } from "./engine.js";
export {
  type ParseErrorDetail,
  type ParseErrorPlace,
  type Position,
  parseError,
  parseErrorDetail,
} from "./errors.js";
export { formatQuery } from "./format.js";
export { type TokenizeOptions, tokenize } from "./lexer.js";
export * from "./log-scan.js";
export { groupLogRows, mergeLogPartials, type ResultStream } from "./log-scan-merge.js";
export * from "./metric-scan.js";
export { type ParseSelectorOptions, parseQuery, parseSelector, queryBytesMax } from "./parser.js";
export * from "./pipeline.js";
export * from "./plan.js";
export { printQuery } from "./print.js";
export { printLabelFilter, printSelector, printStage } from "./print-stage.js";
export { mergeMetricPartials } from "./range.js";
export { combineMetricPartials } from "./range-combine.js";
export type * from "./result.js";
export { formatSample } from "./result-format.js";
export {
  hasAllRows,
  isInShard,
  type SplitOptions,
  splitLeaf,
  splitLogPlan,
} from "./split.js";
export { joinMatrices, longestRangeNs, splitPoints } from "./split-points.js";
export {
  classOf,
  functionWords,
  keywords,
  type Token,
  type TokenClass,
  type TokenType,
} from "./token.js";
