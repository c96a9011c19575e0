export * from "./bucket-thread/bucket-thread.js";
export type { PageMemory } from "./bytes.js";
export {
  type AddedSegment,
  type DayChange,
  DayEdit,
  type EditedDay,
  editDay,
} from "./day-index/day-edit.js";
export {
  DayIndex,
  decodeDayIndex,
  type GoneSegment,
  type IndexedSegment,
} from "./day-index/day-index.js";
export {
  type DaySelection,
  type DayView,
  dayView,
  indexesOf,
  OpenedDays,
  type OpenedDaysOptions,
} from "./day-index/day-view.js";
export {
  maxListingAgeMs,
  SegmentCatalog,
  type SegmentCatalogOptions,
} from "./day-index/segment-catalog.js";
export { DirectoryLock } from "./directory-lock.js";
export { HeadBlock, openHeadBlock } from "./head/head-block.js";
export * from "./head/head-view.js";
export { type HeadBlockCapacity, headBlockBytes, maxMetadataCells } from "./head/layout.js";
export { FsStore } from "./object-store/fs-store.js";
export {
  type DayIndexKey,
  dayIndexKey,
  dayPrefix,
  headId,
  inOrderOfArrival,
  isMergedId,
  mergedId,
  parseDayIndexKey,
  parseDayPrefix,
  parseSegmentKey,
  parseTenantPrefix,
  type SegmentKey,
  segmentKey,
  tenantPrefix,
} from "./object-store/keys.js";
export { MemoryStore } from "./object-store/memory-store.js";
export type {
  CallOptions,
  ListOptions,
  ObjectInfo,
  ObjectRange,
  ObjectStore,
  PutFileOptions,
  PutOptions,
  PutOutcome,
} from "./object-store/object-store.js";
export {
  defaultRetry,
  type S3Credentials,
  type S3Encryption,
  type S3Operation,
  type S3Options,
  type S3Retry,
  type S3Try,
} from "./object-store/s3-calls.js";
export { S3Store, type S3StoreDeps } from "./object-store/s3-store.js";
export type { DroppedRows, MergeInput } from "./seal/input-cursor.js";
export { compactLevel, type MergeOptions, mergeSegments } from "./seal/merge-segments.js";
export type { SealHead } from "./seal/open-heads.js";
export { type SealInput, sealSegment } from "./seal/seal.js";
export { minuteNs } from "./segment/digests.js";
export type { IndexImage } from "./segment/index-image.js";
export type { SortedBlock } from "./segment/layout.js";
export * from "./segment/range-reader.js";
export { replacedBy } from "./segment/read/index-reader.js";
export {
  type OpenedSegmentFile,
  openSegment,
  openSegmentAsync,
  openSegmentFile,
  type SegmentIdentity,
} from "./segment/read/reader.js";
export { hashBlockRows, type RowHashes } from "./segment/row-hash.js";
export {
  type BlockHeader,
  type BlockRange,
  type ColumnSelection,
  corruptSegment,
  corruptSegmentOf,
  type LabelTable,
  type PageSet,
  type Segment,
  type StreamColumn,
  type StreamDigests,
} from "./segment/segment.js";
export { codeOf, hashPair, hashText, hashValues, matchLabels } from "./segment/streams.js";
export * from "./segment/verify/describe-segment.js";
export type { Damage } from "./segment/verify/verify-pages.js";
export {
  type FoundSegment,
  type SegmentCheck,
  verifySegment,
} from "./segment/verify/verify-segment.js";
export {
  type SealedSegment,
  SegmentWriter,
  type SegmentWriterOptions,
} from "./segment/write/writer.js";
export * from "./segment-cache/cached-segment.js";
export {
  type Fetched,
  type HeldObjects,
  type ObjectName,
  SegmentCache,
  type SegmentCacheCalls,
  type SegmentCacheOptions,
} from "./segment-cache/segment-cache.js";
export { DirectorySyncs, makeLastingDirectory, syncInTurn } from "./syncs.js";
export * from "./wal/disk.js";
export {
  type BatchRange,
  decodeWalRecord,
  encodeWalRecord,
  type ForwardRecord,
  type PushBodyRecord,
  type PushColumnsRecord,
  readBatchColumns,
  type StreamsRecord,
  type WalHead,
  type WalRecord,
  walRecordTypes,
  writeBatchColumns,
  writeWalRecord,
} from "./wal/record.js";
export * from "./wal/replay.js";
export * from "./wal/wal.js";
