import { type IncomingHttpHeaders, type IncomingMessage, STATUS_CODES } from "node:http";
import type { Duplex } from "node:stream";
import { SkaldError, textForClients } from "@skald/model";
import { withinSpan } from "@skald/runtime/tracing";
import { WebSocket, WebSocketServer } from "ws";
import type { AllowedOrigins } from "../allowed-origins.js";
import type { ConnectionGuard } from "../connection-guard.js";
import { errorAnswer } from "./answer.js";
import { parseForm } from "./body.js";
import { beginRequest, endRequest, pathOf, type RequestObserver, routeName } from "./observe.js";
import type { Authorize, HttpResponse } from "./route.js";

/** A request for a WebSocket. */
export interface SocketRequest {
  readonly headers: IncomingHttpHeaders;
  readonly params: URLSearchParams;
}

/** The work on an open WebSocket, which closes with it; an error is the reason of the close. */
export type SocketSession = (socket: TextSocket) => Promise<void>;

/** An endpoint that speaks WebSocket. An error of `open` becomes an HTTP answer instead. */
export interface SocketRoute {
  readonly path: string;
  readonly open: (request: SocketRequest) => SocketSession | Promise<SocketSession>;
}

export interface UpgradeOptions {
  readonly pathPrefix: string;
  readonly routes: readonly SocketRoute[];
  readonly guard: ConnectionGuard;
  readonly origins: AllowedOrigins;
  readonly authorize?: Authorize | undefined;
  readonly onRequest?: RequestObserver | undefined;
  readonly onError?: ((error: unknown, request: IncomingMessage) => void) | undefined;
  /** Takes back a connection whose request is not for a WebSocket; bytes that were read are unshifted. */
  readonly serveHttp: (socket: Duplex) => void;
}

const pingPeriodMs = 1000;
const maxSilenceMs = 15_000;
/** The longest message of a client. */
const maxMessageBytes = 64 * 1024;
/** A client has this time to answer a close. */
const closeGraceMs = 1000;
const codes = { normal: 1000, goingAway: 1001, forbidden: 1008, failure: 1011 };
const switching = 101;

