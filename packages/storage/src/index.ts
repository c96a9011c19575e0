export { findDuplicates } from "./duplicates.js";
export { type Exclusions, noExclusions, uniteExclusions } from "./exclusions.js";
export * from "./head/head-block.js";
export { type HeadBlockCapacity, headBlockBytes } from "./head/layout.js";
export { FsStore } from "./object-store/fs-store.js";
export * from "./object-store/keys.js";
export { MemoryStore } from "./object-store/memory-store.js";
export * from "./object-store/object-store.js";
export {
  type CatalogRequest,
  SegmentCatalog,
  type SegmentCatalogOptions,
} from "./object-store/segment-catalog.js";
export { scanJobs } from "./scan-jobs.js";
export { scanLog } from "./scan-log.js";
export { measureScan } from "./scan-measure.js";
export { scanMetric } from "./scan-metric.js";
export { type DuplicateTask, type Scanner, ScanPool } from "./scan-pool.js";
export { keepsEveryRow, type ScanOutcome, type ScanSource, type ScanTask } from "./scan-task.js";
export type { ScanContext, TimeSpan } from "./scan-view.js";
export { type SealedSegment, type SealHead, type SealInput, sealSegment } from "./seal/seal.js";
export { corruptSegment, corruptSegmentOf } from "./segment/corrupt.js";
export { type OpenedSegmentFile, openSegmentFile } from "./segment/read/open-file.js";
export * from "./segment/read/range-reader.js";
export { openSegment, openSegmentAsync, type SegmentIdentity } from "./segment/read/reader.js";
export * from "./segment/segment.js";
export type { SortedBlock } from "./segment/write/layout.js";
export {
  SegmentWriter,
  type SegmentWriterOptions,
  type WrittenSegment,
} from "./segment/write/writer.js";
export { type OpenSource, openHead, type Source, segmentSource } from "./source.js";
export { collectStreams, type StreamTask } from "./stream-scan.js";
export { tenantLabelName } from "./tenant-label.js";
export * from "./wal/columns.js";
export * from "./wal/disk.js";
export * from "./wal/record.js";
export * from "./wal/replay.js";
export * from "./wal/wal.js";
