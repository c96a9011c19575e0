import type { IncomingHttpHeaders } from "node:http";
import type { EndpointDocs } from "./endpoint.js";

/** A request as endpoints see it: parsed, limited, with a signal that fires when the client leaves. */
export interface HttpRequest {
  readonly method: string;
  /** Path as sent, without the query string. */
  readonly path: string;
  /** Variables of the route, decoded. */
  readonly variables: Readonly<Record<string, string>>;
  readonly headers: IncomingHttpHeaders;
  /** Form body and query string together, in this order: the first of a name is what counts. */
  readonly params: URLSearchParams;
  /** Body of a request that is not a form; empty when there is none. */
  readonly body: Uint8Array;
  readonly signal: AbortSignal;
}

export interface HttpResponse {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: HttpBody;
}

/** A body in one piece, or its pieces in order, which are asked for when the client has taken those before. */
export type HttpBody = string | Uint8Array | Iterable<Uint8Array> | AsyncIterable<Uint8Array>;

export type HttpHandler = (request: HttpRequest) => Promise<HttpResponse> | HttpResponse;

export interface Route {
  readonly methods: readonly string[];
  /** Express path, for example `/loki/api/v1/label/:name/values`. */
  readonly path: string;
  readonly handler: HttpHandler;
  /** Value of the `route` label of the request metrics; default: made from the path. */
  readonly name?: string;
  /** Its GET changes something, too: no page of another origin may have a browser send it. */
  readonly isAction?: boolean;
  /** The body is none of a form, whatever its type says: curl calls any body one. */
  readonly takesBody?: boolean;
  /** What is to be known about it; each route of the program has this. */
  readonly docs?: EndpointDocs;
}

const textType = "text/plain; charset=utf-8";

/** An answer in plain text, never sniffed for another type. */
export function textResponse(status: number, body: string): HttpResponse {
  return {
    status,
    headers: { "content-type": textType, "x-content-type-options": "nosniff" },
    body,
  };
}

/** An answer in JSON, ended by a line feed. */
export function jsonResponse(status: number, value: unknown): HttpResponse {
  return jsonTextResponse(status, `${JSON.stringify(value)}\n`);
}

export function jsonTextResponse(status: number, body: HttpBody): HttpResponse {
  return { status, headers: { "content-type": "application/json; charset=UTF-8" }, body };
}
