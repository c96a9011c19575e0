export * from "./client.js";

export { remoteIngester, serveIngester } from "./ingester.js";
export {
  connectionOptionsOf,
  serverOptionsOf,
} from "./options.js";
export {
  type EndedCall,
  GrpcServer,
} from "./server.js";
export * from "./services.js";
