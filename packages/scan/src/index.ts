export { BlockDigestCache, digestSources, placeHashes } from "./dedup/minute-digests.js";
export { findShared } from "./dedup/shared-rows.js";
export { scanJobs } from "./jobs.js";
export { ScanPool, urgentBytes } from "./pool.js";
export { RemoteScanner, type RemoteScannerDeps } from "./remote-scanner.js";
export { StreamCollector, StreamHashes } from "./scans/collect-streams.js";
export {
  type CountDayTask,
  CountingCatalog,
  type CountingCatalogDeps,
  countDay,
  type DayCount,
} from "./scans/counting-catalog.js";
export { scanLog } from "./scans/log.js";
export { scanMatches } from "./scans/matches.js";
export { measureScan, scanMetric } from "./scans/metric.js";
export type * from "./scans/run-tails.js";
export { TailRunner } from "./scans/run-tails.js";
export { scanLabels, scanStreams } from "./scans/streams.js";
export { scanVolumes, VolumeCounts } from "./scans/volumes.js";
export type { ScanContext } from "./source/block-reader.js";
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
export { rangeOf, tenantLabelName } from "./source/view.js";
