import { SkaldError } from "@skald/model";

/** An answer that is no success, or none at all: what is left of it once the library's classes are forgotten. */
export class S3Failure extends Error {
  /** Of the answer; 0 when there was none. */
  readonly status: number;
  /** As the store names it, such as `SlowDown`; a name of Node or of the library when there was no answer. */
  readonly code: string;
  readonly retryAfterSeconds: number | undefined;

  constructor(
    parts: { readonly status: number; readonly code: string; readonly message: string },
    options: { readonly cause?: unknown; readonly retryAfterSeconds?: number | undefined } = {},
  ) {
    super(parts.message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = "S3Failure";
    this.status = parts.status;
    this.code = parts.code;
    this.retryAfterSeconds = options.retryAfterSeconds;
  }

  /** True when the same call may succeed later. */
  get passes(): boolean {
    const { status, code } = this;
    if (refusals.has(code) || certificates.test(code) || status === 501) return false;
    return status === 0 || status === 408 || status === 429 || status >= 500 || passing.has(code);
  }

  /** True when there is no such object; a missing bucket is another matter. */
  get isAbsent(): boolean {
    return this.status === 404 && this.code !== "NoSuchBucket" && this.code !== "NoSuchUpload";
  }
}

const passing = new Set([
  "SlowDown",
  "RequestTimeout",
  "RequestTimeTooSkewed",
  "ConditionalRequestConflict",
  "OperationAborted",
  "IncompleteBody",
]);

/** No later try is answered otherwise. */
const refusals = new Set(["CredentialsProviderError", "NoRange"]);

/** A certificate that is not trusted. */
const certificates = /CERT|UNABLE_TO_|^ERR_TLS/;

/** What the library throws, as far as anybody can have written it. */
interface Thrown {
  readonly name?: string;
  readonly code?: string;
  readonly Code?: string;
  readonly message?: string;
  readonly $metadata?: { readonly httpStatusCode?: number };
  readonly $response?: {
    readonly statusCode?: number;
    readonly headers?: Readonly<Record<string, string>>;
  };
}

/** Anything that a call threw, as a failure. */
export function failureOf(error: unknown): S3Failure {
  if (error instanceof S3Failure) return error;
  const thrown = (error ?? {}) as Thrown;
  const status = thrown.$metadata?.httpStatusCode ?? thrown.$response?.statusCode ?? 0;
  const code = thrown.Code ?? thrown.code ?? thrown.name ?? "Unknown";
  const seconds = Number(thrown.$response?.headers?.["retry-after"]);
  return new S3Failure(
    { status, code, message: textOf(thrown, status, code) },
    { cause: error, retryAfterSeconds: seconds > 0 ? seconds : undefined },
  );
}

function textOf({ message = "" }: Thrown, status: number, code: string): string {
  const text = message.replace("AWS SDK error wrapper for Error: ", "").trim();
  if (status > 0) return `${status} ${code}${text === "" || text === code ? "" : `: ${text}`}`;
  if (text.includes("wrong version number"))
    return "it does not speak TLS; where plain HTTP is meant set insecure: true";
  return text === "" ? code : text;
}

/** How long whoever asked may wait before the next try when the store does not say, seconds. */
const usualPauseSeconds = 1;

/** A failure as the error that callers of the store branch on. */
export function storeError(failure: S3Failure, key: string, place: string): SkaldError {
  const text = `object ${key} cannot be reached in ${place}: ${failure.message}`;
  const retryAfterSeconds = failure.retryAfterSeconds ?? usualPauseSeconds;
  const pause = failure.passes ? { retryAfterSeconds } : {};
  return new SkaldError("unavailable", text, { cause: failure, ...pause });
}
