import type { Batch } from "./batch.js";
import type { Labels } from "./labels.js";
import type { Matcher } from "./matcher.js";

/**
 * Every call between services. In one process a call is a method call, in a cluster it is gRPC; services cannot tell.
 */
export interface Ingester {
  /** Stores a batch. Resolves when the rows are in the write-ahead log; refused rows are reported, not thrown. */
  push(request: PushRequest): Promise<PushOutcome>;
  /** Consistent view of what is held for the tenant in the range: the head and segments not dropped yet. */
  select(request: SelectRequest): Promise<Selection>;
  /** Seals every head and uploads every local segment. */
  flush(): Promise<void>;
}

export interface PushRequest {
  readonly tenant: string;
  readonly batch: Batch;
}

export interface PushOutcome {
  readonly refusals: readonly PushRefusal[];
}

/** Rows that an ingester refused, with the text that the client gets. */
export interface PushRefusal {
  /** 400 or 429 */
  readonly status: number;
  /** Reason as in the `reason` label of the discarded metrics. */
  readonly reason: string;
  readonly message: string;
  readonly entries: number;
  readonly bytes: number;
}

/** Both ends of the range are inclusive, ns since the epoch. */
export interface SelectRequest {
  readonly tenant: string;
  readonly matchers: readonly Matcher[];
  readonly fromNs: bigint;
  readonly toNs: bigint;
}

export interface Selection {
  readonly sources: readonly SourceRef[];
}

/** Something that can be scanned; survives a structured clone, so that a worker or another process can open it. */
export type SourceRef = SegmentRef | HeadRef;

export interface SegmentRef {
  readonly kind: "segment";
  /** Unique; the same segment has one id on the ingester's disk and in the object store. */
  readonly id: string;
  readonly tenant: string;
  /** ns since the epoch, inclusive */
  readonly minNs: bigint;
  readonly maxNs: bigint;
  readonly location: SegmentLocation;
  readonly sizeBytes: number;
}

/** Where the bytes are: a file of this machine, or an object of the store. */
export type SegmentLocation =
  | { readonly kind: "file"; readonly path: string }
  | { readonly kind: "object"; readonly key: string };

/** The matching streams of one unsealed head, and its blocks in shared memory. */
export interface HeadRef {
  readonly kind: "head";
  readonly id: string;
  readonly tenant: string;
  readonly minNs: bigint;
  readonly maxNs: bigint;
  /** Streams of the selection: numbers as the runs of the blocks use them, and their canonical label texts. */
  readonly streams: Uint32Array;
  readonly texts: readonly string[];
  readonly blocks: readonly HeadBlockRef[];
}

/**
 * A head block up to a row count: all columns in one SharedArrayBuffer that only grows, laid out by
 * storage/head-block.ts.
 */
export interface HeadBlockRef {
  readonly memory: SharedArrayBuffer;
  /** Rows, runs, metadata pairs and bytes that are valid in this view. */
  readonly rowCount: number;
  readonly runCount: number;
  readonly pairCount: number;
  readonly baseNs: bigint;
  readonly metaNames: readonly string[];
}

/** Labels of the streams that match; what label, series and index queries are answered from. */
export interface StreamInfo {
  readonly labels: Labels;
  readonly text: string;
}
