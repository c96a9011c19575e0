export type { ByteAnswer, ByteCall, ByteHandler } from "./byte-calls.js";
export * from "./client.js";

export { remoteIngester, serveIngester } from "./ingester.js";
export {
  connectionOptionsOf,
  serverOptionsOf,
} from "./options.js";
export {
  type EndedCall,
  GrpcServer,
  type GrpcServerOptions,
} from "./server.js";
export * from "./services.js";
