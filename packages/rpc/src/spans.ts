import type { Metadata } from "@grpc/grpc-js";
import {
  beginPart,
  beginServed,
  parseTraceparent,
  type Span,
  type SpanAttributes,
} from "@skald/runtime/tracing";

/** Begins the span of a call to another process; undefined where the caller is in no trace, as one that waits for work. */
export function beginCalling(path: string, address: string): Span | undefined {
  const attributes = { ...attributesOf(path), "server.address": address };
  return beginPart(path.slice(1), { kind: "client", attributes });
}

/** Begins the span of a call that came in; undefined where the caller is in no trace. `path` is that of a method that is there. */
export function beginCalled(path: string, metadata: Metadata): Span | undefined {
  const [traceparent, tracestate] = ["traceparent", "tracestate"].map((key) => {
    const [value] = metadata.get(key);
    return value?.toString();
  });
  const parent = parseTraceparent(traceparent, tracestate);
  if (parent === undefined) return undefined;
  return beginServed(path.slice(1), { attributes: attributesOf(path) }, parent);
}

function attributesOf(path: string): SpanAttributes {
  const [, service, method] = path.split("/");
  return { "rpc.system": "grpc", "rpc.service": service, "rpc.method": method };
}
