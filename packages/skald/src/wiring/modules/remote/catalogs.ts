import type { Catalog } from "@skald/contracts";
import { connectionOptionsOf, remoteCatalog, serveCatalog } from "@skald/rpc";
import { Service } from "@skald/runtime";
import { PeerCalls } from "../../discovery/peer-calls.js";
import type { BuiltModule, ModuleContext, Parts } from "../../module.js";
import { forPeer, gatewayBook, unknownPeers } from "./books.js";

/** Pause between look-ups of the gateways' names. */
const lookupMs = 10_000;

/** Serves what the store has to other processes. */
export function buildIndexGateway({ ownCatalog, server }: Parts): BuiltModule {
  if (server !== undefined) serveCatalog(server, ownCatalog);
  return {};
}

/**
 * Asks the index gateways that are configured; without any this process lists the store itself. A tenant's calls go to the
 * same gateways, which remember what they listed.
 */
export function buildCatalogClient(parts: Parts, { config, log }: ModuleContext): BuiltModule {
  const { server_address, grpc_client_config } =
    config.storage_config.tsdb_shipper.index_gateway_client;
  const { mode, ring } = config.index_gateway;
  const { replication_factor: copies } = ring;
  const width = mode === "ring" ? copies : 1;
  const { connections } = parts;
  const options = connectionOptionsOf("", grpc_client_config);
  const book = gatewayBook(parts, { config, log }, { text: server_address, periodMs: lookupMs });
  if (book === undefined) return {};
  const gateways = new PeerCalls<Required<Catalog>>({
    ...{ book, name: "index gateway" },
    connect: (peer) => remoteCatalog(connections.to(peer.address, forPeer(options, peer))),
  });
  parts.catalog = {
    list: (request, { signal }) => {
      const order = { tenant: request.tenant, width };
      return gateways.call((gateway) => gateway.list(request, { signal }), { signal, order });
    },
    count: (request, { signal, share }) => {
      const order = { tenant: request.tenant, width };
      return gateways.call((gateway) => gateway.count(request, { signal, share }), {
        ...{ signal, order },
      });
    },
  };
  return {
    service: new Service({ name: "catalog-client", run: (signal) => book.run(signal) }),
    unready: () => unknownPeers(book, "index gateway"),
  };
}
