import { type Scheduler as Contract, scheduledQuerier } from "@skald/contracts";
import { connectionOptionsOf, remoteScheduler, serveQuerier, serveScheduler } from "@skald/rpc";
import { Service } from "@skald/runtime";
import { LaneWidth, Scheduler, takeCalls } from "@skald/scheduler";
import type { BuiltModule, ModuleContext, Parts } from "../module.js";
import type { Peer } from "../peers.js";
import { followPeers } from "../peers.js";
import { forPeer, schedulerBook } from "./peers.js";

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

/** Answers what frontends of other processes ask, through all schedulers that are known. */
export function buildCallTaker(parts: Parts, { config, log }: ModuleContext): BuiltModule {
  const { connections, lanes, server } = parts;
  const { scheduler_address, dns_lookup_duration, query_scheduler_grpc_client } =
    config.frontend_worker;
  const options = connectionOptionsOf("", query_scheduler_grpc_client);
  const named = { text: scheduler_address, periodMs: dns_lookup_duration };
  const book = schedulerBook(parts, { config, log }, named);
  if (book === undefined) return {};
  if (server !== undefined) {
    const run: Contract["run"] = async (call, callOptions) => ({
      body: await lanes.answerCall(call, callOptions),
      queueSeconds: 0,
    });
    serveQuerier(
      server,
      scheduledQuerier(() => ({ run })),
    );
  }
  const width = new LaneWidth(config.querier.max_concurrent);
  const take = async (peer: Peer, signal: AbortSignal) => {
    const scheduler = remoteScheduler(connections.to(peer.address, forPeer(options, peer)));
    const facts = { scheduler: peer.address };
    await takeCalls({
      ...{ scheduler, signal, width },
      answer: (call, callOptions) => lanes.answerCall(call, callOptions),
      onState: (error) => {
        if (error === undefined) log.info("calls are taken from the scheduler", facts);
        else log.warn("the scheduler cannot be reached", { ...facts, error });
      },
    });
  };
  const service = new Service({
    name: "call-taker",
    run: (signal) =>
      followPeers(book, take, { signal, onCount: (peers) => width.shareAmong(peers) }),
  });
  return { service };
}
