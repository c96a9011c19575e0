import type { IncomingHttpHeaders } from "node:http";

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

/**
 * What is to be known about an endpoint. Its route carries this, so that the page about the API, its OpenAPI file and the
 * tests of all endpoints are made from what is served. Routes with the same object are one endpoint under several names.
 */
export interface EndpointDocs {
  readonly group: EndpointGroup;
  /** One sentence: what it does. */
  readonly says: string;
  readonly tenant: TenantRule;
  /** Those in its path as well. */
  readonly params?: readonly ParamDocs[];
  /** Bodies that it takes, by media type; forms go without saying where there are parameters. */
  readonly bodies?: Readonly<Record<string, string>>;
  /** What its good answers carry, by status. */
  readonly answers: Readonly<Record<number, string>>;
  /** When it refuses for reasons of its own, by status; what all endpoints refuse goes without saying. */
  readonly errors?: Readonly<Record<number, string>>;
  readonly example: ExampleDocs;
  /** What is other than in the reference, and why. */
  readonly differs?: string;
  /** Whether the process ends by it. */
  readonly ends?: boolean;
}

/** Chapters of the page about the API, in their order there. */
export const endpointGroups = [
  "Ingest",
  "Query",
  "Explore",
  "Rules",
  "Deletion",
  "Status",
  "Operation",
  "Rings",
] as const;

export type EndpointGroup = (typeof endpointGroups)[number];

/** `none` needs no tenant, `one` exactly one, `many` also takes several, as `a|b`. */
export type TenantRule = "none" | "one" | "many";

/**
 * `logql` is any query, `selector` one of streams only; `time` is Unix seconds or nanoseconds, seconds with a fraction, or RFC
 * 3339; `span` a duration or seconds; `names` are names with commas.
 */
export type ParamType =
  | "logql"
  | "selector"
  | "time"
  | "duration"
  | "span"
  | "integer"
  | "boolean"
  | "size"
  | "text"
  | "names";

export interface ParamDocs {
  readonly name: string;
  readonly type: ParamType;
  readonly says: string;
  readonly required?: boolean;
  /** What holds without it, in words. */
  readonly fallback?: string;
  /** The only values that it may have. */
  readonly values?: readonly string[];
  readonly repeats?: boolean;
}

/** A request that shows the endpoint, and how it is answered by a process without data: tests send it. */
export interface ExampleDocs {
  /** The first method of the route if not given. */
  readonly method?: string;
  /** By the names in the path of the route. */
  readonly variables?: Readonly<Record<string, string>>;
  readonly params?: Readonly<Record<string, string>>;
  readonly headers?: Readonly<Record<string, string>>;
  /** `$NOW` in it stands for the time in nanoseconds. */
  readonly body?: string;
  readonly status: number;
  /** A part of the answer. */
  readonly contains?: string;
}
