import type { LeafPlan } from "@skald/logql";
import type { Matcher, SegmentRef, TimeRange } from "@skald/model";
import type { CallOptions } from "./call.js";
import type { EncodedOutcome, RowFilter, ScanOptions } from "./scan.js";

/** Knows the sealed segments of the object store; ids are those that ingesters gave them. */
export interface Catalog {
  /** Segments of a tenant that may hold rows of the range, of streams that satisfy every matcher; each row is in one of them. */
  list(request: CatalogRequest, options: CallOptions): Promise<readonly SegmentRef[]>;
  /**
   * As `list`; segments that the catalog can count for a leaf without a look at them are counted, and not told. Absent where none
   * are.
   */
  readonly count?: (request: CountRequest, options: ScanOptions) => Promise<CatalogCounts>;
}

export interface CatalogRequest extends TimeRange {
  readonly tenant: string;
  readonly matchers?: readonly Matcher[];
  /** Ids of segments that the asker has elsewhere: which of them a segment of the answer replaces is told with it. */
  readonly held?: readonly string[];
  /** A listing that was begun longer ago than this, in ms, is read anew; 0 where a segment of the last listing was gone. */
  readonly maxAgeMs?: number;
}

export interface CountRequest extends CatalogRequest {
  readonly counting: Counting;
}

/** What is to be counted by a catalog. */
export interface Counting {
  /** Counts rows or bytes of streams. */
  readonly plan: LeafPlan;
  /** Times with rows that are elsewhere too, or deleted: nothing of them can be counted by a catalog. */
  readonly busy: readonly TimeRange[];
  /** So many of the first are those of the segments in `held`, one for each: not busy where the catalog has the same rows. */
  readonly heldBusy?: number;
  /** Adds `__tenant_id__` to every stream. */
  readonly tenantLabel?: string;
}

export interface CatalogCounts {
  /** Those that are left to be scanned. */
  readonly segments: readonly SegmentRef[];
  /** What was counted of the others, in parts that add up; see `ScanOutcome`. */
  readonly counted: readonly EncodedOutcome[];
  readonly countedSegments: number;
  /** Of the segments in `held` those of which the catalog has all rows. */
  readonly known?: readonly string[];
}

/** Knows which rows of a tenant no query may show any more, although they are still stored. */
export interface Deletes {
  /** What hides rows with times in the range; nothing, for most tenants. */
  active(request: DeletesRequest, options: CallOptions): Promise<readonly RowFilter[]>;
}

export interface DeletesRequest extends TimeRange {
  readonly tenant: string;
}
