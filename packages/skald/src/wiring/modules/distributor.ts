import { createDistributorMetrics, Distributor, PushDoor } from "@skald/distributor";
import type { RawPush } from "@skald/kernels";
import { systemClock } from "@skald/model";
import type { DoorPush } from "@skald/push";
import { serveDistributor } from "@skald/rpc";
import { Service } from "@skald/runtime";
import { agentRoutes, doorRoutes } from "../../http/door-routes.js";
import { pushRoutes } from "../../http/push-routes.js";
import { ringRoutes } from "../../http/ring-routes.js";
import { userStatsRoutes } from "../../http/tenant-routes.js";
import {
  type BuiltModule,
  isCluster,
  type ModuleContext,
  type Parts,
  tenancyOf,
} from "../module.js";
import { buildOtlpDoors } from "../otlp-doors.js";
import { buildServiceRing } from "../rings.js";
import { buildSyslog } from "../syslog.js";

/** Takes pushes and hands them to ingesters. */
export function buildDistributor(parts: Parts, context: ModuleContext): BuiltModule {
  const { config, log, metrics } = context;
  const { ledger, limits, pool, pushTargetWith, sampler, server } = parts;
  const own = buildServiceRing("distributor", config.distributor.ring, context);
  const counters = createDistributorMetrics(metrics);
  const { replication_factor } = config.ingester.lifecycler.ring;
  const copies = isCluster(config) ? replication_factor : 1;
  metrics.gauge("distributor_replication_factor", "Ingesters that get each stream.").set(copies);
  const distributor = new Distributor({
    ingester: pushTargetWith(counters),
    ...(isCluster(config) ? {} : { ingesterName: "all" }),
    distributorCount: () => own.ring.view.activeCount,
    limitsOf: (tenant) => limits.of(tenant),
    metrics: counters,
    clock: systemClock,
    otlpIndexLabels: config.distributor.otlp_config.default_resource_attributes_as_index_labels,
    maxDecompressedBytes: config.distributor.max_decompressed_size,
    decodeInWorker: (tenant, input, maxBytes) => {
      const share = { tenant, actors: [], cost: input.body.length };
      return pool.run<RawPush>("decode_push", { input, maxBytes }, { lane: "decode", share });
    },
    decodeRecordsInWorker: (tenant, input, maxBytes, movesBody) => {
      const share = { tenant, actors: [], cost: input.body.length };
      // A message takes along all of the memory that a body is a part of.
      const body = movesBody ? input.body : new Uint8Array(input.body);
      const job = { input: { ...input, body }, maxBytes };
      const transfer = [body.buffer as ArrayBuffer];
      return pool.run<DoorPush>("decode_records", job, { lane: "decode", share, transfer });
    },
    ...(sampler === undefined ? {} : { onStored: (push) => sampler.note(push) }),
    onFailure: (error, tenant) => log.error("push failed", { tenant, error }),
  });
  if (server !== undefined) serveDistributor(server, distributor);
  const maxReceivedBytes = config.distributor.max_recv_msg_size;
  const door = new PushDoor({ distributor, maxReceivedBytes, ledger });
  const otlp = buildOtlpDoors(parts, context, door);
  const syslog = buildSyslog(parts, context, distributor);
  const service = new Service({
    name: "distributor",
    start: async (signal) => {
      await own.start();
      await own.join(signal);
      await otlp.start();
      await syslog?.start();
    },
    stop: async () => {
      await otlp.stop();
      await sampler?.close();
      await own.stop();
    },
  });
  return {
    service,
    ...(syslog === undefined ? {} : { closeDoors: () => syslog.stop() }),
    unready: () => own.ring.unready,
    complaint: () => otlp.complaint(),
    rawRoutes: new Map([
      ...pushRoutes(door, tenancyOf(config)),
      ...doorRoutes({ door, limitsOf: (tenant) => limits.of(tenant) }, tenancyOf(config)),
    ]),
    routes: [
      ...agentRoutes(),
      ...ringRoutes({ path: "/distributor/ring", title: "Distributor ring", ring: own.ring }),
      ...userStatsRoutes(metrics, systemClock),
    ],
  };
}
