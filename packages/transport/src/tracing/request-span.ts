import type { IncomingMessage, ServerResponse } from "node:http";
import {
  beginServed,
  formatTraceparent,
  isTracing,
  parseTraceparent,
  type Span,
  withinSpan,
} from "@skald/runtime/tracing";

/** From here on an answer is a fault of the server. */
const faults = 500;

/**
 * Serves a request within a span that is named after its route, `GET /loki/api/v1/label/:name/values`, and tells the client
 * its place in the trace by the header `traceresponse`. Nothing but the work where there are no spans.
 */
export function serveTraced<T>(
  request: IncomingMessage,
  response: ServerResponse,
  route: string,
  serve: () => Promise<T>,
): Promise<T> {
  if (!isTracing()) return serve();
  const span = beginRequest(request, route);
  response.setHeader("traceresponse", formatTraceparent(span.context));
  response.once("close", () => endRequest(span, response.statusCode));
  return withinSpan(span, serve);
}

/** Begins the span of a request. */
export function beginRequest({ method = "", headers }: IncomingMessage, route: string): Span {
  const parent = parseTraceparent(headers.traceparent, headers.tracestate);
  const attributes = { "http.request.method": method, "http.route": route };
  return beginServed(`${method} ${route}`, { attributes }, parent);
}

/** Ends it with the status of the answer; that of a client that left counts as it would have been. */
export function endRequest(span: Span, status: number): void {
  span.set({ "http.response.status_code": status });
  span.end(status >= faults ? `status ${status}` : undefined);
}
