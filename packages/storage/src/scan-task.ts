import type { LeafPlan, LogPartial, LogPlan, MetricPartial } from "@skald/logql";
import type { ReadStats, SourceRef } from "@skald/model";
import type { Exclusions } from "./exclusions.js";

/** Work for one thread: one plan over some sources, or parts of them. Survives a structured clone. */
export interface ScanTask<Plan extends LeafPlan | LogPlan = LeafPlan | LogPlan> {
  readonly plan: Plan;
  /** For metric plans in order of arrival, for log plans best times first. */
  readonly sources: readonly ScanSource[];
  /** Log plans: rows worse than this time (ns since the epoch) are not wanted any more. */
  readonly boundNs?: bigint;
}

export interface ScanSource {
  readonly ref: SourceRef;
  /** Order of arrival among the sources of the query; decides between rows of equal time. */
  readonly sequence: number;
  /** One of `count` equal parts of the blocks; all blocks when absent. */
  readonly part?: { readonly index: number; readonly count: number };
  readonly exclusions?: Exclusions;
  /** Adds `__tenant_id__` to every stream, for queries over several tenants. */
  readonly tenantLabel?: string;
}

export interface ScanOutcome<Partial extends MetricPartial | LogPartial> {
  readonly partial: Partial;
  readonly stats: ReadStats;
  /** Streams of the source with most of those that the matchers name. */
  readonly streams: number;
}

/** True when every row that a log plan reads is in its answer, so that it reads no further than to its limit. */
export function keepsEveryRow(plan: LogPlan): boolean {
  return !plan.log.stages.some(({ kind }) => kind === "line_filter" || kind === "label_filter");
}
