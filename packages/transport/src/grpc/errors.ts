import { Metadata, type ServiceError, status } from "@grpc/grpc-js";
import {
  type ErrorCode,
  errorCodeOf,
  errorStatus,
  SkaldError,
  textForClients,
  unavailable,
} from "@skald/model";
import { decodeMessage, double, encodeMessage, text, uint } from "../protobuf/codec.js";
import { field, message, optional } from "../protobuf/message.js";

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

const statusOf: Readonly<Record<ErrorCode, status>> = {
  invalid_argument: status.INVALID_ARGUMENT,
  unauthenticated: status.UNAUTHENTICATED,
  not_found: status.NOT_FOUND,
  method_not_allowed: status.UNIMPLEMENTED,
  too_large: status.OUT_OF_RANGE,
  unprocessable: status.FAILED_PRECONDITION,
  rate_limited: status.RESOURCE_EXHAUSTED,
  cancelled: status.CANCELLED,
  internal: status.INTERNAL,
  unavailable: status.UNAVAILABLE,
  deadline_exceeded: status.DEADLINE_EXCEEDED,
};

/** How a call ends that failed: the status of gRPC, and the error as it is in a trailer. */
export function statusOfError(error: unknown) {
  const code = errorCodeOf(error);
  const metadata = new Metadata();
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
  metadata.set(trailer, Buffer.from(encodeMessage(errorCodec, wire)));
  return { code: statusOf[code], details: cut(text, maxStatusLetters), metadata };
}

/** The error that a call failed with, of the same kind, text and fields as it was thrown with over there. */
export function errorOfStatus(error: ServiceError, address: string): SkaldError {
  const [encoded] = error.metadata?.get(trailer) ?? [];
  const thrown = typeof encoded === "string" ? undefined : readError(encoded);
  if (thrown !== undefined) return thrown;
  const code = codeOfStatus(error.code);
  const text = `${address}: ${error.details}`;
  if (code === "unavailable") return unavailable(text, { cause: error });
  return new SkaldError(code, text, { cause: error });
}

function readError(encoded: Buffer | undefined): SkaldError | undefined {
  if (encoded === undefined) return undefined;
  try {
    const { code, message: text, detail, ...rest } = decodeMessage(errorCodec, encoded);
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
function codeOfStatus(code: status): ErrorCode {
  if (code === status.CANCELLED) return "unavailable";
  if (code === status.DEADLINE_EXCEEDED) return "deadline_exceeded";
  if (code === status.NOT_FOUND) return "not_found";
  if (code === status.INVALID_ARGUMENT) return "invalid_argument";
  if (code === status.RESOURCE_EXHAUSTED) return "too_large";
  if (code === status.UNAUTHENTICATED || code === status.PERMISSION_DENIED)
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
