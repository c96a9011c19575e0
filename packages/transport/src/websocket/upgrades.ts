import type { IncomingHttpHeaders, IncomingMessage } from "node:http";
import { STATUS_CODES } from "node:http";
import type { Duplex } from "node:stream";
import { textForClients } from "@skald/model";
import { withinSpan } from "@skald/runtime/tracing";
import { type WebSocket, WebSocketServer } from "ws";
import type { AllowedOrigins } from "../allowed-origins.js";
import type { ConnectionGuard } from "../connection-guard.js";
import { errorAnswer } from "../http/answer.js";
import { parseForm } from "../http/form.js";
import { pathOf, routeName } from "../http/path.js";
import type { RequestObserver } from "../http/router.js";
import type { HttpResponse } from "../http/types.js";
import { beginRequest, endRequest } from "../tracing/request-span.js";
import { TextSocket } from "./text-socket.js";

/** A request for a WebSocket. */
export interface SocketRequest {
  readonly headers: IncomingHttpHeaders;
  readonly params: URLSearchParams;
}

/** What is done on a WebSocket once it is open; it ends with that, with the error's text where there is one. */
export type SocketSession = (socket: TextSocket) => Promise<void>;

/** An endpoint that speaks WebSocket. What `open` rejects with is the answer in place of a WebSocket. */
export interface SocketRoute {
  readonly path: string;
  readonly open: (request: SocketRequest) => SocketSession | Promise<SocketSession>;
}

export interface UpgradeOptions {
  readonly pathPrefix: string;
  readonly routes: readonly SocketRoute[];
  readonly guard: ConnectionGuard;
  readonly origins: AllowedOrigins;
  readonly onRequest?: RequestObserver | undefined;
  readonly onError?: ((error: unknown, request: IncomingMessage) => void) | undefined;
  /** Takes a connection back whose request is no business of a WebSocket; what was read of it is unshifted. */
  readonly serveHttp: (socket: Duplex) => void;
}

const pingPeriodMs = 1000;
const maxSilenceMs = 15_000;
/** Longest message of a client. */
const maxMessageBytes = 64 * 1024;
/** Time that a client has to say goodbye. */
const closeGraceMs = 1000;
const codes = { normal: 1000, goingAway: 1001, failure: 1011 };
const switching = 101;

/** Opens WebSockets: finds the endpoint, lets it refuse, shakes hands, and runs what the endpoint does on it. */
export class Upgrades {
  readonly #options: UpgradeOptions;
  readonly #routes: ReadonlyMap<string, SocketRoute>;
  readonly #server = new WebSocketServer({
    noServer: true,
    clientTracking: false,
    maxPayload: maxMessageBytes,
    perMessageDeflate: false,
  });
  readonly #open = new Set<TextSocket>();

  constructor(options: UpgradeOptions) {
    this.#options = options;
    const { routes, pathPrefix } = options;
    this.#routes = new Map(routes.map((route) => [pathPrefix + route.path, route]));
  }

  /** Takes a request with an `Upgrade` header, and what came behind it; false when it was given back. */
  take(request: IncomingMessage, socket: Duplex, head: Buffer): boolean {
    const route = this.#routes.get(pathOf(request));
    const isAsked = /^websocket$/i.test(request.headers.upgrade ?? "") && request.method === "GET";
    if (route === undefined || !isAsked) {
      this.#giveBack(request, socket, head);
      return false;
    }
    void this.#upgrade(route, request, socket, head);
    return true;
  }

  /** Ends all that are open. */
  close(): void {
    for (const socket of this.#open) {
      socket.close(codes.goingAway, "the server is stopping");
      setTimeout(() => socket.cut(), closeGraceMs).unref();
    }
  }

  async #upgrade(
    route: SocketRoute,
    request: IncomingMessage,
    socket: Duplex,
    head: Buffer,
  ): Promise<void> {
    socket.on("error", () => socket.destroy());
    const start = performance.now();
    const begun = { method: "GET", route: routeName(route.path) };
    const onEnd = this.#options.onRequest?.(begun);
    const span = beginRequest(request, route.path);
    const end = (status: number, responseBytes?: number) => {
      const durationMs = performance.now() - start;
      const isSocket = status === switching;
      endRequest(span, status);
      onEnd?.({ ...begun, status, durationMs, requestBytes: 0, responseBytes, isSocket });
    };
    let session: SocketSession;
    try {
      this.#options.origins.checkSocket(request.headers);
      session = await withinSpan(span, async () => route.open(socketRequest(request)));
    } catch (error) {
      const answer = errorAnswer(error);
      if (answer.status === 500) this.#options.onError?.(error, request);
      end(answer.status);
      refuse(socket, answer);
      return;
    }
    if (socket.destroyed) {
      end(400);
      return;
    }
    let isOpen = false;
    socket.once("close", () => {
      // The library has answered what was no proper handshake.
      if (!isOpen) end(400);
    });
    this.#server.handleUpgrade(request, socket, head, (webSocket) => {
      isOpen = true;
      this.#options.guard.watch(webSocket, socket);
      const run = async () => end(switching, await this.#run(session, webSocket, request));
      void this.#options.guard.run(socket, () => withinSpan(span, run));
    });
  }

  /** Runs a session to its end; gives the bytes that were sent. */
  async #run(
    session: SocketSession,
    webSocket: WebSocket,
    request: IncomingMessage,
  ): Promise<number> {
    const socket = new TextSocket(webSocket, { pingPeriodMs, maxSilenceMs });
    this.#open.add(socket);
    try {
      await session(socket);
      socket.close(codes.normal, "");
    } catch (error) {
      if (!socket.signal.aborted) {
        if (errorAnswer(error).status === 500) this.#options.onError?.(error, request);
        socket.close(codes.failure, textForClients(error));
      }
    } finally {
      setTimeout(() => socket.cut(), closeGraceMs).unref();
      this.#open.delete(socket);
    }
    return socket.sentBytes;
  }

  /** Has the request served without its header: nobody is obliged to upgrade. */
  #giveBack(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    const lines = [`${request.method} ${request.url} HTTP/${request.httpVersion}`];
    const { rawHeaders } = request;
    for (let i = 0; i < rawHeaders.length; i += 2) {
      const name = (rawHeaders[i] as string).toLowerCase();
      const value = rawHeaders[i + 1] as string;
      if (name === "upgrade" || name === "http2-settings") continue;
      lines.push(`${name}: ${name === "connection" ? withoutUpgrade(value) : value}`);
    }
    if (head.length > 0) socket.unshift(head);
    socket.unshift(Buffer.from(`${lines.join("\r\n")}\r\n\r\n`, "latin1"));
    this.#options.serveHttp(socket);
  }
}

function socketRequest({ headers, url = "" }: IncomingMessage): SocketRequest {
  const at = url.indexOf("?");
  return { headers, params: parseForm(Buffer.from(at < 0 ? "" : url.slice(at + 1))) };
}

/** The other words of a `Connection` header. */
function withoutUpgrade(value: string): string {
  const words = value.split(",").map((word) => word.trim());
  return words.filter((word) => !/^(upgrade|http2-settings)$/i.test(word)).join(", ");
}

/** Answers in place of a handshake. */
function refuse(socket: Duplex, { status, headers = {}, body = "" }: HttpResponse): void {
  const bytes = Buffer.from(body as string);
  const all = { ...headers, "content-length": String(bytes.length), connection: "close" };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.write(`HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ""}\r\n${lines.join("")}\r\n`);
  socket.end(bytes);
}
