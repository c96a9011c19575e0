import * as field from "../field.js";
import type { FieldOptions } from "../note.js";
import { noRing } from "../reasons.js";
import { tlsClientFields } from "./tls.js";

/** Where a ring keeps its members. The flags are those of the ring, which is named by the prefix. */
export function kvStore(prefix: string, options: { keyPrefix: string }) {
  return field.section("Where the members of the ring are kept.", {
    store: field.choice(
      "inmemory",
      ["inmemory", "memberlist", "redis", "consul", "etcd", "multi"],
      "kind of store; inmemory serves one process",
      `${prefix}.store`,
    ),
    prefix: field.text(options.keyPrefix, "start of the keys", `${prefix}.prefix`),
    consul: field.section("Consul.", {
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
    }),
    etcd: field.section("etcd.", {
      endpoints: field.list([], "hosts and ports", `${prefix}.etcd.endpoints`),
      dial_timeout: field.duration("10s", "time limit", `${prefix}.etcd.dial-timeout`),
      max_retries: field.integer(10, "tries after the first", `${prefix}.etcd.max-retries`),
      ...tlsClientFields(`${prefix}.etcd`),
      username: field.text("", "user", `${prefix}.etcd.username`),
      password: field.secret("password", `${prefix}.etcd.password`),
    }),
    multi: field.section("Two stores, to move from one to the other.", {
      primary: field.text("", "store that is read", `${prefix}.multi.primary`),
      secondary: field.text("", "store that is written too", `${prefix}.multi.secondary`),
      mirror_enabled: field.toggle(false, "write to both", `${prefix}.multi.mirror-enabled`),
      mirror_timeout: field.duration(
        "2s",
        "time limit of the second write",
        `${prefix}.multi.mirror-timeout`,
      ),
    }),
  });
}

/** The ring of a component, all of whose flags start with the prefix; `id` says more about the name of the instance. */
export function ringBlock(
  prefix: string,
  options: { heartbeatPeriod?: string; keyPrefix?: string; id?: FieldOptions<string> } = {},
) {
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
      ),
      zone_awareness_enabled: field.toggle(
        false,
        "place copies in different zones",
        `${prefix}.zone-awareness-enabled`,
      ),
      instance_id: field.text(
        "",
        "name in the ring; empty: the host name",
        `${prefix}.instance-id`,
        options.id,
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
      num_tokens: field.integer(128, "tokens of an instance", `${prefix}.num-tokens`),
      replication_factor: field.integer(
        3,
        "copies; streams use common.replication_factor",
        `${prefix}.replication-factor`,
        { min: 1 },
      ),
    },
    { unused: noRing },
  );
}
