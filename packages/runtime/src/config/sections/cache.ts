import * as field from "../field.js";

/** A cache in the process or in Redis. The flags start with the prefix. */
export function cacheBlock(prefix: string) {
  return field.section("The cache.", {
    default_validity: field.duration("1h", "time to keep", `${prefix}.default-validity`),
    redis: redis(prefix),
    embedded_cache: field.section("A cache in the process.", {
      enabled: field.toggle(false, "use it", `${prefix}.embedded-cache.enabled`),
      max_size_mb: field.integer(100, "its size in MB", `${prefix}.embedded-cache.max-size-mb`),
      max_size_items: field.integer(
        0,
        "its entries; 0: no limit",
        `${prefix}.embedded-cache.max-size-items`,
      ),
      ttl: field.duration("1h", "time to keep", `${prefix}.embedded-cache.ttl`),
    }),
  });
}

function redis(prefix: string) {
  const flag = (name: string): string => `${prefix}.redis.${name}`;
  return field.section("Where Redis is.", {
    endpoint: field.text("", "host and port; several with commas", flag("endpoint")),
    master_name: field.text("", "name of the master, with Sentinel", flag("master-name")),
    timeout: field.duration("500ms", "time limit of a request", flag("timeout")),
    expiration: field.duration("0s", "time to keep", flag("expiration")),
    db: field.integer(0, "number of the database", flag("db")),
    username: field.text("", "user", flag("username")),
    password: field.secret("password", flag("password")),
    tls_enabled: field.toggle(false, "speak TLS", flag("tls-enabled")),
    tls_insecure_skip_verify: field.toggle(
      false,
      "accept any certificate",
      flag("tls-insecure-skip-verify"),
    ),
  });
}
