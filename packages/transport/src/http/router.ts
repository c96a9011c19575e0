import type { IncomingMessage } from "node:http";
import { errorCodeOf, freeBuffer, invalidArgument } from "@skald/model";
import express from "express";
import type { AllowedOrigins } from "../allowed-origins.js";
import type { ConnectionGuard } from "../connection-guard.js";
import { RequestTurns, turnOf } from "../request-turns.js";
import { errorAnswer, sendAnswer } from "./answer.js";
import { maxFormBytes, parseForm, readBody } from "./body.js";
import {
  type RequestObserver,
  routeName,
  type ServedRoute,
  serveObserved,
  unknownRoute,
} from "./observe.js";
import {
  type Authorize,
  type HttpRequest,
  type HttpResponse,
  type Route,
  textResponse,
} from "./route.js";

export interface RouterOptions {
  readonly maxBodyBytes: number;
  readonly compressResponses: boolean;
  readonly pathPrefix: string;
  readonly routes: readonly Route[];
  readonly guard: ConnectionGuard;
  readonly origins: AllowedOrigins;
  /** Paths that take POST and are served before the router. */
  readonly rawRoutes: ReadonlyMap<string, unknown>;
  /** Called when a request begins; the function that it returns is called when the request ends. */
  readonly onRequest?: RequestObserver;
  readonly authorize?: Authorize | undefined;
  readonly onError?: (error: unknown, request: Pick<IncomingMessage, "method" | "url">) => void;
}

/** Serves routes by method and path; answers 405 on a known path, 404 on any other. */
export function buildRouter(options: RouterOptions): express.Express {
  const app = express();
  app.disable("x-powered-by");
  app.disable("etag");
  // A proxy's rule for /config must cover every path that serves /config.
  app.enable("case sensitive routing");
  app.enable("strict routing");
  const allowed = new Map<string, { methods: Set<string>; name: string }>();
  const allow = (path: string, name: string, methods: readonly string[]) => {
    const known = allowed.get(path) ?? { methods: new Set(), name };
    allowed.set(path, known);
    for (const method of methods) known.methods.add(method);
  };
  // Express tries its routes one after the other, which takes as long as a small answer does: those without variables are looked up.
  const plain = new Map<string, express.RequestHandler>();
  app.use((request, response, next) => {
    const handler = plain.get(`${request.method} ${request.path}`);
    if (handler === undefined) next();
    else handler(request, response, next);
  });
  for (const route of options.routes) {
    const path = options.pathPrefix + route.path;
    const name = route.name ?? routeName(route.path);
    allow(path, name, route.methods);
    for (const method of route.methods) {
      const handler: express.RequestHandler = (request, response) => {
        const served = { name, pattern: route.path };
        serveObserved(options, response, served, () => serve(options, route, request, response));
      };
      app[method.toLowerCase() as "get" | "post" | "put" | "delete"](path, handler);
      const key = `${method} ${path}`;
      if (isPlain(path) && !plain.has(key)) plain.set(key, handler);
    }
  }
  for (const path of options.rawRoutes.keys())
    allow(path, routeName(path.slice(options.pathPrefix.length)), ["POST"]);
  for (const [path, { methods, name }] of allowed) {
    const headers = { allow: [...methods].sort().join(", ") };
    const pattern = path.slice(options.pathPrefix.length);
    app.all(path, answerAlways(options, { name, pattern }, { status: 405, headers }));
  }
  const unknown = { name: unknownRoute, pattern: unknownRoute };
  app.use(answerAlways(options, unknown, textResponse(404, "404 page not found\n")));
  app.use(failOf(options));
  return app;
}

/** Whether a path stands for itself alone. */
function isPlain(path: string): boolean {
  return /^[\w/.-]*$/.test(path);
}

function answerAlways(
  options: RouterOptions,
  route: ServedRoute,
  answer: HttpResponse,
): express.RequestHandler {
  return (_, response) =>
    serveObserved(options, response, route, () => sendAnswer(options, response, answer));
}

/** Answers errors of the router itself, which throws on paths that cannot be decoded. */
function failOf(options: RouterOptions): express.ErrorRequestHandler {
  return (error: unknown, request, response, _next) => {
    serveObserved(options, response, { name: unknownRoute }, () => {
      const isPath = error instanceof URIError;
      if (!isPath) options.onError?.(error, request);
      const answer = errorAnswer(isPath ? invalidArgument("the path cannot be decoded") : error);
      return sendAnswer(options, response, answer);
    });
  };
}

async function serve(
  options: RouterOptions,
  route: Route,
  request: express.Request,
  response: express.Response,
): Promise<void> {
  const left = new AbortController();
  response.once("close", () => {
    if (!response.writableFinished) left.abort();
  });
  let answer: HttpResponse;
  try {
    if (route.isAction === true || !isSafe(request.method))
      options.origins.checkChange(request.headers);
    await options.authorize?.(request.headers, route.path);
    answer = await route.handler(await readRequest(options, route, request, left.signal));
  } catch (error) {
    answer = errorAnswer(error, request.headers.accept);
    if (isOurs(error, answer)) options.onError?.(error, request);
  }
  try {
    await sendAnswer(options, response, answer);
  } catch (error) {
    options.onError?.(error, request);
    response.destroy();
  }
}

/** Whether an operator should see an error. */
function isOurs(error: unknown, { status }: HttpResponse): boolean {
  return status === 500 || errorCodeOf(error) === "newer_version";
}

/** Whether requests with a method should change nothing. */
function isSafe(method: string): boolean {
  return method === "GET" || method === "HEAD";
}

async function readRequest(
  options: RouterOptions,
  route: Route,
  request: express.Request,
  signal: AbortSignal,
): Promise<HttpRequest> {
  const url = request.originalUrl;
  const at = url.indexOf("?");
  const query = parseForm(Buffer.from(at < 0 ? "" : url.slice(at + 1)));
  const hasBody =
    request.headers["content-length"] !== undefined ||
    request.headers["transfer-encoding"] !== undefined;
  const hasForm = route.takesBody !== true && isForm(request.headers["content-type"]);
  const { maxBodyBytes } = options;
  let body: Uint8Array = hasBody
    ? await readBody(request, hasForm ? Math.min(maxFormBytes, maxBodyBytes) : maxBodyBytes)
    : new Uint8Array(0);
  let params = query;
  if (hasForm) {
    if (body.length > smallFormBytes) await formTurn(request);
    params = parseForm(Buffer.from(body.buffer, body.byteOffset, body.length));
    freeBuffer(body);
    for (const [key, value] of query) params.append(key, value);
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

/** Forms up to this size wait for no turn: no dashboard sends longer ones. */
const smallFormBytes = 16 * 1024;
const formTurns = new RequestTurns();

/** Resolves when a long form may be read: several would keep others waiting, as bodies that arrive together end together. */
function formTurn(request: express.Request): Promise<void> {
  const turn = turnOf(request.headers, request.originalUrl);
  return new Promise((resolve) => formTurns.run(request, resolve, turn));
}

function isForm(contentType = ""): boolean {
  return /^application\/x-www-form-urlencoded\s*(?:;|$)/i.test(contentType);
}
