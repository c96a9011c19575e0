export type { CutObserver } from "./connection-guard.js";
export { acceptsEncoding, endResponse } from "./http/answer.js";
export { readBody } from "./http/body.js";
export * from "./http/http-server.js";
export type { RequestFacts, RequestObserver } from "./http/observe.js";
export * from "./http/route.js";
export { servesTls, type TlsOptions } from "./http/tls.js";
export type { SocketRequest, SocketRoute, SocketSession, TextSocket } from "./http/websocket.js";
export * from "./tenant.js";
