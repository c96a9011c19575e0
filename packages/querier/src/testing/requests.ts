import type { CallOptions, QueryRequest } from "@skald/contracts";
import type { Plan } from "@skald/logql";
import type { SegmentRef } from "@skald/model";
import { makeSegment, row, type SourceRow } from "@skald/scan/testing";
import { planOf as planQueryText } from "@skald/scan/testing/plans";

export const noLimits = { maxBytesRead: 0, maxMemoryBytes: 256 * 1024 * 1024 };
export const never: CallOptions = { signal: new AbortController().signal };

/** A plan over times that are ns after midnight of the test day, for 1000 rows; the end of a log query is exclusive. */
export function planOf(query: string, params: Parameters<typeof planQueryText>[1] = {}): Plan {
  return planQueryText(query, { limit: 1000, ...params });
}

export function request(
  query: string,
  more: Partial<QueryRequest> = {},
  params: Parameters<typeof planOf>[1] = {},
): QueryRequest {
  return { tenants: ["t"], limits: noLimits, plan: planOf(query, params), ...more };
}

/** Ten rows of a stream, one each ms from a time (ms) on; their lines are `<app><ms>`. */
export function tenRows(app: string, from: number): SourceRow[] {
  return Array.from({ length: 10 }, (_, i) => row(app, (from + i) * 1e6, `${app}${from + i}`));
}

/** Segments s0, s10 .. s50 of stream a, one after the other. */
export function sampleSegments(directory: string): [SegmentRef, ...SegmentRef[]] {
  const refs = [0, 10, 20, 30, 40, 50].map((from) =>
    makeSegment(directory, tenRows("a", from), { id: `s${from}` }),
  );
  return refs as [SegmentRef, ...SegmentRef[]];
}
