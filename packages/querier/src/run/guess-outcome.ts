import type { ScanPlan } from "@skald/contracts";
import type { LeafPlan } from "@skald/logql";

/** Of the bytes of lines that a scan reads, those that it finds if each row has labels of its own, roughly. */
const foundShare = 1 / 2;
/** Of a row of an answer, roughly. */
const rowBytes = 1024;

/** How large the outcome of a scan may be, in bytes, by its plan and the bytes of lines that it may read. */
export function guessOutcome(plan: ScanPlan, taskBytes: number): number {
  if ("log" in plan) return Math.min(taskBytes, plan.limit * rowBytes);
  return readsHeaders(plan) ? 0 : taskBytes * foundShare;
}

/** True when a leaf counts rows or bytes of streams, as headers do. */
export function countsHeaders(leaf: LeafPlan): boolean {
  return readsHeaders(leaf) && (leaf.mode === "count" || leaf.mode === "bytes");
}

/** True when the rows of a leaf are counted by headers, most of them at least: what it finds is as little as they are. */
export function readsHeaders({ stages, unwrap }: LeafPlan): boolean {
  return stages.length === 0 && unwrap === undefined;
}
