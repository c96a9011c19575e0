import type { ExplainedScan } from "@skald/contracts";
import {
  keepsEveryRow,
  type LogExpr,
  type Plan,
  planQuery,
  printQuery,
  startLogScan,
  startMetricScan,
  tooManyBytesRead,
} from "@skald/logql";
import type { NeedleFormula, TimeRange } from "@skald/model";
import { type ExplainedPlan, planLimitsOf } from "../frontend.js";
import { withTimeout } from "../limits/limits.js";
import type { IndexStats, Lists } from "../lists.js";
import type { QueryContext } from "../query-context.js";
import { keptShare } from "../split/metric-query.js";

/** What a query will read, as clients get it. */
export interface Explanation {
  readonly query: string;
  readonly kind: "log" | "metric";
  /** The log query, or each range aggregation of a metric query. */
  readonly parts: readonly ExplainedPart[];
  /** Whether kept answers have all of it, so that nothing is read. */
  readonly cached: boolean;
  /** Whether all headers were looked at, and no kept answer or deleted row spares it a part of what it would read. */
  readonly exact: boolean;
  /** The text with which it will be refused; null when it will not be. */
  readonly refusedBy: string | null;
}

export interface ExplainedPart {
  readonly selector: string;
  readonly streams: number;
  readonly entries: number;
  /** Bytes of lines in the range. */
  readonly bytes: number;
  /** Segments, and what ingesters hold besides, that have to be looked at. */
  readonly segments: number;
  readonly blocks: number;
  readonly blocksToRead: number;
  /** At most; rows that came twice count twice. */
  readonly bytesToRead: number;
  readonly answeredBy: "headers" | "scan";
  /** Texts that filters of segments look for. */
  readonly needles: readonly string[];
}

/** Time for which headers are looked at. */
const maxMs = 50;

/** Says what a query will read, by indexes, headers and filters alone. */
export async function explainQuery(
  { expr, text, query, refusedBy }: ExplainedPlan,
  lists: Lists,
  context: QueryContext,
): Promise<Explanation> {
  const about = { query: text, kind: expr.kind === "log" ? "log" : "metric" } as const;
  if (query === undefined)
    return { ...about, parts: [], cached: false, exact: false, refusedBy: refusedBy ?? null };
  const { limits, tenants, actors = [], querier, signal } = context;
  return withTimeout(limits, signal, async (bounded) => {
    const plan = planQuery(expr, query.params, planLimitsOf(limits));
    const [scans, held, kept] = await Promise.all([
      querier.run("explain", { tenants, plan, actors, maxMs }, { signal: bounded }),
      Promise.all(partsOf(plan).map((part) => heldIn(part, lists, context))),
      expr.kind === "log" ? "none" : keptShare({ expr, params: query.params, context }, bounded),
    ]);
    const parts = partsOf(plan).map((part, i) => partOf(part, scans[i]!, held[i]!));
    const toRead = parts.reduce((sum, { bytesToRead }) => sum + bytesToRead, 0);
    const { max_query_bytes_read: most } = limits;
    // A query without a filter reads as far as its limit goes, which headers do not show.
    const isMeasured = plan.kind !== "log" || !keepsEveryRow(plan);
    const exact = kept === "none" && scans.every(({ isExact }) => isExact);
    const isRefused = most > 0 && toRead > most && isMeasured && exact;
    return {
      ...about,
      parts,
      cached: kept === "all",
      exact,
      refusedBy: isRefused ? tooManyBytesRead(toRead, most).message : null,
    };
  });
}

/** What one scan of a plan looks for. */
interface PlanPart extends TimeRange {
  readonly log: LogExpr;
  readonly formula: NeedleFormula | undefined;
}

function partsOf(plan: Plan): PlanPart[] {
  if (plan.kind === "log") return [{ ...plan, formula: startLogScan(plan).formula }];
  return plan.leaves.map((leaf) => {
    const { fromNs, toNs, matchers, stages } = leaf;
    const log = { kind: "log" as const, matchers, stages };
    return { fromNs, toNs, log, formula: startMetricScan(leaf).formula };
  });
}

async function heldIn(
  { fromNs, toNs, log: { matchers } }: PlanPart,
  lists: Lists,
  context: QueryContext,
): Promise<IndexStats> {
  if (fromNs >= toNs) return { streams: 0, chunks: 0, blockBytes: 0, bytes: 0, entries: 0 };
  return lists.indexStats({ fromNs, toNs, matchers }, context);
}

function partOf(part: PlanPart, scan: ExplainedScan, held: IndexStats): ExplainedPart {
  const { streams, entries, bytes, chunks } = held;
  const { blocksToRead, sources } = scan;
  const bytesToRead = Math.min(scan.bytes, held.blockBytes);
  return {
    selector: printQuery({ ...part.log, stages: [] }),
    ...{ streams, entries, bytes, segments: sources, blocks: Math.max(chunks, scan.blocks) },
    ...{ blocksToRead, bytesToRead },
    answeredBy: blocksToRead === 0 && bytesToRead === 0 ? "headers" : "scan",
    needles: part.formula === undefined ? [] : [...new Set(needlesIn(part.formula))],
  };
}

function needlesIn(formula: NeedleFormula): string[] {
  switch (formula.kind) {
    case "text":
      return [Buffer.from(formula.text).toString()];
    case "value":
      return [`${formula.name}=${Buffer.from(formula.value).toString()}`];
    default:
      return formula.of.flatMap(needlesIn);
  }
}
