export { scanJobs } from "./jobs.js";
export { ScanPool, urgentBytes } from "./pool.js";
export { RemoteScanner } from "./remote-scanner.js";
export { StreamCollector, StreamHashes } from "./scans/collect-streams.js";
export { CountingCatalog, countDay } from "./scans/counting-catalog.js";
export { scanLog } from "./scans/log.js";
export { scanMatches } from "./scans/matches.js";
export { scanMetric } from "./scans/metric.js";
export type * from "./scans/run-tails.js";
export { TailRunner } from "./scans/run-tails.js";
export { VolumeCounts } from "./scans/volumes.js";
export {
  emptyMask,
  maskRows,
  numberMinutes,
  streamMinutes,
  uniteMasks,
} from "./source/row-mask.js";
export {
  type OpenSource,
  openHead,
  refsOf,
  type Source,
  segmentSource,
  sourcesOf,
  withRefs,
} from "./source/source.js";
export { rangeOf, shadowedName, tenantLabelName } from "./source/view.js";
