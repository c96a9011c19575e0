import * as field from "../field.js";
import { tlsClientFields } from "./tls.js";

const cachesOf =
  "answers are kept in memory or Redis, segments as storage_config.segment_cache says";
const old = "use embedded_cache instead";

/** A cache: in the process, in memcached or in Redis; what speaks of the first and the last is used or not. The flags start with the prefix. */
export function cacheBlock(prefix: string, { used = false } = {}) {
  const use = used ? { used: true } : {};
  return field.section(
    "The cache.",
    {
      default_validity: field.duration("1h", "time to keep", `${prefix}.default-validity`, use),
      background: field.section("Writes behind the answer.", {
        writeback_goroutines: field.integer(
          1,
          "writes at a time",
          `${prefix}.background.write-back-concurrency`,
        ),
        writeback_buffer: field.integer(
          500_000,
          "writes that may wait",
          `${prefix}.background.write-back-buffer`,
        ),
        writeback_size_limit: field.size(
          "500MB",
          "bytes that may wait",
          `${prefix}.background.write-back-size-limit`,
        ),
      }),
      memcached: field.section("Use of memcached.", {
        expiration: field.duration("0s", "time to keep", `${prefix}.memcached.expiration`),
        batch_size: field.integer(4, "keys in a request", `${prefix}.memcached.batchsize`),
        parallelism: field.integer(5, "requests at a time", `${prefix}.memcached.parallelism`),
      }),
      memcached_client: memcachedClient(prefix),
      redis: redis(prefix, used),
      embedded_cache: field.section("A cache in the process.", {
        enabled: field.toggle(false, "use it", `${prefix}.embedded-cache.enabled`, use),
        max_size_mb: field.integer(
          100,
          "its size in MB",
          `${prefix}.embedded-cache.max-size-mb`,
          use,
        ),
        max_size_items: field.integer(
          0,
          "its entries; 0: no limit",
          `${prefix}.embedded-cache.max-size-items`,
          use,
        ),
        ttl: field.duration("1h", "time to keep", `${prefix}.embedded-cache.ttl`, use),
      }),
    },
    { unused: cachesOf, ignored: { fifocache: old, enable_fifocache: old } },
  );
}

function memcachedClient(prefix: string) {
  const flag = (name: string): string => `${prefix}.memcached.${name}`;
  return field.section("Where memcached is.", {
    host: field.text("", "name that resolves to all servers", flag("hostname")),
    service: field.text("memcached", "name of the port in DNS", flag("service")),
    addresses: field.text("", "servers, with dns+ or dnssrv+ before names", flag("addresses")),
    timeout: field.duration("100ms", "time limit of a request", flag("timeout")),
    max_idle_conns: field.integer(16, "idle connections of a server", flag("max-idle-conns")),
    max_item_size: field.size("0B", "largest value; 0: no limit", flag("max-item-size")),
    update_interval: field.duration(
      "1m",
      "pause between look-ups of names",
      flag("update-interval"),
    ),
    consistent_hash: field.toggle(true, "keep keys on their servers", flag("consistent-hash")),
    circuit_breaker_consecutive_failures: field.integer(
      10,
      "failures after which a server is left alone",
      flag("circuit-breaker-consecutive-failures"),
    ),
    circuit_breaker_timeout: field.duration(
      "10s",
      "time for which it is left alone",
      flag("circuit-breaker-timeout"),
    ),
    circuit_breaker_interval: field.duration(
      "10s",
      "time after which failures are forgotten",
      flag("circuit-breaker-interval"),
    ),
    ...tlsClientFields(`${prefix}.memcached`),
  });
}

function redis(prefix: string, used: boolean) {
  const use = used ? { used: true } : {};
  const flag = (name: string): string => `${prefix}.redis.${name}`;
  return field.section("Where Redis is.", {
    endpoint: field.text("", "host and port; several with commas", flag("endpoint"), use),
    master_name: field.text("", "name of the master, with Sentinel", flag("master-name"), use),
    timeout: field.duration("500ms", "time limit of a request", flag("timeout"), use),
    expiration: field.duration("0s", "time to keep", flag("expiration"), use),
    db: field.integer(0, "number of the database", flag("db"), use),
    pool_size: field.integer(0, "connections", flag("pool-size")),
    username: field.text("", "user", flag("username"), use),
    password: field.secret("password", flag("password"), use),
    tls_enabled: field.toggle(false, "speak TLS", flag("tls-enabled"), use),
    tls_insecure_skip_verify: field.toggle(
      false,
      "accept any certificate",
      flag("tls-insecure-skip-verify"),
      use,
    ),
    idle_timeout: field.duration(
      "0s",
      "time after which idle connections end",
      flag("idle-timeout"),
    ),
    max_connection_age: field.duration(
      "0s",
      "age at which connections end",
      flag("max-connection-age"),
    ),
    route_randomly: field.toggle(false, "spread reads over replicas", flag("route-randomly")),
  });
}
