export * from "./grpc/client.js";
export type { ClientTlsOptions } from "./grpc/client-tls.js";
export { checkClientTls } from "./grpc/client-tls.js";
export type { HealthState } from "./grpc/health.js";
export type { Parts } from "./grpc/message/pieces.js";
export {
  connectionOptionsOf,
  type GrpcClientConfig,
  type GrpcServerConfig,
  serverOptionsOf,
} from "./grpc/options.js";
export { oldestProtocolVersion, protocolVersion } from "./grpc/protocol.js";
export * from "./grpc/server.js";
