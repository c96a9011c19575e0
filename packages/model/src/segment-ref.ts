/** A sealed segment and where its bytes are. */
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
  /** Ids, of those that the asker has, of segments whose rows are in this one. */
  readonly replaces?: readonly string[];
  /** Whether it surely shares no row with any other segment of its listing that is so. */
  readonly isApart?: boolean;
}

/** Where the bytes are: a file of this machine, or of the instance that is named, or an object of the store. */
export type SegmentLocation =
  | { readonly kind: "file"; readonly path: string; readonly instance?: string }
  | { readonly kind: "object"; readonly key: string };
