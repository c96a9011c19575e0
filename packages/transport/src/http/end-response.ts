import type { IncomingMessage, ServerResponse } from "node:http";

/** How long a client may go on sending a request that is answered already. */
const lingerMs = 1000;
const noContent = 204;

/**
 * Ends an answer whose status and headers are set. A client that is still sending gets the whole answer and
 * `connection: close` at once; what it sends is dropped for a second, then the connection is cut. Cutting it at once
 * would reset it, and many a client would see that instead of the answer.
 */
export function endResponse(response: ServerResponse, body?: Uint8Array): void {
  if (response.statusCode !== noContent) response.setHeader("content-length", body?.length ?? 0);
  const { req: request } = response;
  if (isReceived(request) || request.destroyed) {
    response.end(request.method === "HEAD" ? undefined : body);
    return;
  }
  startResponse(response);
  if (body !== undefined && request.method !== "HEAD") response.write(body);
  endAfterRequest(response);
}

/** Sets what an answer says of the connection, before its body is written. */
export function startResponse(response: ServerResponse): void {
  const { req: request } = response;
  if (!isReceived(request) && !request.destroyed) response.setHeader("connection", "close");
}

/** Ends an answer whose body is written, as `endResponse` does. */
export function endAfterRequest(response: ServerResponse): void {
  const { req: request } = response;
  if (isReceived(request) || request.destroyed) {
    response.end();
    return;
  }
  response.flushHeaders();
  drop(request, () => response.end());
}

/** Whether nothing of the request is still to come. */
function isReceived(request: IncomingMessage): boolean {
  if (request.complete) return true;
  const { "content-length": length, "transfer-encoding": encoding } = request.headers;
  return encoding === undefined && Number(length ?? 0) === 0;
}

function drop(request: IncomingMessage, done: () => void): void {
  const finish = (): void => {
    clearTimeout(timer);
    done();
  };
  const timer = setTimeout(finish, lingerMs);
  request.once("end", finish);
  request.once("close", finish);
  request.resume();
}
