import type { SegmentRef } from "@skald/model";

/** What a thread of this process can read: a file or object, or blocks in shared memory. */
export type LocalRef = SegmentRef | HeadView;

/** The matching streams of one unsealed head, and its blocks in shared memory; a thread of this process can read it. */
export interface HeadView {
  readonly kind: "head";
  readonly id: string;
  readonly tenant: string;
  /** ns since the epoch, inclusive */
  readonly minNs: bigint;
  readonly maxNs: bigint;
  /** Streams of the selection: numbers as the runs of the blocks use them, and their canonical label texts. */
  readonly streams: Uint32Array;
  readonly texts: readonly string[];
  readonly blocks: readonly HeadBlockRef[];
}

/**
 * A head block up to a row count: all columns in one SharedArrayBuffer that only grows, laid out by
 * `head-block.ts`.
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
