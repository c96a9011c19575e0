import type { z } from "zod";
import * as field from "./field.js";

/** Where a ring keeps its members. The flags are those of the ring, which is named by the prefix. */
export function kvStore(prefix: string, options: { keyPrefix: string }) {
  return field.section("Where the members of the ring are kept.", {
    store: field.choice(
      "inmemory",
      ["inmemory", "memberlist", "consul", "etcd", "multi", "redis"],
      "kind of store: redis, or inmemory for one process; the others are taken for inmemory",
      `${prefix}.store`,
    ),
    prefix: field.text(options.keyPrefix, "start of the keys", `${prefix}.prefix`),
    redis: redisBlock(`${prefix}.redis`),
  });
}

/** Where Redis is; the keys are those of the caches' Redis where they mean the same. */
function redisBlock(prefix: string) {
  return field.section("Where Redis is.", {
    endpoint: field.text(
      "",
      "host and port; with commas several: nodes of a Cluster, or Sentinels",
      `${prefix}.endpoint`,
    ),
    master_name: field.text("", "name of the master, with Sentinels", `${prefix}.master-name`),
    cluster: field.toggle(false, "one endpoint is a Cluster too", `${prefix}.cluster`),
    timeout: field.duration("2s", "time limit of a command", `${prefix}.timeout`, { min: 1 }),
    db: field.integer(0, "number of the database", `${prefix}.db`),
    username: field.text("", "user", `${prefix}.username`),
    password: field.secret("password", `${prefix}.password`),
    sentinel_username: field.text("", "user of the Sentinels", `${prefix}.sentinel-username`),
    sentinel_password: field.secret("password of the Sentinels", `${prefix}.sentinel-password`),
    ...tlsClientFields(prefix),
  });
}

/** What is said about a ring beside its defaults. */
export interface RingBlockOptions {
  readonly heartbeatPeriod?: string;
  readonly keyPrefix?: string;
}

/** The ring of a component, all of whose flags start with the prefix; `more` are the keys that not every ring has. */
export function ringBlock<S extends z.core.$ZodLooseShape>(
  prefix: string,
  more: S,
  { heartbeatPeriod = "15s", keyPrefix = "collectors/" }: RingBlockOptions = {},
) {
  return field.section("The ring by which instances of the component find each other.", {
    kvstore: kvStore(prefix, { keyPrefix }),
    heartbeat_period: field.duration(
      heartbeatPeriod,
      "pause between heartbeats; 0: none",
      `${prefix}.heartbeat-period`,
    ),
    heartbeat_timeout: field.duration(
      "1m",
      "age of a heartbeat from which its instance is unhealthy; 0: never",
      `${prefix}.heartbeat-timeout`,
    ),
    instance_id: field.text("", "name in the ring; empty: the host name", `${prefix}.instance-id`),
    instance_interface_names: field.list(
      [],
      "network interfaces of which one gives the address; empty: private ones",
      `${prefix}.instance-interface-names`,
    ),
    instance_port: field.integer(
      0,
      "port told to others; 0: grpc_listen_port",
      `${prefix}.instance-port`,
      { max: 65_535 },
    ),
    instance_addr: field.text("", "address told to others", `${prefix}.instance-addr`),
    instance_availability_zone: field.text("", "zone", `${prefix}.instance-availability-zone`),
    instance_enable_ipv6: field.toggle(
      false,
      "allow an IPv6 address",
      `${prefix}.instance-enable-ipv6`,
    ),
    ...more,
  });
}

/** Keys of a ring that gives each key an owner. */
export function tokenFields(prefix: string) {
  return {
    tokens_file_path: field.text(
      "",
      "file that keeps the tokens over restarts",
      `${prefix}.tokens-file-path`,
    ),
    num_tokens: field.integer(128, "tokens of an instance", `${prefix}.num-tokens`),
  };
}

