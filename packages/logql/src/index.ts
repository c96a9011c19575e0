import "./syntax/regex.js";

export { evaluate } from "./engine/engine.js";
export { mergeMetricPartials } from "./engine/range.js";
export { formatSample } from "./go/numbers.js";
export { compilePipeline } from "./pipeline/compile.js";
export type { Pipeline, PipelineRun, RowBatch } from "./pipeline/pipeline.js";
export { sanitizeLabelName } from "./pipeline/row/row-labels.js";
export {
  Budget,
  defaultQueryLimits,
  type Memory,
  type QueryLimits,
  tooManyBytesRead,
  tooManySeries,
  tooMuchMemory,
} from "./plan/budget.js";
export { isLight } from "./plan/light.js";
export type * from "./plan/plan.js";
export { entriesOf } from "./plan/plan.js";
export { isInShard, longestRangeNs, planQuery, splitLeaf } from "./plan/planner.js";
export {
  type BlockStreams,
  type ColumnNeeds,
  forEachStretch,
  type RunHeader,
  type SlicedRows,
  type StreamLabels,
  streamKey,
} from "./scan/block-selection.js";
export {
  type Findings,
  FindingsWriter,
  FoundBlock,
  findingsBytes,
  findingsKey,
} from "./scan/findings.js";
export {
  compareRows,
  groupLogRows,
  joinLines,
  joinLogResults,
  type LogPartial,
  lineAt,
  lineMemory,
  linesOf,
  mergeLogPartials,
  type RowPlaces,
  siftRows,
  Thinning,
  timestampNs,
} from "./scan/log-rows.js";
export {
  keepsEveryRow,
  type LogScan,
  type LogSelected,
  RowMatch,
  startLogScan,
} from "./scan/log-scan.js";
export { type MetricScan, startMetricScan } from "./scan/metric-scan.js";
export { combineMetricPartials, type MetricPartial } from "./scan/partial.js";
export { rowErrorOf } from "./scan/series.js";
export * from "./syntax.js";
