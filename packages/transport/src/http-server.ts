import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import { errorCodeOf, SkaldError } from "@skald/model";
import express from "express";
import { readBody } from "./body.js";
import { type HttpRequest, type HttpResponse, type Route, textResponse } from "./http.js";
import { maxTenantHeaderBytes } from "./tenant.js";

/** A handler on plain node:http objects for requests that must not pay for a router. */
export type RawHandler = (request: IncomingMessage, response: ServerResponse) => Promise<void>;

export interface HttpServerOptions {
  readonly address: string;
  readonly port: number;
  readonly readTimeoutMs: number;
  readonly idleTimeoutMs: number;
  readonly gracefulShutdownMs: number;
  /** Form bodies and JSON bodies of endpoints other than push. */
  readonly maxBodyBytes: number;
  readonly compressResponses: boolean;
  readonly pathPrefix: string;
  readonly routes: readonly Route[];
  /** Exact paths whose POSTs go straight to a handler, before the router. */
  readonly rawRoutes: ReadonlyMap<string, RawHandler>;
  readonly upgrade?: (request: IncomingMessage, socket: Socket, head: Buffer) => void;
  readonly onRequest?: (facts: RequestFacts) => void;
  readonly onError?: (error: unknown, request: IncomingMessage) => void;
}

/** What the request metrics and the access log need. */
export interface RequestFacts {
  readonly method: string;
  readonly route: string;
  readonly status: number;
  readonly durationMs: number;
}

/** Answers smaller than this are not worth compressing. */
const minCompressBytes = 1400;
const compress = promisify(gzip);

/** The HTTP side of a process: express for the endpoints, plain node:http for pushes. */
export class HttpServer {
  readonly #options: HttpServerOptions;
  readonly #server: Server;

