/** Every way a request can fail, with the HTTP status it is answered with. Clients branch on the code. */
export const errorStatus = {
  invalid_argument: 400,
  unauthenticated: 401,
  not_found: 404,
  method_not_allowed: 405,
  too_large: 413,
  unprocessable: 422,
  rate_limited: 429,
  cancelled: 499,
  internal: 500,
  unavailable: 503,
  newer_version: 503,
  deadline_exceeded: 504,
} as const;

export type ErrorCode = keyof typeof errorStatus;

export interface ErrorOptions {
  readonly cause?: unknown;
  /** Instead of that of the code. */
  readonly status?: number;
  readonly detail?: unknown;
  readonly retryAfterSeconds?: number;
}

/** The one error class: a code to branch on, a text for people, and the HTTP status to answer with. */
export class SkaldError extends Error {
  readonly code: ErrorCode;
  readonly status: number;
  /** Facts beside the text, such as the position of a parse error; the thrower defines its shape. */
  readonly detail: unknown;
  /** Seconds after which a retry may pass; undefined when nobody knows, or none will. */
  readonly retryAfterSeconds: number | undefined;

  constructor(code: ErrorCode, message: string, options?: ErrorOptions) {
    const status = options?.status ?? errorStatus[code];
    const { stackTraceLimit } = Error;
    // Where a client is at fault nobody asks for the place, and its bad rows may come by thousands.
    if (status < 500) Error.stackTraceLimit = 0;
    super(message, options?.cause === undefined ? undefined : { cause: options.cause });
    Error.stackTraceLimit = stackTraceLimit;
    this.name = "SkaldError";
    this.code = code;
    this.status = status;
    this.detail = options?.detail;
    this.retryAfterSeconds = options?.retryAfterSeconds;
  }
}

export function invalidArgument(
  message: string,
  options?: { cause?: unknown; detail?: unknown },
): SkaldError {
  return new SkaldError("invalid_argument", message, options);
}

/** The error of a request that breaks a limit; `limit` is its key, for programs. */
export function limitReached(limit: string, message: string): SkaldError {
  return invalidArgument(message, { detail: { limit } });
}

export function notFound(message: string): SkaldError {
  return new SkaldError("not_found", message);
}

export function tooLarge(message: string): SkaldError {
  return new SkaldError("too_large", message);
}

export function unavailable(message: string, options?: { cause?: unknown }): SkaldError {
  return new SkaldError("unavailable", message, options);
}

export function internal(message: string, options?: { cause?: unknown }): SkaldError {
  return new SkaldError("internal", message, options);
}

/** A larger number is no version of a format but damage. */
const maxVersion = 99;

/**
 * Throws `newer_version` for a file of a format version that only a later program knows: such a file is not damaged, and
 * nobody may change it. `known` is the newest version that this program reads. Versions have an odd number of one bits (1, 2,
 * 4, 7, 8, 11, ...), so that a flipped bit never makes one of another: any other number is damage, and left to the caller.
 */
export function refuseNewerVersion(
  file: string,
  { found, known }: { readonly found: unknown; readonly known: number },
): void {
  if (!isVersion(known)) throw new Error(`${known} has an even number of one bits: no version`);
  if (!isVersion(found) || found <= known) return;
  const fix = "start the newer version of Skald again; if there never was one, move the file away";
  throw new SkaldError(
    "newer_version",
    `${file} has format version ${found}, this program knows versions up to ${known}; nothing was changed: ${fix}`,
  );
}

function isVersion(value: unknown): value is number {
  if (!Number.isInteger(value) || (value as number) > maxVersion) return false;
  let bits = 0;
  for (let rest = value as number; rest > 0; rest >>= 1) bits += rest & 1;
  return bits % 2 === 1;
}

/**
 * The code of anything thrown: that of a SkaldError, `cancelled` for an abort, `unavailable` for the end of
 * `AbortSignal.timeout`, with which we limit what others may take to answer, else `internal`.
 */
export function errorCodeOf(error: unknown): ErrorCode {
  if (error instanceof SkaldError) return error.code;
  const name = error instanceof Error ? error.name : "";
  if (name === "AbortError") return "cancelled";
  return name === "TimeoutError" ? "unavailable" : "internal";
}

/** The text of an error for clients. It hides internal faults, which may name files; the log has them. */
export function textForClients(error: unknown): string {
  const code = errorCodeOf(error);
  if (code === "newer_version")
    return "a newer version of Skald wrote some of the stored data, and this one cannot read it; the log names the file";
  if (code === "internal") return "internal server error";
  if (error instanceof SkaldError) return error.message;
  return code === "cancelled" ? "the request was cancelled by the client" : "no answer in time";
}

/** Closes an exhaustive switch: the compiler refuses it when a case is missing. */
export function unreachable(value: never): never {
  throw new Error(`unreachable: ${JSON.stringify(value)}`);
}
