import {
  GrpcConnection,
  GrpcServer,
  remoteCatalog,
  remoteDeletes,
  remoteDistributor,
  remoteIngester,
  remotePatternIngester,
  remoteRules,
  remoteTailer,
  serveCatalog,
  serveDeletes,
  serveDistributor,
  serveIngester,
  servePatternIngester,
  serveRules,
  serveTailer,
} from "../index.js";
import type { Services } from "./echo.js";

const MiB = 1024 * 1024;

/** Serves services on a free port of this machine, with the limits that are usual. */
export async function startTestServices(
  services: Services,
): Promise<{ server: GrpcServer; address: string }> {
  const server = new GrpcServer({
    address: "127.0.0.1",
    port: 0,
    maxConnections: 0,
    maxReceiveBytes: 4_000_000,
    maxSendBytes: 4_000_000,
    maxConcurrentStreams: 100,
    keepaliveMs: 60_000,
    keepaliveTimeoutMs: 20_000,
    gracefulShutdownMs: 0,
  });
  serveIngester(server, services.ingester);
  serveCatalog(server, services.catalog);
  serveDistributor(server, services.distributor);
  serveDeletes(server, services.deletes);
  serveTailer(server, services.tailer);
  servePatternIngester(server, services.patternIngester);
  serveRules(server, services.rules);
  return { server, address: `127.0.0.1:${await server.start()}` };
}

/** The services at an address. */
export function connectTestServices(address: string): {
  services: Services;
  connection: GrpcConnection;
} {
  const connection = new GrpcConnection({
    address,
    maxReceiveBytes: 100 * MiB,
    maxSendBytes: 100 * MiB,
    connectTimeoutMs: 60_000,
    minReconnectMs: 10,
    maxReconnectMs: 100,
    keepaliveMs: 60_000,
    keepaliveTimeoutMs: 20_000,
  });
  return {
    connection,
    services: {
      ingester: remoteIngester(connection),
      catalog: remoteCatalog(connection),
      distributor: remoteDistributor(connection),
      deletes: remoteDeletes(connection),
      tailer: remoteTailer(connection),
      patternIngester: remotePatternIngester(connection),
      rules: remoteRules(connection),
    },
  };
}
