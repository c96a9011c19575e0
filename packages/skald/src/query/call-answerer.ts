import type { CallOptions, ScheduledCall } from "@skald/contracts";
import type { QueryLanes } from "@skald/querier";
import { beginServed, isTracing, parseTraceparent, runSpan } from "@skald/runtime/tracing";
import type { CallReply } from "./query-worker.js";

/** Answers calls that were taken from a scheduler on query threads, each in the trace of its caller. */
export function callAnswerer(
  lanes: Pick<QueryLanes, "run">,
): (call: ScheduledCall, options: CallOptions) => Promise<Uint8Array> {
  const answer = async (call: ScheduledCall, { signal }: CallOptions): Promise<Uint8Array> => {
    const { tenant, actors } = call;
    const options = { tenants: tenant.split("|"), actors, signal };
    return (await lanes.run<CallReply>("call", { call }, options)).body;
  };
  return (call, options) => {
    const parent = isTracing() ? parseTraceparent(call.traceparent, call.tracestate) : undefined;
    if (parent === undefined) return answer(call, options);
    const attributes = { tenant: call.tenant };
    const span = beginServed(`scheduled ${call.method}`, { attributes }, parent);
    return runSpan(span, () => answer(call, options));
  };
}
