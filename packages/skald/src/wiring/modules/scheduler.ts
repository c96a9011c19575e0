import { remoteScheduler, serveScheduler } from "@skald/contracts/grpc";
import { Service } from "@skald/runtime";
import { Scheduler, takeCalls } from "@skald/scheduler";
import { connectionOptionsOf } from "@skald/transport/grpc";
import { CallThreads } from "../../query/call-threads.js";
import type { BuiltModule, ModuleContext, Parts } from "./module.js";

/** The queue between frontends and queriers of other processes. */
export function buildScheduler({ server }: Parts, { config, metrics }: ModuleContext): BuiltModule {
  const { max_outstanding_requests_per_tenant, max_queue_hierarchy_levels } =
    config.query_scheduler;
  if (server === undefined) return {};
  const scheduler = new Scheduler({
    maxOutstandingPerTenant: max_outstanding_requests_per_tenant,
    maxLevels: max_queue_hierarchy_levels,
    metrics,
  });
  serveScheduler(server, scheduler);
  return { service: new Service({ name: "query-scheduler", stop: async () => scheduler.stop() }) };
}

/** Answers what frontends of other processes ask, through the scheduler that is configured. */
export function buildCallTaker(
  { connections, queries }: Parts,
  { config, log }: ModuleContext,
): BuiltModule {
  const { scheduler_address, query_scheduler_grpc_client } = config.frontend_worker;
  const options = connectionOptionsOf("", query_scheduler_grpc_client);
  if (scheduler_address === "") return {};
  const scheduler = remoteScheduler(connections.to(scheduler_address, options));
  const threads = new CallThreads(queries);
  const service = new Service({
    name: "call-taker",
    run: (signal) =>
      takeCalls({
        ...{ scheduler, signal, width: config.querier.max_concurrent },
        answer: (call, callOptions) => threads.answer(call, callOptions),
        onState: (error) => {
          if (error === undefined) log.info("calls are taken from the scheduler");
          else log.warn("the scheduler cannot be reached", { error });
        },
      }),
  });
  return { service };
}
