import type { Catalog } from "@skald/contracts";
import { remoteCatalog, serveCatalog } from "@skald/contracts/grpc";
import { connectionOptionsOf } from "@skald/transport/grpc";
import type { BuiltModule, ModuleContext, Parts } from "../module.js";

/** Serves what the store has to other processes. */
export function buildIndexGateway({ ownCatalog, server }: Parts): BuiltModule {
  if (server !== undefined) serveCatalog(server, ownCatalog);
  return {};
}

/** Asks the index gateway that is configured; without one this process lists the store itself. */
export function buildCatalogClient(parts: Parts, { config }: ModuleContext): BuiltModule {
  const { server_address, grpc_client_config } =
    config.storage_config.tsdb_shipper.index_gateway_client;
  const options = connectionOptionsOf("", grpc_client_config);
  if (server_address === "") return {};
  // Behind a name there may be several: each connection goes to one of them.
  const address = server_address.replace(/^dns(\+srv)?[:+]\/*/, "");
  parts.catalog = remoteCatalog(parts.connections.to(address, options)) as Catalog;
  return {};
}
