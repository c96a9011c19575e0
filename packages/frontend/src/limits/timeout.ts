import { SkaldError } from "@skald/model";
import { deadline } from "@skald/runtime";
import type { QueryTenantLimits } from "./limits.js";

/** Does what has to end within `query_timeout` of a tenant; throws deadline_exceeded when it does not. */
export async function withTimeout<T>(
  limits: QueryTenantLimits,
  signal: AbortSignal,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const message =
    "request timed out, decrease the duration of the request or add more label matchers (prefer exact match over regex match) to reduce the amount of data processed";
  const bounded = deadline({ timeoutMs: limits.query_timeout, message, signal });
  try {
    return await work(bounded.signal);
  } catch (error) {
    const reason: unknown = bounded.signal.reason;
    if (bounded.signal.aborted && reason instanceof SkaldError) throw reason;
    throw error;
  } finally {
    bounded.clear();
  }
}
