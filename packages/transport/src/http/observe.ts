import type { IncomingMessage, ServerResponse } from "node:http";
import { markWork } from "@skald/runtime";
import {
  beginServed,
  formatTraceparent,
  isTracing,
  parseTraceparent,
  type Span,
  withinSpan,
} from "@skald/runtime/tracing";
import type { ConnectionGuard } from "../connection-guard.js";
import { writtenBytes } from "./answer.js";

export type RequestObserver = (start: RequestStart) => (facts: RequestFacts) => void;

/** The start of a request. */
export interface RequestStart {
  readonly method: string;
  /** The name of its route; `other` for unknown paths. */
  readonly route: string;
}

/** What the request metrics need. */
export interface RequestFacts extends RequestStart {
  readonly status: number;
  readonly durationMs: number;
  /** Bytes of the body as it came; undefined if the client did not declare its length. */
  readonly requestBytes: number | undefined;
  /** Bytes of the body as it was sent, compressed or not; undefined if the client left. */
  readonly responseBytes: number | undefined;
  /** The request opened a WebSocket. */
  readonly isSocket?: boolean;
}

/** The route of a request, for metrics and spans. */
export interface ServedRoute {
  readonly name: string;
  /** Names the span; without it the request has none. */
  readonly pattern?: string;
}

/** The route name of unknown paths. */
export const unknownRoute = "other";
const clientLeftStatus = 499;
/** Answers with this status or a higher one are faults of the server. */
const firstFaultStatus = 500;

/**
 * Runs the work that answers a request. Observers see the request, its span is named `GET /loki/api/v1/label/:name/values`
 * after its route, and if the work throws only its connection is cut.
 */
export function serveObserved(
  {
    guard,
    onRequest,
  }: { readonly guard: ConnectionGuard; readonly onRequest?: RequestObserver | undefined },
  response: ServerResponse,
  { name, pattern }: ServedRoute,
  serve: () => Promise<void>,
): void {
  void guard.run(response.req, () => {
    markRequest(response.req, name);
    if (onRequest !== undefined) observe(onRequest, response, name);
    if (pattern === undefined || !isTracing()) return serve();
    const span = beginRequest(response.req, pattern);
    response.setHeader("traceresponse", formatTraceparent(span.context));
    response.once("close", () => endRequest(span, response.statusCode));
    return withinSpan(span, serve);
  });
}

/** Names a request as the work that the main thread does from now on. */
export function markRequest({ headers, url }: IncomingMessage, route: string): void {
  const tenant = headers["x-scope-orgid"];
  markWork(route, typeof tenant === "string" ? tenant : "", url);
}

function observe(onRequest: RequestObserver, response: ServerResponse, route: string): void {
  const { req: request } = response;
  const start = performance.now();
  const begun = { method: request.method ?? "", route };
  const onEnd = onRequest(begun);
  let isFinished = false;
  // The answer to a pipelined request has no connection yet.
  const { socket } = request;
  // Node 20 emits `finish` also when the connection was cut.
  response.once("finish", () => {
    isFinished = !socket.destroyed;
  });
  response.once("close", () => {
    onEnd({
      ...begun,
      // The client left before it had the whole answer.
      status: isFinished ? response.statusCode : clientLeftStatus,
      durationMs: performance.now() - start,
      requestBytes: lengthOf(request.headers["content-length"]),
      responseBytes: isFinished ? bytesOf(response) : undefined,
    });
  });
}

function lengthOf(header: string | number | string[] | undefined): number | undefined {
  const length = Number(header);
  return header === undefined || Number.isNaN(length) ? undefined : length;
}

function bytesOf(response: ServerResponse): number | undefined {
  const { req: request, statusCode } = response;
  if (request.method === "HEAD" || statusCode === 204 || statusCode === 304) return 0;
  return writtenBytes(response) ?? lengthOf(response.getHeader("content-length") as string);
}

/** Begins the span of a request. */
export function beginRequest({ method = "", headers }: IncomingMessage, route: string): Span {
  const parent = parseTraceparent(headers.traceparent, headers.tracestate);
  const attributes = { "http.request.method": method, "http.route": route };
  return beginServed(`${method} ${route}`, { attributes }, parent);
}

/** Ends the span with the status of the answer; if the client left, with the status that it would have got. */
export function endRequest(span: Span, status: number): void {
  span.set({ "http.response.status_code": status });
  span.end(status >= firstFaultStatus ? `status ${status}` : undefined);
}

/** The path of a request as sent, without the query string. */
export function pathOf({ url = "/" }: Pick<IncomingMessage, "url">): string {
  const at = url.indexOf("?");
  return at < 0 ? url : url.slice(0, at);
}

/** `/loki/api/v1/label/:name/values` -> `loki_api_v1_label_name_values`, as public dashboards expect it. */
export function routeName(path: string): string {
  return path.slice(1).replaceAll(":", "").replaceAll("/", "_");
}
