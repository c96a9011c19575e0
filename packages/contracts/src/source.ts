import type { SegmentRef } from "@skald/model";

/** Something that can be scanned where it is held: a sealed segment, or an unsealed head of an ingester. */
export type SourceRef = SegmentRef | HeadRef;

/** A head as a view of it was selected: it can be scanned until that view is released. */
export interface HeadRef {
  readonly kind: "head";
  readonly id: string;
  readonly tenant: string;
  /** ns since the epoch, inclusive */
  readonly minNs: bigint;
  readonly maxNs: bigint;
  /** The selection that holds it. */
  readonly view: string;
  /** The ingester that holds it, where there are several. */
  readonly instance?: string;
  /** Memory of its blocks: what a scan of all of them reads at most. */
  readonly sizeBytes: number;
}

/** A source of a task. */
export interface TaskSource<Ref = SourceRef> {
  readonly ref: Ref;
}
