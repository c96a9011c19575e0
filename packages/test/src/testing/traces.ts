import { createServer, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { gunzipSync } from "node:zlib";
import protobuf from "protobufjs";

/** A span as a collector receives it. */
export interface CollectedSpan {
  /** `service.name` of the sender. */
  readonly service: string;
  readonly name: string;
  readonly traceId: string;
  readonly spanId: string;
  /** Empty for the first span of a trace. */
  readonly parentId: string;
  readonly state: string;
  readonly attributes: Readonly<Record<string, string | number | undefined>>;
}

/** What of OTLP the tests look at. */
const requestType = protobuf
  .parse(`
    syntax = "proto3";
    message Value { oneof value { string text = 1; int64 int = 3; double double = 4; } }
    message KeyValue { string key = 1; Value value = 2; }
    message Resource { repeated KeyValue attributes = 1; }
    message Span {
      bytes trace_id = 1; bytes span_id = 2; string state = 3; bytes parent_id = 4; string name = 5;
      repeated KeyValue attributes = 9;
    }
    message Scope { repeated Span spans = 2; }
    message ResourceSpans { Resource resource = 1; repeated Scope scopes = 2; }
    message Request { repeated ResourceSpans resources = 1; }`)
  .root.lookupType("Request");

interface KeyValue {
  readonly key: string;
  readonly value: { readonly text?: string; readonly int?: number; readonly double?: number };
}

interface Request {
  readonly resources: readonly {
    readonly resource: { readonly attributes: readonly KeyValue[] };
    readonly scopes: readonly {
      readonly spans: readonly {
        readonly traceId: Uint8Array;
        readonly spanId: Uint8Array;
        readonly state: string;
        readonly parentId: Uint8Array;
        readonly name: string;
        readonly attributes: readonly KeyValue[];
      }[];
    }[];
  }[];
}

/** Takes spans by OTLP over HTTP, as a collector does. */
export class Collector {
  readonly spans: CollectedSpan[] = [];
  readonly #server: Server;

  private constructor() {
    this.#server = createServer((incoming, response) => {
      void readAll(incoming).then((body) => {
        this.spans.push(...spansOf(body));
        response.setHeader("content-type", "application/x-protobuf");
        response.end();
      });
    });
  }

  static async start(): Promise<Collector> {
    const collector = new Collector();
    await new Promise<void>((resolve) => collector.#server.listen(0, "127.0.0.1", resolve));
    return collector;
  }

  /** The value for OTEL_EXPORTER_OTLP_ENDPOINT. */
  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  of(traceId: string): CollectedSpan[] {
    return this.spans.filter((one) => one.traceId === traceId);
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}

async function readAll(incoming: IncomingMessage): Promise<Uint8Array> {
  const pieces: Buffer[] = [];
  for await (const piece of incoming) pieces.push(piece as Buffer);
  const body = Buffer.concat(pieces);
  return incoming.headers["content-encoding"] === "gzip" ? gunzipSync(body) : body;
}

function spansOf(body: Uint8Array): CollectedSpan[] {
  const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString("hex");
  const options = { longs: Number, defaults: true, arrays: true };
  const { resources } = requestType.toObject(requestType.decode(body), options) as Request;
  return resources.flatMap(({ resource: { attributes }, scopes }) => {
    const service = String(textsOf(attributes)["service.name"]);
    return scopes.flatMap(({ spans }) =>
      spans.map(({ traceId, spanId, parentId, name, state, attributes: own }) => ({
        ...{ service, name, state, attributes: textsOf(own) },
        ...{ traceId: hex(traceId), spanId: hex(spanId), parentId: hex(parentId) },
      })),
    );
  });
}

function textsOf(attributes: readonly KeyValue[]): Record<string, string | number | undefined> {
  return Object.fromEntries(
    attributes.map(({ key, value }) => [key, value.text ?? value.int ?? value.double]),
  );
}

/** The id of the span with which a client begins the traces of tests. */
export const callerId = "00f067aa0ba902b7";

/** Spans whose parent is not in the list. There are none when the trace is complete. */
export function orphansOf(spans: readonly CollectedSpan[]): CollectedSpan[] {
  const known = new Set([callerId, ...spans.map(({ spanId }) => spanId)]);
  return spans.filter(({ parentId }) => !known.has(parentId));
}

/** Environment variables of a process that sends its spans at once. */
export function sendingTo(endpoint: string): Record<string, string> {
  return { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, OTEL_BSP_SCHEDULE_DELAY: "50" };
}

export const tracedTenant = "traced";
export const pushRoute = "POST /loki/api/v1/push";
export const queryRoute = "GET /loki/api/v1/query_range";

/** The headers of a client that has begun a trace. */
export function traced(traceId: string, flags = "01") {
  return {
    "x-scope-orgid": tracedTenant,
    "content-type": "application/json",
    traceparent: `00-${traceId}-${callerId}-${flags}`,
    tracestate: "vendor=1",
  };
}

/** Pushes a line with the headers of `traced`. */
export function pushTraced(url: string, headers: Record<string, string>): Promise<Response> {
  const values = [[`${Date.now()}000000`, "hello"]];
  const body = JSON.stringify({ streams: [{ stream: { app: "a" }, values }] });
  return fetch(`${url}/loki/api/v1/push`, { method: "POST", headers, body });
}

/** Queries that line. */
export function queryTraced(url: string, headers: Record<string, string>): Promise<Response> {
  const asked = new URLSearchParams({ query: '{app="a"} |= "hello"', limit: "10" });
  return fetch(`${url}/loki/api/v1/query_range?${asked}`, { headers });
}
