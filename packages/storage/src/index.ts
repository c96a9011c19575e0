export * from "./bucket-thread/bucket-thread.js";
export type { PageMemory } from "./bytes.js";
export * from "./day-index/day-edit.js";
export {
  DayIndex,
  decodeDayIndex,
  type GoneSegment,
  type IndexedSegment,
} from "./day-index/day-index.js";
export * from "./day-index/day-view.js";
export * from "./day-index/segment-catalog.js";
export { DirectoryLock } from "./directory-lock.js";
export * from "./head/head-block.js";
export * from "./head/head-view.js";
export { type HeadBlockCapacity, headBlockBytes, maxMetadataCells } from "./head/layout.js";
export * from "./object-store/asked-texts.js";
export { FsStore } from "./object-store/fs-store.js";
export * from "./object-store/keys.js";
export { MemoryStore } from "./object-store/memory-store.js";
export type * from "./object-store/object-store.js";
export type { S3Options } from "./object-store/s3/calls.js";
export { S3Store } from "./object-store/s3/s3-store.js";
export type { DroppedRows } from "./seal/input-cursor.js";
export * from "./seal/merge-segments.js";

export * from "./seal/seal.js";
export { minuteNs } from "./segment/digests.js";
export type { IndexImage } from "./segment/index-image.js";

export * from "./segment/range-reader.js";
export { replacedBy } from "./segment/read/index-reader.js";
export {
  type OpenedSegmentFile,
  openSegment,
  openSegmentAsync,
  openSegmentFile,
} from "./segment/read/reader.js";
export { hashBlockRows, type RowHashes } from "./segment/row-hash.js";
export * from "./segment/segment.js";
export { codeOf, hashPair, hashText, hashValues, matchLabels } from "./segment/streams.js";
export * from "./segment/verify/describe-segment.js";

export {
  type FoundSegment,
  verifySegment,
} from "./segment/verify/verify-segment.js";
export type { SealedSegment } from "./segment/write/writer.js";
export { cachedKeyOf } from "./segment-cache/cache-file.js";
export * from "./segment-cache/cached-segment.js";
export * from "./segment-cache/segment-cache.js";
export { DirectorySyncs, makeLastingDirectory, syncInTurn } from "./syncs.js";
export * from "./wal/disk.js";
export type {
  BatchRange,
  ForwardRecord,
  PushBodyRecord,
  PushColumnsRecord,
  StreamsRecord,
  WalHead,
  WalRecord,
} from "./wal/record.js";
export * from "./wal/replay.js";
export * from "./wal/wal.js";
