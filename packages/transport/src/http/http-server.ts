import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { createServer as createTlsServer, type Server as TlsServer } from "node:https";
import { type AddressInfo, Socket } from "node:net";
import { posix } from "node:path";
import type { Duplex } from "node:stream";
import type { TLSSocket } from "node:tls";
import { AllowedOrigins } from "../allowed-origins.js";
import { ConnectionGuard, type CutObserver } from "../connection-guard.js";
import { RequestTurns, turnOf } from "../request-turns.js";
import { errorAnswer, sendAnswer } from "./answer.js";
import { ConnectionStarts } from "./connection-starts.js";
import { type ConnectionListener, Http2Front, readAhead, sniff } from "./http2.js";
import { pathOf, type RequestObserver, routeName, serveObserved, unknownRoute } from "./observe.js";
import type { Authorize, EndpointDocs, Route } from "./route.js";
import { buildRouter } from "./router.js";
import { Certificates, mayConnect, type TlsOptions } from "./tls.js";
import { type SocketRoute, Upgrades } from "./websocket.js";

/** A handler on plain node:http objects for requests that must not pay for a router. */
export interface RawHandler {
  (request: IncomingMessage, response: ServerResponse): Promise<void>;
  /** The docs of the endpoint, as for a route. */
  readonly docs?: EndpointDocs;
}

export interface HttpServerOptions {
  readonly address: string;
  readonly port: number;
  /** Time in which a request, body and all, must have arrived; 0: no limit. */
  readonly readTimeoutMs: number;
  /** The same for its headers; 0: as the request. */
  readonly readHeaderTimeoutMs: number;
  /** Time without progress after which an answer that the client does not take is given up; 0: no limit. */
  readonly writeTimeoutMs: number;
  readonly idleTimeoutMs: number;
  readonly gracefulShutdownMs: number;
  /** Connections at a time; 0: no limit. */
  readonly maxConnections: number;
  /** Form bodies and JSON bodies of endpoints other than push. */
  readonly maxBodyBytes: number;
  readonly compressResponses: boolean;
  /** Further origins whose pages may change things and open WebSockets. */
  readonly allowedOrigins?: readonly string[];
  /** Comes before the paths of all routes, with or without slashes around it. */
  readonly pathPrefix: string;
  readonly routes: readonly Route[];
  /** Paths whose POSTs go straight to a handler, before the router; `:name` stands for one part of a path. */
  readonly rawRoutes: ReadonlyMap<string, RawHandler>;
  readonly socketRoutes?: readonly SocketRoute[];
  /** Without it every sender may use every path. */
  readonly authorize?: Authorize | undefined;
  readonly onRequest?: RequestObserver;
  readonly onError?: (error: unknown, request: FailedRequest) => void;
  readonly onCut?: CutObserver;
  /** If given, the server speaks only TLS. */
  readonly tls?: TlsOptions | undefined;
  /** Called when certificates have changed, with an error if they cannot be used. */
  readonly onCertificates?: (error: unknown) => void;
}

/** A request that failed. */
export type FailedRequest = Pick<IncomingMessage, "method" | "url">;

/** The longest request head, because `X-Scope-OrgID` may be long. A longer one is answered with 431. */
const maxHeaderBytes = 1024 * 1024;
/** Bounds of the pause between two checks of the read timeouts. */
const maxCheckPeriodMs = 5_000;
const minCheckPeriodMs = 100;
const movedPermanently = 301;
/** The HTTP side of a process: express for the endpoints, plain node:http for pushes. */
export class HttpServer {
  readonly #options: HttpServerOptions;
  readonly #guard: ConnectionGuard;
  readonly #turns = new RequestTurns();
  /** Connections that begin to speak HTTP/2. */
  readonly #starts = new ConnectionStarts();
  readonly #origins: AllowedOrigins;
  readonly #router: ReturnType<typeof buildRouter>;
  readonly #observing: Parameters<typeof serveObserved>[0];
  readonly #server: Server | TlsServer;
  readonly #http2: Http2Front;
  readonly #certificates: Certificates | undefined;
  readonly #upgrades: Upgrades | undefined;
  /** The raw routes with variables. */
  readonly #rawPatterns: readonly { readonly path: string; readonly pattern: RegExp }[];
  /** All accepted connections. */
  readonly #connections = new Set<Socket>();
  /** Connections that speak HTTP/1, or nothing yet. */
  readonly #sockets = new Set<Socket>();
  readonly #running = new Set<ServerResponse>();
  #stopping = false;

