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

/** A body in one piece, or in pieces; a piece is read when the client has taken the one before. */
export type HttpBody = string | Uint8Array | Iterable<Uint8Array> | AsyncIterable<Uint8Array>;

export type HttpHandler = (request: HttpRequest) => Promise<HttpResponse> | HttpResponse;

export interface Route {
  readonly methods: readonly string[];
  /** Express path, for example `/loki/api/v1/label/:name/values`. */
  readonly path: string;
  readonly handler: HttpHandler;
  /** Value of the `route` label of the request metrics; default: made from the path. */
  readonly name?: string;
  /** Also its GET changes something, so pages of other origins may not send it. */
  readonly isAction?: boolean;
  /** The body is never a form, whatever its media type says: curl declares every body as one. */
  readonly takesBody?: boolean;
  /** Every route of the program has docs. */
  readonly docs?: EndpointDocs;
}

/** Throws 401 or 403 unless the sender of a request may use a path, which is that of a route. */
export type Authorize = (headers: IncomingHttpHeaders, path: string) => Promise<void>;

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
 * The docs of an endpoint. They are part of its route, so that the page about the API, the OpenAPI file and the tests of all
 * endpoints follow the served routes. Routes with the same object are one endpoint with several paths.
 */
export interface EndpointDocs {
  readonly group: EndpointGroup;
  /** One sentence: what it does. */
  readonly says: string;
  readonly tenant: TenantRule;
  /** Its parameters, also those in the path. */
  readonly params?: readonly ParamDocs[];
  /** Accepted bodies by media type; an endpoint with parameters also accepts forms. */
  readonly bodies?: Readonly<Record<string, string>>;
  /** Whether a body may have any length, because it is served as it arrives. */
  readonly isStreamed?: boolean;
  /** Its successful answers by status. */
  readonly answers: Readonly<Record<number, string>>;
  /** Its own errors by status; errors that all endpoints share are left out. */
  readonly errors?: Readonly<Record<number, string>>;
  readonly example: ExampleDocs;
  /** How it differs from Loki, and why. */
  readonly differs?: string;
  /** Whether it ends the process. */
  readonly ends?: boolean;
}

/** Chapters of the page about the API, in their order there. */
export const endpointGroups = [
  "Ingest",
  "Query",
  "Explore",
  "Rules",
  "Deletion",
  "Interface",
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
  /** The default, in words. */
  readonly fallback?: string;
  /** The allowed values. */
  readonly values?: readonly string[];
  readonly repeats?: boolean;
}

/** An example request, and its answer in a process without data; tests send it. */
export interface ExampleDocs {
  /** Default: the first method of the route. */
  readonly method?: string;
  /** Values for the names in the path. */
  readonly variables?: Readonly<Record<string, string>>;
  readonly params?: Readonly<Record<string, string>>;
  readonly headers?: Readonly<Record<string, string>>;
  /** `$NOW` stands for the time in nanoseconds. */
  readonly body?: string;
  readonly status: number;
  /** A text that the answer contains. */
  readonly contains?: string;
}
