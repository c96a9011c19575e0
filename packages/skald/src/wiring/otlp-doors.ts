import { createOtlpHandler, otlpExportPath, type PushDoor } from "@skald/distributor";
import { GrpcServer, type GrpcServerOptions, serverOptionsOf } from "@skald/rpc";
import { parseTenant, servesTls } from "@skald/transport";
import { grpcTlsOptionsOf, tlsOptionsOf } from "../config/server.js";
import { grpcObservers } from "../http/request-metrics.js";
import { needOf } from "../http/route-rights.js";
import { type ModuleContext, type Parts, tenancyOf } from "./module.js";

/** The ports for OTLP over gRPC that a process opens for nothing else. */
export interface OtlpDoors {
  start(): Promise<void>;
  stop(): Promise<void>;
  /** Says which port could not be opened. */
  complaint(): string | undefined;
}

/** What clients send ahead takes memory that nobody booked. */
const windowBytes = 1024 * 1024;
/** Requests that are not byte calls: those of the health service. */
const maxOtherBytes = 16 * 1024;

/**
 * Serves OTLP over gRPC on the port for calls between services, and on `server.otlp_grpc_listen_port`. Only a process of a
 * cluster serves other calls, except health and reflection, and only on the former.
 */
export function buildOtlpDoors(
  { server }: Pick<Parts, "server">,
  context: ModuleContext,
  door: PushDoor,
): OtlpDoors {
  const { config, log } = context;
  const tenancy = tenancyOf(config);
  const need = needOf(otlpExportPath);
  const handler = createOtlpHandler(door, async ({ headers }) => {
    await context.access?.authorize(headers, need);
    return parseTenant(headers["x-scope-orgid"], tenancy);
  });
  const open = (options: Partial<GrpcServerOptions>) => {
    const opened = openServer(context, options);
    opened.addBytes(otlpExportPath, handler);
    return opened;
  };
  server?.addBytes(otlpExportPath, handler);
  const own = server === undefined ? open({}) : undefined;
  const { otlp_grpc_listen_port: port, http_listen_address: address } = config.server;
  const maxConnections = config.server.http_listen_conn_limit;
  const httpTls = tlsOptionsOf(config.server);
  const tls = servesTls(httpTls) ? httpTls : undefined;
  const otlp = port === 0 ? undefined : open({ port, address, maxConnections, tls });
  let failure: string | undefined;
  return {
    start: async () => {
      if (otlp !== undefined) log.info("listening for OTLP", { otlpPort: await otlp.start() });
      if (own === undefined) return;
      try {
        log.info("listening for OTLP", { grpcPort: await own.start() });
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== "EADDRINUSE") throw error;
        // Of use to some only, so the rest goes on.
        failure = `port ${config.server.grpc_listen_port} is in use, so OTLP over gRPC is not served there (server.grpc_listen_port)`;
        log.warn(failure);
      }
    },
    stop: async () => {
      await Promise.all([otlp?.stop(), failure === undefined ? own?.stop() : undefined]);
    },
    complaint: () => failure,
  };
}

function openServer(
  { config, log, metrics }: ModuleContext,
  options: Partial<GrpcServerOptions>,
): GrpcServer {
  const given = serverOptionsOf(config.server, grpcTlsOptionsOf(config.server));
  return new GrpcServer({
    ...given,
    windowBytes,
    maxReceiveBytes: Math.min(given.maxReceiveBytes, maxOtherBytes),
    ...grpcObservers(metrics, log),
    ...options,
  });
}
