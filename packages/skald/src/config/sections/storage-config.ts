import { field, grpcClientBlock } from "@skald/runtime/config";
import { objectStoreBlock, s3Block } from "./object-stores.js";

const indexGatewayClient = field.section("How the index gateways are called.", {
  grpc_client_config: grpcClientBlock("tsdb.shipper.index-gateway-client.grpc"),
  server_address: field.text(
    "",
    "the index gateways, host and port, or a name with dns+ or dnssrv+; empty: whoever queries lists the store",
    "tsdb.shipper.index-gateway-client.server-address",
  ),
});

/** `storage_config`: where data is stored. */
export const storageConfig = field.section("Where data is stored.", {
  aws: s3Block(""),
  filesystem: field.section("A directory.", {
    directory: field.text("", "the directory", "local.chunk-directory"),
  }),
  object_prefix: field.text("", "folder of all keys in the bucket", "store.object-prefix"),
  segment_cache: field.section("What queries fetched from a bucket, kept on the local disk.", {
    directory: field.text(
      "",
      "its directory; default path_prefix/segment-cache",
      "store.segment-cache.directory",
    ),
    max_size: field.size(
      "10GB",
      "bytes that it takes at most; a twentieth of the disk is left free whatever it says",
      "store.segment-cache.max-size",
    ),
  }),
  object_store: objectStoreBlock("object-store"),
  tsdb_shipper: field.section("The index in the older layout.", {
    index_gateway_client: indexGatewayClient,
  }),
});