/** How an ingester lives in its ring. The prefixes start the flags of the ring and of the member; `copies` adds keys to the ring. */
export function lifecyclerBlock<S extends z.core.$ZodLooseShape>(
  prefixes: { readonly ring: string; readonly member: string },
  copies: S,
) {
  const { ring, member } = prefixes;
  return field.section("The life of an instance in its ring.", {
    ring: field.section("The ring.", {
      kvstore: kvStore(ring, { keyPrefix: "collectors/" }),
      heartbeat_timeout: field.duration(
        "1m",
        "age of a heartbeat from which its instance is unhealthy; 0: never",
        `${ring}.heartbeat-timeout`,
      ),
      ...copies,
    }),
    num_tokens: field.integer(128, "tokens of an instance", `${member}num-tokens`),
    heartbeat_period: field.duration(
      "5s",
      "pause between heartbeats; 0: none",
      `${member}heartbeat-period`,
    ),
    interface_names: field.list(
      [],
      "network interfaces of which one gives the address; empty: private ones",
      `${member}lifecycler.interface`,
    ),
    enable_inet6: field.toggle(false, "allow an IPv6 address", `${member}enable-inet6`),
    tokens_file_path: field.text(
      "",
      "file that keeps the tokens over restarts",
      `${member}tokens-file-path`,
    ),
    availability_zone: field.text("", "zone", `${member}availability-zone`),
    unregister_on_shutdown: field.toggle(
      true,
      "leave the ring at the end",
      `${member}unregister-on-shutdown`,
    ),
    address: field.text("", "address told to others", `${member}lifecycler.addr`),
    port: field.integer(0, "port told to others", `${member}lifecycler.port`, { max: 65_535 }),
    id: field.text(
      "",
      "name of the instance, part of the names of segments; empty: the host name",
      `${member}lifecycler.ID`,
    ),
  });
}

/** How a service calls another one; the flags start with the prefix. */
export function grpcClientBlock(prefix: string) {
  return field.section("How calls are made.", {
    max_recv_msg_size: field.size("100MB", "largest answer", `${prefix}.grpc-max-recv-msg-size`),
    max_send_msg_size: field.size("100MB", "largest request", `${prefix}.grpc-max-send-msg-size`),
    ...tlsClientFields(prefix),
    connect_timeout: field.duration("5s", "time limit to connect", `${prefix}.connect-timeout`),
    connect_backoff_base_delay: field.duration(
      "1s",
      "first pause between connects",
      `${prefix}.connect-backoff-base-delay`,
    ),
    connect_backoff_max_delay: field.duration(
      "5s",
      "longest pause between connects",
      `${prefix}.connect-backoff-max-delay`,
    ),
    initial_stream_window_size: field.size(
      "65535",
      "window of a stream",
      `${prefix}.initial-stream-window-size`,
    ),
    keepalive_time: field.duration("20s", "pause between pings", `${prefix}.keepalive-time`),
    keepalive_timeout: field.duration(
      "10s",
      "time that an answer to a ping may take",
      `${prefix}.keepalive-timeout`,
    ),
    cluster_validation: field.section("Refusal of calls from other clusters.", {
      label: field.text("", "name of the cluster", `${prefix}.cluster-validation.label`),
    }),
  });
}

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

/** TLS of a client, as keys among those of the client. */
export function tlsClientFields(prefix: string) {
  return {
    tls_enabled: field.toggle(false, "speak TLS", `${prefix}.tls-enabled`),
    ...certificateFields(prefix),
    tls_cipher_suites: field.text("", "ciphers", `${prefix}.tls-cipher-suites`),
    tls_min_version: field.text("", "oldest version", `${prefix}.tls-min-version`),
  };
}

/** Certificates of a client, and which ones it trusts. */
export function certificateFields(prefix: string) {
  return {
    tls_cert_path: field.text("", "certificate of the client", `${prefix}.tls-cert-path`),
    tls_key_path: field.text("", "its key", `${prefix}.tls-key-path`),
    tls_ca_path: field.text("", "authorities that are trusted", `${prefix}.tls-ca-path`),
    tls_server_name: field.text(
      "",
      "name expected in the certificate",
      `${prefix}.tls-server-name`,
    ),
    tls_insecure_skip_verify: field.toggle(
      false,
      "accept any certificate",
      `${prefix}.tls-insecure-skip-verify`,
    ),
  };
}

/** TLS of a listener. */
export function tlsServerBlock(prefix: string) {
  return field.section("TLS.", {
    cert: field.text("", "certificate, as PEM text"),
    key: field.secret("its key, as PEM text"),
    client_ca: field.text("", "authorities of clients, as PEM text"),
    cert_file: field.text("", "file with the certificate", `${prefix}-tls-cert-path`),
    key_file: field.text("", "file with its key", `${prefix}-tls-key-path`),
    client_auth_type: field.text(
      "",
      "NoClientCert, RequestClientCert, RequireAnyClientCert, VerifyClientCertIfGiven or RequireAndVerifyClientCert",
      `${prefix}-tls-client-auth`,
    ),
    client_ca_file: field.text("", "file with authorities of clients", `${prefix}-tls-ca-path`),
  });
}
