import type { ByteAnswer, ByteCall, ByteHandler } from "@skald/rpc";
import { markWork } from "@skald/runtime";
import { ProtoWriter } from "@skald/transport/protobuf";
import type { PushDoor } from "./http.js";
import { failedResponse, type PushResponse } from "./push-response.js";
import { encodeRpcStatus } from "./rpc-status.js";

/** The method that exporters of OpenTelemetry call. */
export const otlpExportPath = "/opentelemetry.proto.collector.logs.v1.LogsService/Export";

/** The statuses of gRPC that OTLP gives a meaning: exporters send again after the last two only. */
const codes = {
  ok: 0,
  invalidArgument: 3,
  permissionDenied: 7,
  unauthenticated: 16,
  resourceExhausted: 8,
  unavailable: 14,
} as const;

/** What the message of a call is, in the words of HTTP. */
const contentType = "application/x-protobuf";
/** A status with its text must fit the headers of a client. */
const maxTextChars = 1_000;
const usualRetryAfterSeconds = 1;

/**
 * Serves OTLP over gRPC: the bytes of a call go the way of those of an OTLP push over HTTP, with the same limits.
 * `tenantOf` throws what the client is refused with before its message is read.
 */
export function createOtlpHandler(
  door: Pick<PushDoor, "serve">,
  tenantOf: (call: ByteCall) => string | Promise<string>,
): ByteHandler {
  return async (call) => {
    let tenant: string;
    try {
      tenant = await tenantOf(call);
    } catch (error) {
      return grpcAnswer(failedResponse(error));
    }
    markWork(otlpExportPath, tenant);
    return grpcAnswer(await serveCall(door, tenant, call));
  };
}

async function serveCall(
  door: Pick<PushDoor, "serve">,
  tenant: string,
  call: ByteCall,
): Promise<PushResponse> {
  let isEmpty = false;
  const answer = await door.serve(tenant, {
    isGone: () => call.isGone(),
    read: async (maxBytes, book, take) => {
      const { encoding, bytes } = await call.read(maxBytes, book, take);
      markWork(otlpExportPath, tenant);
      isEmpty = bytes.length === 0;
      const contentEncoding = encoding === "identity" ? undefined : encoding;
      return { contentType, contentEncoding, style: "otlp", body: bytes };
    },
  });
  // OTLP wants a call without records to succeed; a push without them is refused.
  return isEmpty ? { status: 204 } : answer;
}

function grpcAnswer({ status, text, retryAfterSeconds, rejected = 0 }: PushResponse): ByteAnswer {
  if (status < 300) {
    const isWhole = status === 204 || text === undefined;
    const message = isWhole ? new Uint8Array(0) : encodePartialSuccess(rejected, text);
    return { code: codes.ok, message, httpStatus: status };
  }
  const code = codeOf(status);
  const shown = text?.slice(0, maxTextChars) ?? "";
  const pause = retryAfterSeconds ?? usualRetryAfterSeconds;
  const isLater = code === codes.resourceExhausted || code === codes.unavailable;
  const retry = isLater ? { retryAfterSeconds: pause } : {};
  return {
    code,
    text: shown,
    details: encodeRpcStatus({ code, message: shown, ...retry }),
    httpStatus: status,
  };
}

function codeOf(status: number): ByteAnswer["code"] {
  if (status === 401) return codes.unauthenticated;
  if (status === 403) return codes.permissionDenied;
  if (status === 429) return codes.resourceExhausted;
  return status >= 500 ? codes.unavailable : codes.invalidArgument;
}

/** An `ExportLogsServiceResponse` with a `partial_success`. */
function encodePartialSuccess(rejected: number, text: string): Uint8Array {
  const writer = new ProtoWriter();
  writer.tag(1, 2);
  writer.nested(text, (partial) => {
    partial.tag(1, 0);
    partial.varint(rejected);
    partial.tag(2, 2);
    partial.text(text);
  });
  return writer.finish();
}
