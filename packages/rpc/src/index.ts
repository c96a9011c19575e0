export * from "./client.js";
export { type ClientTlsOptions, checkClientTls } from "./client-tls.js";
export { remoteIngester, serveIngester } from "./ingester.js";
export {
  connectionOptionsOf,
  type GrpcClientConfig,
  type GrpcServerConfig,
  serverOptionsOf,
} from "./options.js";
export {
  type EndedCall,
  GrpcServer,
  type GrpcServerOptions,
  type IncomingCall,
} from "./server.js";
export * from "./services.js";
