import type { z } from "zod";
import * as field from "./field.js";

/** Where a ring keeps its members. The prefix starts the flags of the ring. */
function kvStore(prefix: string, options: { keyPrefix: string }) {
  return field.section(
    "Where the members of the ring are kept.",
    {
      store: field.choice(
        "inmemory",
        ["inmemory", "memberlist", "consul", "etcd", "multi", "redis"],
        "kind of store: redis, or inmemory for one process; the others are taken for inmemory",
      ),
      prefix: field.text(options.keyPrefix, "start of the keys"),
      redis: field.section("Where Redis is.", {
        endpoint: field.text(
          "",
          "host and port; with commas several: nodes of a Cluster, or Sentinels",
        ),
        master_name: field.text("", "name of the master, with Sentinels"),
        cluster: field.toggle(false, "one endpoint is a Cluster too"),
        timeout: field.duration("2s", "time limit of a command", { min: 1 }),
        db: field.integer(0, "number of the database"),
        username: field.text("", "user"),
        password: field.secret("password"),
        sentinel_username: field.text("", "user of the Sentinels"),
        sentinel_password: field.secret("password of the Sentinels"),
        ...tlsClientFields(`${prefix}.redis`),
      }),
    },
    `${prefix}.`,
  );
}

/** Defaults that differ from ring to ring. */
interface RingBlockOptions {
  readonly heartbeatPeriod?: string;
  readonly keyPrefix?: string;
}

/** The ring of a component. The prefix starts its flags; `more` are keys that not every ring has. */
export function ringBlock<S extends z.core.$ZodLooseShape>(
  prefix: string,
  more: S,
  { heartbeatPeriod = "15s", keyPrefix = "collectors/" }: RingBlockOptions = {},
) {
  return field.section(
    "The ring by which instances of the component find each other.",
    {
      kvstore: kvStore(prefix, { keyPrefix }),
      heartbeat_period: field.duration(heartbeatPeriod, "pause between heartbeats; 0: none"),
      heartbeat_timeout: field.duration(
        "1m",
        "age of a heartbeat from which its instance is unhealthy; 0: never",
      ),
      instance_id: field.text("", "name in the ring; empty: the host name"),
      instance_interface_names: field.list(
        [],
        "network interfaces of which one gives the address; empty: private ones",
      ),
      instance_port: field.integer(0, "port told to others; 0: grpc_listen_port", { max: 65_535 }),
      instance_addr: field.text("", "address told to others"),
      instance_availability_zone: field.text("", "zone"),
      instance_enable_ipv6: field.toggle(false, "allow an IPv6 address"),
      ...more,
    },
    `${prefix}.`,
  );
}

/** Keys of a ring that gives each key an owner. */
export function tokenFields(prefix: string) {
  return field.flagged(`${prefix}.`, {
    tokens_file_path: field.text("", "file that keeps the tokens over restarts"),
    num_tokens: field.integer(128, "tokens of an instance"),
  });
}

/** How an ingester lives in its ring. The prefixes start the flags of the ring and of the member; `copies` adds keys to the ring. */
export function lifecyclerBlock<S extends z.core.$ZodLooseShape>(
  prefixes: { readonly ring: string; readonly member: string },
  copies: S,
) {
  const { ring, member } = prefixes;
  return field.section(
    "The life of an instance in its ring.",
    {
      ring: field.section("The ring.", {
        kvstore: kvStore(ring, { keyPrefix: "collectors/" }),
        heartbeat_timeout: field.duration(
          "1m",
          "age of a heartbeat from which its instance is unhealthy; 0: never",
          `${ring}.heartbeat-timeout`,
        ),
        ...copies,
      }),
      num_tokens: field.integer(128, "tokens of an instance"),
      heartbeat_period: field.duration("5s", "pause between heartbeats; 0: none"),
      interface_names: field.list(
        [],
        "network interfaces of which one gives the address; empty: private ones",
        `${member}lifecycler.interface`,
      ),
      enable_inet6: field.toggle(false, "allow an IPv6 address"),
      tokens_file_path: field.text("", "file that keeps the tokens over restarts"),
      availability_zone: field.text("", "zone"),
      unregister_on_shutdown: field.toggle(true, "leave the ring at the end"),
      address: field.text("", "address told to others", `${member}lifecycler.addr`),
      port: field.integer(0, "port told to others", `${member}lifecycler.port`, { max: 65_535 }),
      id: field.text(
        "",
        "name of the instance, part of the names of segments; empty: the host name",
        `${member}lifecycler.ID`,
      ),
    },
    member,
  );
}

/** How a service calls another one. The prefix starts its flags. */
export function grpcClientBlock(prefix: string) {
  return field.section(
    "How calls are made.",
    {
      max_recv_msg_size: field.size("100MB", "largest answer", `${prefix}.grpc-max-recv-msg-size`),
      max_send_msg_size: field.size("100MB", "largest request", `${prefix}.grpc-max-send-msg-size`),
      ...tlsClientFields(prefix),
      connect_timeout: field.duration("5s", "time limit to connect"),
      connect_backoff_base_delay: field.duration("1s", "first pause between connects"),
      connect_backoff_max_delay: field.duration("5s", "longest pause between connects"),
      initial_stream_window_size: field.size("65535", "window of a stream"),
      keepalive_time: field.duration("20s", "pause between pings"),
      keepalive_timeout: field.duration("10s", "time that an answer to a ping may take"),
      cluster_validation: field.section("Refusal of calls from other clusters.", {
        label: field.text("", "name of the cluster"),
      }),
    },
    `${prefix}.`,
  );
}

/** A cache in the process or in Redis. The prefix starts its flags. */
export function cacheBlock(prefix: string) {
  return field.section(
    "The cache.",
    {
      default_validity: field.duration("1h", "time to keep"),
      redis: field.section("Where Redis is.", {
        endpoint: field.text("", "host and port; several with commas"),
        master_name: field.text("", "name of the master, with Sentinel"),
        timeout: field.duration("500ms", "time limit of a request"),
        expiration: field.duration("0s", "time to keep"),
        db: field.integer(0, "number of the database"),
        username: field.text("", "user"),
        password: field.secret("password"),
        tls_enabled: field.toggle(false, "speak TLS"),
        tls_insecure_skip_verify: field.toggle(false, "accept any certificate"),
      }),
      embedded_cache: field.section("A cache in the process.", {
        enabled: field.toggle(false, "use it"),
        max_size_mb: field.integer(100, "its size in MB"),
        max_size_items: field.integer(0, "its entries; 0: no limit"),
        ttl: field.duration("1h", "time to keep"),
      }),
    },
    `${prefix}.`,
  );
}

/** Keys of TLS for a client, to stand among its other keys. */
function tlsClientFields(prefix: string) {
  return field.flagged(`${prefix}.`, {
    tls_enabled: field.toggle(false, "speak TLS"),
    ...certificateFields(prefix),
    tls_cipher_suites: field.text("", "ciphers"),
    tls_min_version: field.text("", "oldest version"),
  });
}

/** The certificate of a client, and the certificates that it trusts. */
export function certificateFields(prefix: string) {
  return field.flagged(`${prefix}.`, {
    tls_cert_path: field.text("", "certificate of the client"),
    tls_key_path: field.text("", "its key"),
    tls_ca_path: field.text("", "authorities that are trusted"),
    tls_server_name: field.text("", "name expected in the certificate"),
    tls_insecure_skip_verify: field.toggle(false, "accept any certificate"),
  });
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
