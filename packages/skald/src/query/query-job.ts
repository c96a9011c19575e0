import type { ScheduledCall } from "@skald/contracts";
import type { QueryEndpoint, QueryRouteOptions, QueryTenantLimits } from "@skald/frontend";
import type { MemoryShareRef } from "@skald/runtime";
import type { KeptKinds } from "./kept-results.js";

/** A request to the query API as it goes to a query thread; plain data. */
export interface QueryJob {
  readonly endpoint: QueryEndpoint;
  readonly method: string;
  readonly path: string;
  readonly variables: Readonly<Record<string, string>>;
  /** Only those that endpoints look at. */
  readonly headers: Readonly<Record<string, string>>;
  /** As in a query string. */
  readonly params: string;
  /** Of all tenants that it asks about, together. */
  readonly limits: QueryTenantLimits;
  readonly options: QueryRouteOptions;
  /** Rows of these tenants were deleted that may still be stored. */
  readonly hidesRows: boolean;
  /** By tenant, what changes with its delete requests. */
  readonly deletes: ReadonlyMap<string, string>;
  /** What the query takes of the memory of all queries. */
  readonly memory: MemoryShareRef;
  /** Scans that run at the same time. */
  readonly threads: number;
  /** When it was handed over, ns by the clock of the process. */
  readonly sentNs: bigint;
  /** Bytes that the query may cost, by estimate; when it costs more nothing is scanned and the reply says so. */
  readonly maxCost?: number;
  /** Where answers are kept that this one may be made of. */
  readonly kept: KeptKinds;
  /** Set where a scheduler has queriers answer: this process only plans and encodes. */
  readonly isScheduled?: boolean;
}

/** A call that was taken from a scheduler, as it goes to a query thread. */
export interface CallJob
  extends Pick<QueryJob, "hidesRows" | "deletes" | "memory" | "threads" | "maxCost"> {
  readonly call: ScheduledCall;
}

/** How such a job ends: with the answer's bytes, or with what the call would cost. */
export type CallReply =
  | { readonly kind: "answer"; readonly body: Uint8Array }
  | { readonly kind: "too_heavy"; readonly cost: number };

/** What an answer begins with. */
export interface AnswerHead {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
}

/**
 * How a job ends: with a whole answer, with the end of one whose head and pieces were handed over by the calls `head`
 * and `write`, or with what the query would cost.
 */
export type QueryReply =
  | ({ readonly kind: "answer"; readonly body?: string | Uint8Array } & AnswerHead)
  | { readonly kind: "written" }
  | { readonly kind: "too_heavy"; readonly cost: number };

/** A segment that a query found damaged, by its file or key. */
export interface DamagedSegment {
  readonly segment: string;
  readonly reason: string;
}

/** What changes with the delete requests of some tenants; those that have none are left out. */
export function deletesOfAll(
  tenants: readonly string[],
  deletesOf: (tenant: string) => string = () => "",
): Map<string, string> {
  const found = tenants.map((tenant) => [tenant, deletesOf(tenant)] as const);
  return new Map(found.filter(([, text]) => text !== ""));
}
