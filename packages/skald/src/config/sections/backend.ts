import { field, ringBlock } from "@skald/runtime/config";

/** `query_scheduler`: the queue between query frontends and queriers. */
export const querySchedulerConfig = field.section(
  "Queues queries between frontends and queriers.",
  {
    max_outstanding_requests_per_tenant: field.integer(
      32_000,
      "queries of a tenant that may wait; more are answered with 429",
      "query-scheduler.max-outstanding-requests-per-tenant",
      { min: 1 },
    ),
    max_queue_hierarchy_levels: field.integer(
      3,
      "depth of the header X-Service-Actor-Path; 0: not looked at",
      "query-scheduler.max-queue-hierarchy-levels",
    ),
    use_scheduler_ring: field.toggle(
      false,
      "find schedulers by a ring; default true when no address is set",
      "query-scheduler.use-scheduler-ring",
    ),
    scheduler_ring: ringBlock("query-scheduler.ring", {}),
  },
);

/** `index_gateway`: answers which data there is. */
export const indexGatewayConfig = field.section("Answers which data there is.", {
  mode: field.choice(
    "simple",
    ["simple", "ring"],
    "how they are found: by server_address, or by the ring",
    "index-gateway.mode",
  ),
  ring: ringBlock("index-gateway.ring", {
    replication_factor: field.integer(
      3,
      "gateways that a tenant's calls go to",
      "index-gateway.ring.replication-factor",
      { min: 1 },
    ),
  }),
});