  constructor(options: HttpServerOptions) {
    this.#options = options;
    const app = buildApp(options);
    this.#server = createServer({ maxHeaderSize: maxTenantHeaderBytes }, (request, response) => {
      const raw = request.method === "POST" ? options.rawRoutes.get(pathOf(request)) : undefined;
      if (raw === undefined) app(request, response);
      else void this.#serveRaw(raw, request, response);
    });
    this.#server.requestTimeout = options.readTimeoutMs;
    this.#server.keepAliveTimeout = options.idleTimeoutMs;
    this.#server.on("upgrade", (request, socket, head) => {
      if (options.upgrade === undefined) socket.destroy();
      else options.upgrade(request, socket as Socket, head);
    });
  }

  /** Listens; resolves with the port, which is chosen by the system when 0 was asked for. */
  start(): Promise<number> {
    return new Promise((resolve, reject) => {
      this.#server.once("error", reject);
      this.#server.listen(
        this.#options.port,
        this.#options.address === "" ? undefined : this.#options.address,
        () => {
          this.#server.off("error", reject);
          resolve((this.#server.address() as AddressInfo).port);
        },
      );
    });
  }

  /** Stops accepting, lets running requests end within the grace, then cuts the rest. */
  stop(): Promise<void> {
    return new Promise((resolve) => {
      const cut = setTimeout(
        () => this.#server.closeAllConnections(),
        this.#options.gracefulShutdownMs,
      );
      this.#server.close(() => {
        clearTimeout(cut);
        resolve();
      });
      this.#server.closeIdleConnections();
    });
  }

  async #serveRaw(
    handler: RawHandler,
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<void> {
    observe(this.#options, request, response, routeName(pathOf(request)));
    try {
      await handler(request, response);
    } catch (error) {
      this.#options.onError?.(error, request);
      if (!response.headersSent) await send(this.#options, request, response, errorResponse(error));
    }
  }
}

function buildApp(options: HttpServerOptions): express.Express {
  const app = express();
  app.disable("x-powered-by");
  app.disable("etag");
  const paths = new Set<string>();
  for (const route of options.routes) {
    const path = options.pathPrefix + route.path;
    paths.add(path);
    for (const method of route.methods) {
      app[method.toLowerCase() as "get" | "post" | "put" | "delete"](path, (request, response) => {
        observe(options, request, response, route.name ?? routeName(route.path));
        void serve(options, route, request, response);
      });
    }
  }
  for (const path of paths) app.all(path, (_request, response) => void response.status(405).end());
  app.use(
    (request, response) =>
      void send(options, request, response, textResponse(404, "404 page not found\n")),
  );
  return app;
}

async function serve(
  options: HttpServerOptions,
  route: Route,
  request: express.Request,
  response: express.Response,
): Promise<void> {
  const left = new AbortController();
  response.once("close", () => left.abort());
  let answer: HttpResponse;
  try {
    answer = await route.handler(await readRequest(options, request, left.signal));
  } catch (error) {
    if (errorCodeOf(error) === "internal") options.onError?.(error, request);
    answer = errorResponse(error);
  }
  await send(options, request, response, answer);
}

async function readRequest(
  options: HttpServerOptions,
  request: express.Request,
  signal: AbortSignal,
): Promise<HttpRequest> {
  const url = request.originalUrl;
  const at = url.indexOf("?");
  const params = new URLSearchParams(at < 0 ? "" : url.slice(at + 1));
  const hasBody =
    request.headers["content-length"] !== undefined ||
    request.headers["transfer-encoding"] !== undefined;
  let body: Uint8Array = hasBody
    ? await readBody(request, options.maxBodyBytes)
    : new Uint8Array(0);
  if ((request.headers["content-type"] ?? "").startsWith("application/x-www-form-urlencoded")) {
    for (const [key, value] of new URLSearchParams(Buffer.from(body).toString()))
      params.append(key, value);
    body = new Uint8Array(0);
  }
  return {
    method: request.method,
    path: at < 0 ? url : url.slice(0, at),
    variables: request.params as Record<string, string>,
    headers: request.headers,
    params,
    body,
    signal,
  };
}

async function send(
  options: HttpServerOptions,
  request: IncomingMessage,
  response: ServerResponse,
  answer: HttpResponse,
): Promise<void> {
  if (response.destroyed) return;
  let body = typeof answer.body === "string" ? Buffer.from(answer.body) : answer.body;
  for (const [name, value] of Object.entries(answer.headers ?? {})) response.setHeader(name, value);
  if (
    body !== undefined &&
    options.compressResponses &&
    wantsGzip(request) &&
    body.length >= minCompressBytes
  ) {
    body = await compress(body, { level: 1 });
    response.setHeader("content-encoding", "gzip");
    response.setHeader("vary", "Accept-Encoding");
  }
  response.statusCode = answer.status;
  if (body !== undefined) response.setHeader("content-length", body.length);
  response.end(request.method === "HEAD" ? undefined : body);
}

/** Query errors are plain text without a line feed; 5xx hide nothing, their text says what failed. */
function errorResponse(error: unknown): HttpResponse {
  if (error instanceof SkaldError) return textResponse(error.status, error.message);
  return textResponse(500, error instanceof Error ? error.message : String(error));
}

function wantsGzip(request: IncomingMessage): boolean {
  return /\bgzip\b/.test(String(request.headers["accept-encoding"] ?? ""));
}

function observe(
  options: HttpServerOptions,
  request: IncomingMessage,
  response: ServerResponse,
  route: string,
): void {
  const start = performance.now();
  response.once("close", () => {
    const durationMs = performance.now() - start;
    options.onRequest?.({
      method: request.method ?? "",
      route,
      status: response.statusCode,
      durationMs,
    });
  });
}

function pathOf(request: IncomingMessage): string {
  const url = request.url ?? "/";
  const at = url.indexOf("?");
  return at < 0 ? url : url.slice(0, at);
}

/** `/loki/api/v1/label/:name/values` -> `loki_api_v1_label_name_values`, as public dashboards expect it. */
function routeName(path: string): string {
  return path.slice(1).replaceAll(":", "").replaceAll("/", "_");
}
