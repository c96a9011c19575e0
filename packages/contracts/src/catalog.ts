import type { SegmentRef, TimeRange } from "@skald/model";
import type { CallOptions } from "./call.js";

/** Knows the sealed segments of the object store; ids are those that ingesters gave them. */
export interface Catalog {
  /** Segments of a tenant that may hold rows of the range. */
  list(request: CatalogRequest, options: CallOptions): Promise<readonly SegmentRef[]>;
}

export interface CatalogRequest extends TimeRange {
  readonly tenant: string;
  /** Lists anew, because a segment of the last listing was gone. */
  readonly fresh?: boolean;
}
