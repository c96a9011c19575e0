export type { PageMemory } from "./bytes.js";
export type { DroppedRows, MergeInput } from "./compact/input-cursor.js";
export { compactLevel, type MergeOptions, mergeSegments } from "./compact/merge-segments.js";
export * from "./day-index/day-edit.js";
export * from "./day-index/day-index.js";
export * from "./day-index/day-view.js";
export * from "./day-index/edit-day.js";
export { decodeDayIndex } from "./day-index/image.js";
export { indexesOf, OpenedDays, type OpenedDaysOptions } from "./day-index/opened-days.js";
export {
  maxListingAgeMs,
  SegmentCatalog,
  type SegmentCatalogOptions,
} from "./day-index/segment-catalog.js";
export { DirectoryLock } from "./directory-lock.js";
export { DirectorySyncs, makeLastingDirectory } from "./directory-syncs.js";
export * from "./head/head-block.js";
export type * from "./head/head-view.js";
export { type HeadBlockCapacity, headBlockBytes, maxMetadataCells } from "./head/layout.js";
export * from "./head/shared-texts.js";
export { headId, inOrderOfArrival } from "./object-store/arrival.js";
export { FsStore } from "./object-store/fs-store.js";
export * from "./object-store/keys.js";
export { MemoryStore } from "./object-store/memory-store.js";
export * from "./object-store/object-store.js";
export * from "./object-store/s3/options.js";
export { S3Store, type S3StoreDeps } from "./object-store/s3/s3-store.js";
export type { SealHead } from "./seal/open-heads.js";
export { type SealedSegment, type SealInput, sealSegment } from "./seal/seal.js";
export { corruptSegment, corruptSegmentOf } from "./segment/corrupt.js";
export { minuteNs } from "./segment/digest/digest-table.js";
export { hashBlockRows, type RowHashes } from "./segment/digest/row-hash.js";
export type { IndexImage } from "./segment/index-image.js";
export type { SortedBlock } from "./segment/layout.js";
export { matchLabels } from "./segment/match-labels.js";
export * from "./segment/range-reader.js";
export { replacedBy } from "./segment/read/index-reader.js";
export { type OpenedSegmentFile, openSegmentFile } from "./segment/read/open-file.js";
export { openSegment, openSegmentAsync, type SegmentIdentity } from "./segment/read/reader.js";
export * from "./segment/segment.js";
export {
  codeOf,
  hashPair,
  hashText,
  hashValues,
  type StreamColumn,
} from "./segment/stream-columns.js";
export * from "./segment/verify/describe-segment.js";
export type { Damage } from "./segment/verify/verify-pages.js";
export {
  type FoundSegment,
  type SegmentCheck,
  verifySegment,
} from "./segment/verify/verify-segment.js";
export {
  SegmentWriter,
  type SegmentWriterOptions,
  type WrittenSegment,
} from "./segment/write/writer.js";
export * from "./segment-cache/cached-segment.js";
export * from "./segment-cache/segment-cache.js";
export { syncInTurn } from "./sync-turns.js";
export * from "./wal/columns.js";
export * from "./wal/disk.js";
export * from "./wal/inspect-wal.js";
export * from "./wal/record.js";
export * from "./wal/replay.js";
export * from "./wal/wal.js";
