import { Metadata, type StatusObject, status } from "@grpc/grpc-js";
import { decode, encode, type Inside } from "@skald/contracts/codec";
import { type ErrorCode, errorCodeOf, errorStatus, SkaldError, textForClients } from "@skald/model";
import { overLimit } from "./parts.js";

const trailer = "skald-error-bin";
/** Trailers are limited: a longer text is cut, a longer detail left out. */
const maxMessageLetters = 6_000;
const maxDetailLetters = 6_000;
/** The status line is for other tools. */
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
  newer_version: status.FAILED_PRECONDITION,
  deadline_exceeded: status.DEADLINE_EXCEEDED,
};

/** The end of a call that failed: the status of gRPC, and the error itself in a trailer. */
export function statusOfError(error: unknown): Partial<StatusObject> {
  const code = errorCodeOf(error);
  const text = error instanceof SkaldError ? error.message : textForClients(error);
  const shown = error instanceof SkaldError ? error : undefined;
  const detail = detailText(shown?.detail);
  const wire: Inside<"Error"> = {
    code,
    message: cut(text, maxMessageLetters),
    ...(shown === undefined || shown.status === errorStatus[code] ? {} : { status: shown.status }),
    ...(shown?.retryAfterSeconds === undefined
      ? {}
      : { retryAfterSeconds: shown.retryAfterSeconds }),
    ...(detail === undefined || detail.length > maxDetailLetters ? {} : { detail }),
  };
  const metadata = new Metadata();
  metadata.set(trailer, Buffer.from(encode("Error", wire)));
  return { code: statusOf[code], details: cut(text, maxStatusLetters), metadata };
}

/** The error that a call failed with, with the kind, text and fields that it was thrown with at `address`. */
export function errorOfStatus(
  { code, details, metadata }: StatusObject,
  address: string,
): SkaldError {
  const [encoded] = metadata.get(trailer);
  const thrown = encoded instanceof Buffer ? readError(encoded) : undefined;
  if (thrown !== undefined) return thrown;
  const sizes = /^Received message larger than max \((\d+) vs\.? (\d+)\)/.exec(details);
  if (sizes !== null)
    return overLimit(
      Number(sizes[1]),
      Number(sizes[2]),
      `grpc_server_max_recv_msg_size of ${address}, or max_recv_msg_size`,
    );
  return new SkaldError(codeOfStatus(code), `${address}: ${details} (status ${code})`);
}

function readError(encoded: Buffer): SkaldError | undefined {
  try {
    const { code, message, detail, ...rest } = decode("Error", encoded);
    // To a process that does not know the kind the error is a fault of the other side.
    const known = Object.hasOwn(errorStatus, code) ? (code as ErrorCode) : "internal";
    return new SkaldError(known, message, {
      ...rest,
      ...(detail === undefined ? {} : { detail: JSON.parse(detail) }),
    });
  } catch {
    return undefined;
  }
}

/** The meaning of a status that does not come from Skald: of the connection, or of a server of another kind. */
function codeOfStatus(code: status): ErrorCode {
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
