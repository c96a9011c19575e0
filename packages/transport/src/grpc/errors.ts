import type { IncomingHttpHeaders, OutgoingHttpHeaders } from "node:http2";
import { type ErrorCode, errorCodeOf, errorStatus, SkaldError, textForClients } from "@skald/model";
import { decodeMessage, double, encodeMessage, text, uint } from "../protobuf/codec.js";
import { field, message, optional } from "../protobuf/message.js";
import { decodeStatusText, encodeStatusText, grpcStatus } from "./status.js";

/** What an error is on the wire, in the trailer `skald-error-bin`. */
interface WireError {
  readonly code: string;
  readonly message: string;
  readonly status?: number;
  readonly retryAfterSeconds?: number;
  /** JSON */
  readonly detail?: string;
}

const errorCodec = message<WireError>({
  code: field(1, text),
  message: field(2, text),
  status: optional(3, uint),
  retryAfterSeconds: optional(4, double),
  detail: optional(5, text),
});

const trailer = "skald-error-bin";
/** Trailers are limited: what an error says beyond this is cut, what it adds to that is left out. */
const maxMessageLetters = 6_000;
const maxDetailLetters = 6_000;
/** The status line is for other tools than ours. */
const maxStatusLetters = 500;

const statusOf: Readonly<Record<ErrorCode, number>> = {
  invalid_argument: grpcStatus.invalid_argument,
  unauthenticated: grpcStatus.unauthenticated,
  not_found: grpcStatus.not_found,
  method_not_allowed: grpcStatus.unimplemented,
  too_large: grpcStatus.out_of_range,
  unprocessable: grpcStatus.failed_precondition,
  rate_limited: grpcStatus.resource_exhausted,
  cancelled: grpcStatus.cancelled,
  internal: grpcStatus.internal,
  unavailable: grpcStatus.unavailable,
  newer_version: grpcStatus.failed_precondition,
  deadline_exceeded: grpcStatus.deadline_exceeded,
};

/** The trailers of a call that failed: the status of gRPC, and the error itself. */
export function trailersOfError(error: unknown): OutgoingHttpHeaders {
  const code = errorCodeOf(error);
  const text = error instanceof SkaldError ? error.message : textForClients(error);
  const shown = error instanceof SkaldError ? error : undefined;
  const detail = detailText(shown?.detail);
  const wire: WireError = {
    code,
    message: cut(text, maxMessageLetters),
    ...(shown === undefined || shown.status === errorStatus[code] ? {} : { status: shown.status }),
    ...(shown?.retryAfterSeconds === undefined
      ? {}
      : { retryAfterSeconds: shown.retryAfterSeconds }),
    ...(detail === undefined || detail.length > maxDetailLetters ? {} : { detail }),
  };
  return {
    "grpc-status": String(statusOf[code]),
    "grpc-message": encodeStatusText(cut(text, maxStatusLetters)),
    [trailer]: Buffer.from(encodeMessage(errorCodec, wire)).toString("base64"),
  };
}

/** The error that a call failed with, of the same kind, text and fields as it was thrown with over there; undefined: it did not fail. */
export function errorOfTrailers(
  trailers: IncomingHttpHeaders,
  address: string,
): SkaldError | undefined {
  const status = Number(trailers["grpc-status"] ?? grpcStatus.unknown);
  if (status === grpcStatus.ok) return undefined;
  const encoded = trailers[trailer];
  const thrown = typeof encoded === "string" ? readError(encoded) : undefined;
  if (thrown !== undefined) return thrown;
  const text = decodeStatusText(String(trailers["grpc-message"] ?? ""));
  return new SkaldError(codeOfStatus(status), `${address}: ${text} (status ${status})`);
}

function readError(encoded: string): SkaldError | undefined {
  try {
    const {
      code,
      message: text,
      detail,
      ...rest
    } = decodeMessage(errorCodec, Buffer.from(encoded, "base64"));
    // A kind that a newer version has is, to this one, a fault of the other side.
    const known = Object.hasOwn(errorStatus, code) ? (code as ErrorCode) : "internal";
    return new SkaldError(known, text, {
      ...rest,
      ...(detail === undefined ? {} : { detail: JSON.parse(detail) }),
    });
  } catch {
    return undefined;
  }
}

/** What a status means that does not come from our code: the connection, or a server of another kind. */
function codeOfStatus(status: number): ErrorCode {
  if (status === grpcStatus.deadline_exceeded) return "deadline_exceeded";
  if (status === grpcStatus.not_found) return "not_found";
  if (status === grpcStatus.invalid_argument) return "invalid_argument";
  if (status === grpcStatus.resource_exhausted) return "too_large";
  if (status === grpcStatus.unauthenticated || status === grpcStatus.permission_denied)
    return "unauthenticated";
  return "unavailable";
}

function detailText(detail: unknown): string | undefined {
  if (detail === undefined) return undefined;
  try {
    return JSON.stringify(detail);
  } catch {
    return undefined;
  }
}

function cut(text: string, letters: number): string {
  return text.length <= letters ? text : `${text.slice(0, letters)}…`;
}
