export { corruptSegment, corruptSegmentOf } from "./corrupt-segment.js";
export { findDuplicates } from "./duplicates.js";
export { type Exclusions, noExclusions, uniteExclusions } from "./exclusions.js";
export { FsStore } from "./fs-store.js";
export * from "./head-block.js";
export { type HeadBlockCapacity, headBlockBytes } from "./head-block-layout.js";
export * from "./keys.js";
export { MemoryStore } from "./memory-store.js";
export * from "./object-store.js";
export { scanJobs } from "./scan-jobs.js";
export { scanLog } from "./scan-log.js";
export { measureScan } from "./scan-measure.js";
export { scanMetric } from "./scan-metric.js";
export { type DuplicateTask, type Scanner, ScanPool } from "./scan-pool.js";
export { keepsEveryRow, type ScanOutcome, type ScanSource, type ScanTask } from "./scan-task.js";
export type { ScanContext, TimeSpan } from "./scan-view.js";
export { type SealedSegment, type SealHead, type SealInput, sealSegment } from "./seal.js";
export * from "./segment.js";
export {
  type CatalogRequest,
  SegmentCatalog,
  type SegmentCatalogOptions,
} from "./segment-catalog.js";
export { type OpenedSegmentFile, openSegmentFile } from "./segment-file.js";
export type { SortedBlock } from "./segment-layout.js";
export * from "./segment-range.js";
export { openSegment, openSegmentAsync, type SegmentIdentity } from "./segment-reader.js";
export { SegmentWriter, type SegmentWriterOptions, type WrittenSegment } from "./segment-writer.js";
export { type OpenSource, openHead, type Source, segmentSource } from "./source.js";
export { collectStreams, type StreamTask } from "./stream-scan.js";
export { tenantLabelName } from "./tenant-label.js";
export * from "./wal.js";
export * from "./wal-columns.js";
export * from "./wal-disk.js";
export * from "./wal-record.js";
export * from "./wal-replay.js";
