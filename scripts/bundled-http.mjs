// What stands for `node:http` in the bundle. To who imports that Node gives all of its names, also those of WebSocket, which it
// would load late: an HTTP client of its own, a tenth of what a start costs. Asked for like this it stays away.
const http = process.getBuiltinModule("node:http");

export const { Agent, ClientRequest, createServer, get, globalAgent, IncomingMessage } = http;
export const { maxHeaderSize, METHODS, OutgoingMessage, request, Server, ServerResponse } = http;
export const { STATUS_CODES, validateHeaderName, validateHeaderValue } = http;
export default http;
