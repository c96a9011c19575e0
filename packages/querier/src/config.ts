import { byScheduler, field, grpcClientBlock } from "@skald/runtime/config";

const askBoth = "ingesters and object store are always asked";
const queryTimeout = "use limits_config.query_timeout instead";
const maxConcurrent = "use querier.max_concurrent instead";

/** `querier`: how queries are answered. */
export const querierConfig = field.section(
  "Answers queries from ingesters and object store.",
  {
    tail_max_duration: field.duration(
      "1h",
      "time after which a tail is closed",
      "querier.tail-max-duration",
    ),
    extra_query_delay: field.duration(
      "0s",
      "time after which further ingesters are asked",
      "querier.extra-query-delay",
      { unused: "all replicas are asked at once" },
    ),
    query_ingesters_within: field.duration(
      "3h",
      "age up to which ingesters of a ring are asked, unless they hold older rows; 0: always",
      "querier.query-ingesters-within",
    ),
    engine: field.section(
      "The query engine.",
      {
        max_look_back_period: field.duration(
          "30s",
          "how far an instant log query looks back",
          "querier.engine.max-lookback-period",
          { unused: "instant log queries are not answered" },
        ),
        max_count_min_sketch_heap_size: field.integer(
          10_000,
          "labels that approx_topk keeps",
          "querier.engine.max-count-min-sketch-heap-size",
          { unused: "approx_topk is answered exactly" },
        ),
      },
      { ignored: { timeout: queryTimeout } },
    ),
    max_concurrent: field.integer(
      4,
      "large queries that are merged and evaluated at a time, each on a thread of its own, at most one a core and at least two; small ones never wait for them",
      "querier.max-concurrent",
      { min: 1 },
    ),
    max_query_memory: field.size(
      "0B",
      "memory that all queries may hold together; one that needs more is refused as too many requests, and large ones wait while half of it is held; 0: an eighth of what the process has, at most 384 MiB",
      "querier.max-query-memory",
    ),
    query_store_only: field.toggle(false, "do not ask ingesters", "querier.query-store-only", {
      unused: askBoth,
    }),
    query_ingester_only: field.toggle(
      false,
      "do not ask the object store",
      "querier.query-ingester-only",
      { unused: askBoth },
    ),
    multi_tenant_queries_enabled: field.toggle(
      false,
      "answer queries over several tenants, written a|b",
      "querier.multi-tenant-queries-enabled",
    ),
    per_request_limits_enabled: field.toggle(
      false,
      "apply the limits of the header X-Loki-Query-Limits",
      "querier.per-request-limits-enabled",
      { unused: "the header is not looked at yet" },
    ),
    query_partition_ingesters: field.toggle(
      false,
      "ask ingesters by partition",
      "querier.query-partition-ingesters",
      { unused: "streams are placed by tokens" },
    ),
  },
  { ignored: { query_timeout: queryTimeout } },
);

/** `frontend_worker`: where a querier gets its work. */
export const frontendWorkerConfig = field.section(
  "Where a querier gets its work.",
  {
    frontend_address: field.text("", "a query frontend", "querier.frontend-address"),
    scheduler_address: field.text(
      "",
      "query schedulers: host and port, or a name with dns+ or dnssrv+; with commas several",
      "querier.scheduler-address",
      {
        used: true,
      },
    ),
    dns_lookup_duration: field.duration(
      "3s",
      "pause between look-ups of the address",
      "querier.dns-lookup-period",
      { min: 1, used: true },
    ),
    id: field.text("", "name of the querier; empty: the host name", "querier.id"),
    grpc_client_config: grpcClientBlock("querier.frontend-client"),
    query_frontend_grpc_client: grpcClientBlock("querier.frontend-grpc-client"),
    query_scheduler_grpc_client: grpcClientBlock("querier.scheduler-grpc-client", { used: true }),
  },
  {
    unused: byScheduler,
    ignored: { parallelism: maxConcurrent, match_max_concurrent: maxConcurrent },
  },
);
