import { field, gone, ringBlock } from "@skald/runtime/config";
import { objectStoreBlock } from "./object-store-block.js";
import { anyStore, azureBlock, gcsBlock, hedgingBlock, s3Block } from "./object-stores.js";

const deletesInStore = "delete requests are read from the object store";

const storage = field.section(
  "The object store of everything; one child is used.",
  {
    s3: s3Block("common.storage."),
    gcs: gcsBlock("common.storage."),
    azure: azureBlock("common.storage."),
    alibabacloud: anyStore("Alibaba Cloud"),
    bos: anyStore("Baidu Cloud"),
    swift: anyStore("Swift"),
    filesystem: field.section(
      "Directories.",
      {
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
      },
      { ignored: { admin_api_directory: gone } },
    ),
    hedging: hedgingBlock("common.storage.hedge"),
    cos: anyStore("IBM Cloud"),
    object_store: objectStoreBlock("common.storage.object-store"),
  },
  { ignored: { congestion_control: "what fails in passing is tried again, later each time" } },
);

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
  ring: ringBlock("common.storage.ring", { use: "all" }),
  instance_interface_names: field.list(
    [],
    "network interfaces of which one gives the address; empty: private ones",
    "common.instance-interface-names",
  ),
  instance_addr: field.text("", "address told to others", "common.instance-addr"),
  compactor_address: field.text(
    "",
    "http address of the compactor, asked for deletes",
    "common.compactor-address",
    { unused: deletesInStore },
  ),
  compactor_grpc_address: field.text(
    "",
    "host and port of the compactor",
    "common.compactor-grpc-address",
    { unused: deletesInStore },
  ),
  scratch_path: field.text("", "directory for temporary files", "common.scratch-path", {
    unused: "no temporary files are written",
  }),
});
