export * from "./http/body.js";
export * from "./http/end-response.js";
export type { RequestFacts, RequestObserver, RequestStart } from "./http/router.js";
export * from "./http/server.js";
export { checkTls, servesTls, type TlsOptions } from "./http/tls.js";
export * from "./http/types.js";
export * from "./tenant.js";
export { TextSocket } from "./websocket/text-socket.js";
export type { SocketRequest, SocketRoute, SocketSession } from "./websocket/upgrades.js";
