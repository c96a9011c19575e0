import type { TimeRange } from "@skald/model";
import type { CallOptions } from "./call.js";
import type { RowFilter } from "./scan.js";

/** Knows which rows of a tenant no query may show any more, although they are still stored. */
export interface Deletes {
  /** What hides rows with times in the range; nothing, for most tenants. */
  active(request: DeletesRequest, options: CallOptions): Promise<readonly RowFilter[]>;
}

export interface DeletesRequest extends TimeRange {
  readonly tenant: string;
}
