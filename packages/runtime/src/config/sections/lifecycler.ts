import type { z } from "zod";
import * as field from "../field.js";
import { kvStore } from "./ring.js";

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
