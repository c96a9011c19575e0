import type { z } from "zod";
import * as field from "../field.js";
import { tlsClientFields } from "./tls.js";

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