/** Opens WebSockets: finds the endpoint, lets it refuse, does the handshake and runs the session. */
export class Upgrades {
  readonly #options: UpgradeOptions;
  readonly #routes: ReadonlyMap<string, SocketRoute>;
  readonly #server = new WebSocketServer({
    noServer: true,
    clientTracking: false,
    maxPayload: maxMessageBytes,
    perMessageDeflate: false,
  });
  /** The sockets that are open, and what opened them. */
  readonly #open = new Map<TextSocket, IncomingMessage>();

  constructor(options: UpgradeOptions) {
    this.#options = options;
    const { routes, pathPrefix } = options;
    this.#routes = new Map(routes.map((route) => [pathPrefix + route.path, route]));
  }

  /** Takes a request with an `Upgrade` header and the bytes after it; false if it was given back. */
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
    for (const socket of this.#open.keys()) {
      socket.close(codes.goingAway, "the server is stopping");
      setTimeout(() => socket.cut(), closeGraceMs).unref();
    }
  }

  /** Ends those whose sender may not open them any more. */
  async authorizeAgain(): Promise<void> {
    for (const [socket, request] of this.#open) {
      try {
        const path = pathOf(request).slice(this.#options.pathPrefix.length);
        await this.#options.authorize?.(request.headers, path);
      } catch (error) {
        if (![401, 403].includes(errorAnswer(error).status)) continue;
        socket.close(codes.forbidden, textForClients(error));
        setTimeout(() => socket.cut(), closeGraceMs).unref();
      }
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
      takeTenant(request.headers);
      await this.#options.authorize?.(request.headers, route.path);
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
      // The library has answered a bad handshake.
      if (!isOpen) end(400);
    });
    this.#server.handleUpgrade(request, socket, head, (webSocket) => {
      isOpen = true;
      this.#options.guard.watch(webSocket, socket);
      const run = async () => end(switching, await this.#run(session, webSocket, request));
      void this.#options.guard.run(socket, () => withinSpan(span, run));
    });
  }

  /** Runs a session to its end; returns the number of bytes sent. */
  async #run(
    session: SocketSession,
    webSocket: WebSocket,
    request: IncomingMessage,
  ): Promise<number> {
    const socket = new TextSocket(webSocket, { pingPeriodMs, maxSilenceMs });
    this.#open.set(socket, request);
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

  /** Serves the request without its `Upgrade` header, which a server may ignore. */
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

/** Answers instead of a handshake. */
function refuse(socket: Duplex, { status, headers = {}, body = "" }: HttpResponse): void {
  const bytes = Buffer.from(body as string);
  const all = { ...headers, "content-length": String(bytes.length), connection: "close" };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.write(`HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ""}\r\n${lines.join("")}\r\n`);
  socket.end(bytes);
}

export interface TextSocketOptions {
  /** Pause between pings. */
  readonly pingPeriodMs: number;
  /** A client that takes nothing, or does not answer pings, is cut off after this time. */
  readonly maxSilenceMs: number;
}

/** The longest reason that fits the control frame of a close. */
const maxReasonBytes = 123;

/** A WebSocket for sending texts; messages of the client are read and dropped. */
export class TextSocket {
  /** Aborted when the client is gone. */
  readonly signal: AbortSignal;
  readonly #socket: WebSocket;
  readonly #options: TextSocketOptions;
  readonly #gone = new AbortController();
  readonly #pings: NodeJS.Timeout;
  #heardMs = performance.now();
  #sentBytes = 0;

  constructor(socket: WebSocket, options: TextSocketOptions) {
    this.#socket = socket;
    this.#options = options;
    this.signal = this.#gone.signal;
    socket.on("pong", () => this.#hear());
    socket.on("message", () => this.#hear());
    socket.on("error", () => this.cut());
    socket.once("close", () => this.#end());
    this.#pings = setInterval(() => this.#ping(), options.pingPeriodMs);
  }

  /** Bytes of the sent texts. */
  get sentBytes(): number {
    return this.#sentBytes;
  }

  /** Resolves when the system has taken the text; rejects as cancelled if the client is gone or takes nothing for too long. */
  send(text: Uint8Array): Promise<void> {
    if (this.signal.aborted) return Promise.reject(this.signal.reason);
    this.#sentBytes += text.length;
    return new Promise((resolve, reject) => {
      const late = setTimeout(() => this.cut(), this.#options.maxSilenceMs);
      const onGone = () => settle(this.signal.reason);
      const settle = (error?: unknown) => {
        clearTimeout(late);
        this.signal.removeEventListener("abort", onGone);
        if (error === undefined || error === null) resolve();
        else reject(clientGone(error));
      };
      this.signal.addEventListener("abort", onGone, { once: true });
      this.#socket.send(text, { binary: false }, settle);
    });
  }

  /** Closes with a code and a reason, and waits for the client to close. */
  close(code: number, reason: string): void {
    this.#socket.close(code, shorten(reason));
  }

  /** Ends the connection at once. */
  cut(): void {
    this.#socket.terminate();
  }

  #ping(): void {
    if (performance.now() - this.#heardMs > this.#options.maxSilenceMs) this.cut();
    else if (this.#socket.readyState === WebSocket.OPEN) this.#socket.ping();
  }

  #hear(): void {
    this.#heardMs = performance.now();
  }

  #end(): void {
    clearInterval(this.#pings);
    this.#gone.abort(clientGone());
  }
}

function clientGone(cause?: unknown): SkaldError {
  return new SkaldError("cancelled", "the client is gone", { cause });
}

/** The text, cut to the bytes that fit, in whole characters. */
function shorten(text: string): string {
  if (Buffer.byteLength(text) <= maxReasonBytes) return text;
  const { read } = new TextEncoder().encodeInto(text, new Uint8Array(maxReasonBytes));
  return text.slice(0, read);
}

/**
 * A page in a browser cannot send `X-Scope-OrgID` with a WebSocket. The subprotocol `skald.tenant.<base64url of the tenant>` stands
 * for it; the header wins where both are there.
 */
function takeTenant(headers: IncomingHttpHeaders): void {
  const { "sec-websocket-protocol": protocols = "", "x-scope-orgid": given } = headers;
  const [, encoded] = /(?:^|,)\s*skald\.tenant\.([\w-]+)\s*(?:,|$)/.exec(protocols) ?? [];
  if (given !== undefined || encoded === undefined) return;
  headers["x-scope-orgid"] = Buffer.from(encoded, "base64url").toString();
}
