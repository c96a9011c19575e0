import type { ServerResponse } from "node:http";
import type { ConnectionGuard } from "../connection-guard.js";

/** Time until the first look whether a client that sends no more is still there, and the longest between two. */
const firstLookMs = 20;
const maxLookMs = 1000;

/**
 * Keeps an answer going whose client has ended its side of the connection: it may still read, or be gone, and the
 * connection does not tell. An interim answer does: to who is gone it cannot be delivered. A client of HTTP/1.0, which
 * knows none, has a second.
 */
export function keepHalfClosed(response: ServerResponse, guard: ConnectionGuard): void {
  const { req: request, socket } = response;
  const knowsInterim = request.httpVersionMajor === 1 && request.httpVersionMinor > 0;
  let waitMs = knowsInterim ? firstLookMs : maxLookMs;
  const look = (): void => {
    if (response.headersSent || response.destroyed) return;
    if (!knowsInterim) {
      socket?.destroy();
      return;
    }
    response.writeProcessing();
    waitMs = Math.min(waitMs * 2, maxLookMs);
    timer = lookLater();
  };
  const lookLater = () => setTimeout(() => void guard.run(response, look), waitMs);
  let timer = lookLater();
  response.once("close", () => clearTimeout(timer));
}
