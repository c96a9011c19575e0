// The bundle has this module in the place of `node:http`. An import of `node:http` itself binds all of its names, also that of
// WebSocket, and so loads an HTTP client of Node's that takes a tenth of a start. `getBuiltinModule` does not load it.
const http = process.getBuiltinModule("node:http");

export const { Agent, ClientRequest, createServer, get, globalAgent, IncomingMessage } = http;
export const { maxHeaderSize, METHODS, OutgoingMessage, request, Server, ServerResponse } = http;
export const { STATUS_CODES, validateHeaderName, validateHeaderValue } = http;
export default http;