  constructor(given: HttpServerOptions) {
    const options = withPrefix(given);
    this.#options = options;
    this.#rawPatterns = [...options.rawRoutes.keys()]
      .filter((path) => path.includes("/:"))
      .map((path) => ({ path, pattern: new RegExp(`^${path.replace(/:[^/]+/g, "[^/]+")}$`) }));
    this.#guard = new ConnectionGuard(options.onCut);
    this.#origins = new AllowedOrigins(options.allowedOrigins);
    this.#observing = { guard: this.#guard, onRequest: options.onRequest };
    this.#router = buildRouter({ ...options, guard: this.#guard, origins: this.#origins });
    const serve = (request: IncomingMessage, response: ServerResponse) =>
      this.#serveInTurn(request, response);
    const { tls, onCertificates } = options;
    this.#certificates = tls === undefined ? undefined : new Certificates(tls, onCertificates);
    this.#server =
      this.#certificates === undefined
        ? createServer(timeoutsOf(options), serve)
        : createTlsServer({ ...timeoutsOf(options), ...this.#certificates.options }, serve);
    Object.assign(this.#server, { httpAllowHalfOpen: true });
    this.#guard.watch(this.#server);
    const [listener] = this.#server.listeners(connectionEvent(options)) as ConnectionListener[];
    const serveHttp1 = (listener as ConnectionListener).bind(this.#server);
    this.#http2 = this.#splitProtocols(serveHttp1);
    this.#upgrades = this.#takeUpgrades(serveHttp1);
    if (options.maxConnections > 0) this.#server.maxConnections = options.maxConnections;
    this.#server.setTimeout(options.writeTimeoutMs, (socket) => this.#onSilence(socket));
  }

  /** Listens; resolves with the port, which is chosen by the system when 0 was asked for. */
  async start(): Promise<number> {
    const { port, address } = this.#options;
    this.#server.listen(port, address === "" ? undefined : address);
    await once(this.#server, "listening");
    this.#certificates?.watch(this.#server as TlsServer);
    return (this.#server.address() as AddressInfo).port;
  }

  /** Stops accepting, lets running requests end within the grace, then cuts the rest. */
  stop(): Promise<void> {
    this.#stopping = true;
    this.#certificates?.stop();
    return new Promise((resolve) => {
      const cut = setTimeout(() => {
        this.#http2.destroy();
        this.#server.closeAllConnections();
        for (const socket of this.#connections) socket.destroy();
      }, this.#options.gracefulShutdownMs);
      this.#http2.close();
      this.#upgrades?.close();
      this.#server.close(() => {
        clearTimeout(cut);
        resolve();
      });
      for (const response of this.#running)
        if (!response.headersSent) response.setHeader("connection", "close");
      for (const socket of this.#sockets) if (!this.#isBusy(socket)) socket.destroy();
    });
  }

  /** Connections that are open. */
  get connections(): number {
    return this.#connections.size;
  }

  /** Reads the certificates again now. */
  reloadCertificates(): void {
    this.#certificates?.reload(this.#server as TlsServer);
  }

  /** Chooses between HTTP/1 and HTTP/2 before Node handles a connection. */
  #splitProtocols(serveHttp1: ConnectionListener): Http2Front {
    const { tls, idleTimeoutMs, writeTimeoutMs } = this.#options;
    const event = connectionEvent(this.#options);
    const server: Server | TlsServer = this.#server;
    const [listener] = server.listeners(event) as ConnectionListener[];
    const timeouts = { idleTimeoutMs, writeTimeoutMs };
    const own = { guard: this.#guard, turns: this.#turns };
    const http2 = new Http2Front({ serveHttp1, ...own, maxHeaderBytes, ...timeouts });
    const serveHttp2 = (socket: Duplex, head: Buffer = Buffer.alloc(0)): void => {
      // HTTP/2 ends its connections itself.
      this.#sockets.delete(socket as Socket);
      // A client of HTTP/1 may still read when it has ended its side; nobody would notice the end of this one.
      socket.allowHalfOpen = false;
      socket.once("close", () => this.#starts.drop(socket));
      const endReading = readAhead(socket);
      const begin = (): void => {
        if (socket.destroyed) return;
        const ahead = endReading();
        http2.serve(socket, ahead.length > 0 ? ahead : head);
      };
      const isTaken = this.#starts.run(socket, begin);
      if (!isTaken) socket.destroy();
    };
    server.removeListener(event, listener as ConnectionListener);
    server.on("connection", (socket: Socket) => keepUntilClosed(this.#connections, socket));
    server.on(event, (socket: Socket) => {
      keepUntilClosed(this.#sockets, socket);
      socket.once("end", () => this.#onEnd(socket));
      socket.once("close", () => this.#turns.drop(socket));
    });
    if (tls === undefined) {
      const { readTimeoutMs, readHeaderTimeoutMs } = this.#options;
      const timeoutMs = shortest(readTimeoutMs, readHeaderTimeoutMs, writeTimeoutMs);
      server.on(event, (socket: Socket) =>
        sniff(socket, { http1: serveHttp1, http2: serveHttp2, timeoutMs }),
      );
    } else {
      server.on(event, (socket: TLSSocket) => {
        if (!mayConnect(socket, tls)) socket.destroy();
        else (socket.alpnProtocol === "h2" ? serveHttp2 : serveHttp1)(socket);
      });
    }
    return http2;
  }

  /** Ends the WebSockets whose senders may not open them any more. */
  authorizeAgain(): Promise<void> {
    return this.#upgrades?.authorizeAgain() ?? Promise.resolve();
  }

  /** Without a listener Node serves requests with an `Upgrade` header as any other. */
  #takeUpgrades(serveHttp: ConnectionListener): Upgrades | undefined {
    const { socketRoutes: routes = [], pathPrefix, authorize, onRequest, onError } = this.#options;
    if (routes.length === 0) return undefined;
    const own = { guard: this.#guard, origins: this.#origins, serveHttp };
    const upgrades = new Upgrades({ routes, pathPrefix, authorize, onRequest, onError, ...own });
    this.#server.on("upgrade", (request, socket, head) => {
      if (this.#stopping) socket.destroy();
      else if (upgrades.take(request, socket, head)) this.#sockets.delete(socket as Socket);
    });
    return upgrades;
  }

  #onEnd(socket: Socket): void {
    for (const response of this.#running)
      if (response.socket === socket) keepHalfClosed(response, this.#guard);
  }

  #serveInTurn(request: IncomingMessage, response: ServerResponse): void {
    const { socket } = request;
    // A request of HTTP/2 had its turn before it came here.
    if (!(socket instanceof Socket)) {
      this.#serve(request, response);
      return;
    }
    const begin = (): void => {
      if (!socket.destroyed) void this.#guard.run(request, () => this.#serve(request, response));
    };
    const turn = turnOf(request.headers, request.url ?? "");
    if (!this.#turns.run(socket, begin, turn)) this.#guard.cut(socket, "ahead");
  }

  #serve(request: IncomingMessage, response: ServerResponse): void {
    this.#track(response);
    const route = request.method === "POST" ? this.#rawRouteOf(pathOf(request)) : undefined;
    const raw = route === undefined ? undefined : this.#options.rawRoutes.get(route);
    const clean = raw === undefined ? cleanUrl(request.url ?? "/") : undefined;
    if (raw !== undefined) this.#serveRaw(raw, route as string, request, response);
    else if (clean === undefined) this.#router(request, response);
    else this.#redirect(clean, response);
  }

  /** The raw route that a path belongs to, if any. */
  #rawRouteOf(path: string): string | undefined {
    if (this.#options.rawRoutes.has(path)) return path;
    return this.#rawPatterns.find(({ pattern }) => pattern.test(path))?.path;
  }

  #redirect(location: string, response: ServerResponse): void {
    const answer = { status: movedPermanently, headers: { location } };
    serveObserved(this.#observing, response, { name: unknownRoute }, () =>
      sendAnswer(this.#options, response, answer),
    );
  }

  #track(response: ServerResponse): void {
    const { socket } = response;
    this.#running.add(response);
    if (this.#stopping) response.setHeader("connection", "close");
    response.once("close", () => {
      this.#running.delete(response);
      if (this.#stopping && socket !== null && !this.#isBusy(socket)) socket.end();
    });
  }

  #isBusy(socket: Socket): boolean {
    for (const response of this.#running) if (response.socket === socket) return true;
    return false;
  }

  /** Ends a connection that is idle, or whose client does not take the answer; a running handler may take longer. */
  #onSilence(socket: Socket): void {
    if (socket.writableLength > 0 || !this.#isBusy(socket)) socket.destroy();
  }

  #serveRaw(
    handler: RawHandler,
    route: string,
    request: IncomingMessage,
    response: ServerResponse,
  ): void {
    const pattern = route.slice(this.#options.pathPrefix.length);
    serveObserved(this.#observing, response, { name: routeName(pattern), pattern }, () =>
      this.#runRaw(handler, pattern, request, response),
    );
  }

  async #runRaw(
    handler: RawHandler,
    path: string,
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<void> {
    try {
      this.#origins.checkChange(request.headers);
      const { authorize } = this.#options;
      if (authorize !== undefined) await authorize(request.headers, path);
      await handler(request, response);
    } catch (error) {
      await answerFailure(this.#options, request, response, error);
    }
  }
}

/** The event of a connection that is ready for requests. */
function connectionEvent({ tls }: HttpServerOptions): "connection" | "secureConnection" {
  return tls === undefined ? "connection" : "secureConnection";
}

function keepUntilClosed(sockets: Set<Socket>, socket: Socket): void {
  sockets.add(socket);
  socket.once("close", () => sockets.delete(socket));
}

/** The shortest of several timeouts; 0: no limit. */
function shortest(...timeoutsMs: readonly number[]): number {
  const limits = timeoutsMs.filter((limit) => limit > 0);
  return limits.length === 0 ? 0 : Math.min(...limits);
}

/** The same with a normal prefix, which raw routes have in their paths. */
function withPrefix(options: HttpServerOptions): HttpServerOptions {
  const pathPrefix = normalPrefix(options.pathPrefix);
  const rawRoutes = [...options.rawRoutes].map(([path, raw]) => [pathPrefix + path, raw] as const);
  return { ...options, pathPrefix, rawRoutes: new Map(rawRoutes) };
}

/** Errors of raw handlers end with a line feed, as agents expect. */
async function answerFailure(
  options: HttpServerOptions,
  request: IncomingMessage,
  response: ServerResponse,
  error: unknown,
): Promise<void> {
  const answer = errorAnswer(error);
  if (answer.status === 500) options.onError?.(error, request);
  if (response.headersSent) {
    response.destroy();
    return;
  }
  const body = `${String(answer.body).trimEnd()}\n`;
  await sendAnswer(options, response, { ...answer, body });
}

function timeoutsOf(options: HttpServerOptions) {
  const { readTimeoutMs, readHeaderTimeoutMs, idleTimeoutMs } = options;
  const headersTimeout = shortest(readTimeoutMs, readHeaderTimeoutMs);
  const checkPeriodMs = headersTimeout === 0 ? maxCheckPeriodMs : headersTimeout / 4;
  return {
    maxHeaderSize: maxHeaderBytes,
    requestTimeout: readTimeoutMs,
    headersTimeout,
    keepAliveTimeout: idleTimeoutMs,
    ...(headersTimeout === 0 ? {} : { handshakeTimeout: headersTimeout }),
    connectionsCheckingInterval: Math.max(
      minCheckPeriodMs,
      Math.min(checkPeriodMs, maxCheckPeriodMs),
    ),
  };
}

/** Time until the first check whether a half-closed client is still there, and the longest time between two. */
const firstLookMs = 20;
const maxLookMs = 1000;

/**
 * Keeps the answer to a client that has ended its side of the connection. The client may still read or be gone, which the
 * connection does not show; but an interim answer cannot be delivered to a client that is gone. HTTP/1.0 has no interim
 * answers, so its clients get one second.
 */
function keepHalfClosed(response: ServerResponse, guard: ConnectionGuard): void {
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

/** A prefix in its normal form: `logs/` -> `/logs`, `/` -> nothing. */
function normalPrefix(prefix: string): string {
  const names = prefix.split("/").filter((name) => name !== "");
  return names.map((name) => `/${name}`).join("");
}

/** Characters that a `Location` header or its reader might misunderstand. */
const unsafe = /[^!-[\]-~]/gu;

/**
 * Where to send a client whose path has empty parts or dots in it: the clean path and its query string; undefined when
 * there is nothing to clean.
 */
function cleanUrl(url: string): string | undefined {
  if (!url.startsWith("/") || !(url.includes("//") || url.includes("/."))) return undefined;
  const path = pathOf({ url });
  const clean = posix.normalize(path).replace(/^\/+/, "/");
  if (clean === path) return undefined;
  return (clean + url.slice(path.length)).replace(unsafe, encodeURIComponent);
}
