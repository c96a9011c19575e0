import * as field from "../field.js";
import { redisOnly } from "../reasons.js";
import { tlsClientFields } from "./tls.js";

export const noTokens = "this ring places no keys, its instances need no tokens";
const oneOwner = "each key is worked on by one instance";

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
    consul: anyConsul(prefix),
    etcd: anyEtcd(prefix),
    multi: anyMulti(prefix),
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

function anyConsul(prefix: string) {
  return field.section(
    "Consul.",
    {
      host: field.text("localhost:8500", "host and port", `${prefix}.consul.hostname`),
      acl_token: field.secret("token", `${prefix}.consul.acl-token`),
      http_client_timeout: field.duration("20s", "time limit", `${prefix}.consul.client-timeout`),
      consistent_reads: field.toggle(
        false,
        "ask the leader only",
        `${prefix}.consul.consistent-reads`,
      ),
      watch_rate_limit: field.float(1, "reads a second", `${prefix}.consul.watch-rate-limit`),
      watch_burst_size: field.integer(1, "reads at once", `${prefix}.consul.watch-burst-size`),
      cas_retry_delay: field.duration(
        "1s",
        "pause after a conflict",
        `${prefix}.consul.cas-retry-delay`,
      ),
    },
    { unused: redisOnly },
  );
}

function anyEtcd(prefix: string) {
  return field.section(
    "etcd.",
    {
      endpoints: field.list([], "hosts and ports", `${prefix}.etcd.endpoints`),
      dial_timeout: field.duration("10s", "time limit", `${prefix}.etcd.dial-timeout`),
      max_retries: field.integer(10, "tries after the first", `${prefix}.etcd.max-retries`),
      ...tlsClientFields(`${prefix}.etcd`),
      username: field.text("", "user", `${prefix}.etcd.username`),
      password: field.secret("password", `${prefix}.etcd.password`),
    },
    { unused: redisOnly },
  );
}

function anyMulti(prefix: string) {
  return field.section(
    "Two stores, to move from one to the other.",
    {
      primary: field.text("", "store that is read", `${prefix}.multi.primary`),
      secondary: field.text("", "store that is written too", `${prefix}.multi.secondary`),
      mirror_enabled: field.toggle(false, "write to both", `${prefix}.multi.mirror-enabled`),
      mirror_timeout: field.duration(
        "2s",
        "time limit of the second write",
        `${prefix}.multi.mirror-timeout`,
      ),
    },
    { unused: redisOnly },
  );
}

/** What is said about a ring beside its defaults. */
export interface RingBlockOptions {
  readonly heartbeatPeriod?: string;
  readonly keyPrefix?: string;
  /** What it is for: by default its members only know each other; by `owners` each key has one of them; `all` places copies. */
  readonly use?: "members" | "owners" | "all";
  /** What `replication_factor` says where it has an effect. */
  readonly copies?: string;
}

/** The ring of a component, all of whose flags start with the prefix. */
export function ringBlock(prefix: string, options: RingBlockOptions = {}) {
  const { use = "members" } = options;
  const isPlacing = use === "members" ? { unused: noTokens } : {};
  const copies = use === "all" ? {} : { unused: use === "owners" ? oneOwner : noTokens };
  const usual = "streams use common.replication_factor";
  return field.section(
    "The ring by which instances of the component find each other.",
    {
      kvstore: kvStore(prefix, { keyPrefix: options.keyPrefix ?? "collectors/" }),
      heartbeat_period: field.duration(
        options.heartbeatPeriod ?? "15s",
        "pause between heartbeats; 0: none",
        `${prefix}.heartbeat-period`,
      ),
      heartbeat_timeout: field.duration(
        "1m",
        "age of a heartbeat from which its instance is unhealthy; 0: never",
        `${prefix}.heartbeat-timeout`,
      ),
      tokens_file_path: field.text(
        "",
        "file that keeps the tokens over restarts",
        `${prefix}.tokens-file-path`,
        isPlacing,
      ),
      zone_awareness_enabled: field.toggle(
        false,
        "place copies in different zones",
        `${prefix}.zone-awareness-enabled`,
        copies,
      ),
      instance_id: field.text(
        "",
        "name in the ring; empty: the host name",
        `${prefix}.instance-id`,
      ),
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
      num_tokens: field.integer(128, "tokens of an instance", `${prefix}.num-tokens`, isPlacing),
      replication_factor: field.integer(
        3,
        options.copies ?? `copies; ${usual}`,
        `${prefix}.replication-factor`,
        { min: 1, ...(options.copies === undefined ? { unused: usual } : {}) },
      ),
    },
    { used: true },
  );
}
