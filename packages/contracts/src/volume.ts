import type { Labels, Matcher, TimeRange } from "@skald/model";

/** What rows and bytes are counted by: time, and labels. */
export interface VolumePlan extends TimeRange {
  readonly matchers: readonly Matcher[];
  readonly groupBy: VolumeGrouping;
  readonly buckets: VolumeBuckets;
  /** More groups than this throw invalid_argument. */
  readonly maxGroups: number;
  /** Whether the streams with rows in the range are counted too. */
  readonly countsStreams: boolean;
}

/**
 * `series`: rows with the same values of some labels are a group; `names`: rows whose stream has the label are a group,
 * so that a row may be in several. All labels where no names are given.
 */
export interface VolumeGrouping {
  readonly kind: "series" | "names";
  readonly names?: readonly string[];
}

/** Bucket i holds the times `[firstNs + i * stepNs, firstNs + (i + 1) * stepNs)`, ns since the epoch. */
export interface VolumeBuckets {
  readonly firstNs: bigint;
  readonly stepNs: bigint;
  readonly count: number;
}

/**
 * Cell i counts what group `group[i]` has in bucket `bucket[i]`; cells without rows are not there. Bytes are those of
 * lines: where only some rows of a run count, their share of it.
 */
export interface VolumeCells {
  /** A group by label name has that name, with an empty value. */
  readonly groups: readonly Labels[];
  readonly group: Uint32Array;
  readonly bucket: Uint32Array;
  readonly rows: Float64Array;
  readonly bytes: Float64Array;
  /** Blocks with rows that count. */
  readonly blocks: number;
}
