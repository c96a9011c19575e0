import { field, ringBlock, tokenFields } from "@skald/runtime/config";
import { objectStoreBlock, s3Block } from "./object-stores.js";

const storage = field.section("The object store of everything; one child is used.", {
  s3: s3Block("common.storage."),
  filesystem: field.section("Directories.", {
    chunks_directory: field.text(
      "",
      "directory of the data",
      "common.storage.filesystem.chunk-directory",
    ),
    rules_directory: field.text(
      "",
      "directory of the rules",
      "common.storage.filesystem.rules-directory",
    ),
  }),
  object_store: objectStoreBlock("common.storage.object-store"),
});

/** `common`: keys from which others take their defaults. */
export const commonConfig = field.section("Keys from which others take their defaults.", {
  path_prefix: field.text("", "directory in which all others are by default", "common.path-prefix"),
  storage,
  persist_tokens: field.toggle(
    false,
    "keep the tokens of rings in path_prefix",
    "common.persist-tokens",
  ),
  replication_factor: field.integer(1, "copies of each stream", "common.replication-factor", {
    min: 1,
  }),
  ring: ringBlock("common.storage.ring", {
    ...tokenFields("common.storage.ring"),
    zone_awareness_enabled: field.toggle(
      false,
      "place copies in different zones",
      "common.storage.ring.zone-awareness-enabled",
    ),
  }),
  instance_interface_names: field.list(
    [],
    "network interfaces of which one gives the address; empty: private ones",
    "common.instance-interface-names",
  ),
  instance_addr: field.text("", "address told to others", "common.instance-addr"),
});
