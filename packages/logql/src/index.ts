export { evaluate } from "./engine/engine.js";
export { formatSample } from "./engine/format-sample.js";
export { compilePipeline } from "./pipeline/pipeline.js";
export { sanitizeLabelName } from "./pipeline/row/labels.js";
export type * from "./pipeline/types.js";
export * from "./plan/budget.js";
export { defaultQueryLimits, type QueryLimits, tooManySeries } from "./plan/limits.js";
export * from "./plan/plan.js";
export { planQuery } from "./plan/planner.js";
export type * from "./plan/result.js";
export * from "./plan/split.js";
export { combineMetricPartials } from "./range/combine.js";
export { mergeMetricPartials } from "./range/range.js";
export type {
  BlockSummary,
  ColumnNeeds,
  RunHeader,
  RunSelection,
  StreamLabels,
} from "./scan/block-selection.js";
export { forEachStretch } from "./scan/block-selection.js";
export { joinLogResults } from "./scan/log/join-results.js";
export { keepsEveryRow, type LogPartial, type LogScan, startLogScan } from "./scan/log/log-scan.js";
export {
  groupLogRows,
  mergeLogPartials,
  type ResultStream,
} from "./scan/log/merge.js";
export { RowMatch, type RowMatchOptions } from "./scan/log/row-match.js";
export { compareRows, type RowPlaces, timestampNs } from "./scan/log/row-store.js";
export { siftRows, Thinning } from "./scan/log/thinning.js";
export * from "./scan/metric/metric-scan.js";
export { type MetricPartial, transferablesOf } from "./scan/metric/partial.js";
export { rowErrorOf } from "./scan/metric/pipeline-series.js";
export { streamKey } from "./scan/stream-keys.js";
export * from "./syntax.js";
