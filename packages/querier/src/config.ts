import { field, grpcClientBlock } from "@skald/runtime/config";

/** `querier`: how queries are answered. */
export const querierConfig = field.section("Answers queries from ingesters and object store.", {
  tail_max_duration: field.duration(
    "1h",
    "time after which a tail is closed",
    "querier.tail-max-duration",
  ),
  query_ingesters_within: field.duration(
    "3h",
    "age up to which ingesters of a ring are asked, unless they hold older rows; 0: always",
    "querier.query-ingesters-within",
  ),
  max_concurrent: field.integer(
    4,
    "large queries that are merged and evaluated at a time, each on a thread of its own, at most one a core and at least two; small ones never wait for them",
    "querier.max-concurrent",
    { min: 1 },
  ),
  max_query_memory: field.size(
    "0B",
    "memory that all queries may hold together; one that needs more is refused as too many requests, and large ones wait while half of it is held; the large ones of one tenant hold half of it while others have queries; 0: an eighth of what the process has, at most 384 MiB",
    "querier.max-query-memory",
  ),
  multi_tenant_queries_enabled: field.toggle(
    false,
    "answer queries over several tenants, written a|b",
    "querier.multi-tenant-queries-enabled",
  ),
});

/** `frontend_worker`: where a querier gets its work. */
export const frontendWorkerConfig = field.section("Where a querier gets its work.", {
  scheduler_address: field.text(
    "",
    "query schedulers: host and port, or a name with dns+ or dnssrv+; with commas several",
    "querier.scheduler-address",
  ),
  dns_lookup_duration: field.duration(
    "3s",
    "pause between look-ups of the address",
    "querier.dns-lookup-period",
    { min: 1 },
  ),
  query_scheduler_grpc_client: grpcClientBlock("querier.scheduler-grpc-client"),
});
