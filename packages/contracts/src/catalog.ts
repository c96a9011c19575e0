import type { Matcher, SegmentRef, TimeRange } from "@skald/model";
import type { CallOptions } from "./call.js";
import type { RowFilter } from "./scan.js";

/** Knows the sealed segments of the object store; ids are those that ingesters gave them. */
export interface Catalog {
  /** Segments of a tenant that may hold rows of the range, of streams that satisfy every matcher; each row is in one of them. */
  list(request: CatalogRequest, options: CallOptions): Promise<readonly SegmentRef[]>;
}

export interface CatalogRequest extends TimeRange {
  readonly tenant: string;
  readonly matchers?: readonly Matcher[];
  /** Ids of segments that the asker has elsewhere: which of them a segment of the answer replaces is told with it. */
  readonly held?: readonly string[];
  /** A listing that was begun longer ago than this, in ms, is read anew; 0 where a segment of the last listing was gone. */
  readonly maxAgeMs?: number;
}

/** Knows which rows of a tenant no query may show any more, although they are still stored. */
export interface Deletes {
  /** What hides rows with times in the range; nothing, for most tenants. */
  active(request: DeletesRequest, options: CallOptions): Promise<readonly RowFilter[]>;
}

export interface DeletesRequest extends TimeRange {
  readonly tenant: string;
}
