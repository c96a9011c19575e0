import * as field from "../field.js";
import { kvStore } from "./ring.js";

const atOnce = "an instance works as soon as it can";

interface Prefixes {
  readonly ring: string;
  readonly member: string;
  readonly distributor: string;
}

/**
 * How an ingester lives in its ring. The prefixes start the flags of the ring and of the member; `oneCopy` says why there
 * are never more copies than one.
 */
export function lifecyclerBlock(prefixes: Prefixes, replicationFactor: number, oneCopy?: string) {
  const { member } = prefixes;
  const unused = (why: string) => ({ unused: why });
  return field.section(
    "The life of an instance in its ring.",
    {
      ring: ringOf(prefixes, replicationFactor, oneCopy),
      num_tokens: field.integer(128, "tokens of an instance", `${member}num-tokens`),
      heartbeat_period: field.duration(
        "5s",
        "pause between heartbeats; 0: none",
        `${member}heartbeat-period`,
      ),
      observe_period: field.duration(
        "0s",
        "time to look for conflicting tokens before joining",
        `${member}observe-period`,
        unused("those who join at the same time always look at each other"),
      ),
      join_after: field.duration(
        "0s",
        "time to wait before joining",
        `${member}join-after`,
        unused(atOnce),
      ),
      min_ready_duration: field.duration(
        "15s",
        "time for which all must be well before the instance is ready",
        `${member}min-ready-duration`,
        unused(atOnce),
      ),
      interface_names: field.list(
        [],
        "network interfaces of which one gives the address; empty: private ones",
        `${member}lifecycler.interface`,
      ),
      enable_inet6: field.toggle(false, "allow an IPv6 address", `${member}enable-inet6`),
      final_sleep: field.duration(
        "0s",
        "time to wait before exit; always 0",
        `${member}final-sleep`,
        unused("it is always 0"),
      ),
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
      readiness_check_ring_health: field.toggle(
        true,
        "be ready only while all members are healthy",
        `${member}readiness-check-ring-health`,
        unused(atOnce),
      ),
      address: field.text("", "address told to others", `${member}lifecycler.addr`),
      port: field.integer(0, "port told to others", `${member}lifecycler.port`, { max: 65_535 }),
      id: field.text(
        "",
        "name of the instance, part of the names of segments; empty: the host name",
        `${member}lifecycler.ID`,
      ),
    },
    {
      ignored: { heartbeat_timeout: "use ring.heartbeat_timeout instead" },
    },
  );
}

function ringOf(
  { ring, distributor }: Prefixes,
  replicationFactor: number,
  unused: string | undefined,
) {
  const copies = unused === undefined ? {} : { unused };
  return field.section("The ring.", {
    kvstore: kvStore(ring, { keyPrefix: "collectors/" }),
    heartbeat_timeout: field.duration(
      "1m",
      "age of a heartbeat from which its instance is unhealthy; 0: never",
      `${ring}.heartbeat-timeout`,
    ),
    replication_factor: field.integer(
      replicationFactor,
      "copies of each stream",
      `${distributor}.replication-factor`,
      { min: 1, ...copies },
    ),
    zone_awareness_enabled: field.toggle(
      false,
      "place copies in different zones",
      `${distributor}.zone-awareness-enabled`,
      copies,
    ),
    excluded_zones: field.list([], "zones that get nothing", `${distributor}.excluded-zones`, {
      unused: unused ?? "zones without instances get nothing",
    }),
  });
}
