import type { S3Client, S3ClientConfig } from "@aws-sdk/client-s3";
import { paddingBytes, SkaldError } from "@skald/model";
import { retry, type Sleep, sleep } from "@skald/runtime";

/** The bucket, and how to reach it. */
export interface S3Options {
  readonly bucket: string;
  /** The folder of all keys, with a slash at its end; without it they are in the root of the bucket. */
  readonly folder?: string;
  /** A URL; the region's own host when absent. */
  readonly endpoint?: string;
  readonly region: string;
  /** Without them the chain of the AWS tools is asked: environment, files, web identity, the machine's role. */
  readonly credentials?: S3Credentials | undefined;
  /** The bucket in the path instead of the host name. */
  readonly pathStyle?: boolean;
  /** IPv6 too. */
  readonly dualstack?: boolean;
  /** Certificates of authorities, PEM; those of Node when absent. */
  readonly ca?: string;
  /** Takes any certificate. */
  readonly insecureSkipVerify?: boolean;
  /** Idle connections end after this, ms. */
  readonly idleTimeoutMs?: number;
  /** Of one try, ms: for the headers of its answer, and for all of it; 0 for what its size allows. */
  readonly headerTimeoutMs?: number;
  readonly tryTimeoutMs?: number;
  readonly retry?: S3Retry;
  readonly encryption?: S3Encryption | undefined;
  readonly storageClass?: string;
  /** Called after each try. */
  readonly onTry?: (report: S3Try) => void;
}

export interface S3Credentials {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string;
}

export interface S3Retry {
  readonly minBackoffMs: number;
  readonly maxBackoffMs: number;
  /** Tries after the first. */
  readonly maxRetries: number;
}

/** Encryption by the store: with its own keys, or with one that a service keeps. */
export type S3Encryption =
  | { readonly kind: "SSE-S3" }
  | { readonly kind: "SSE-KMS"; readonly keyId?: string; readonly context?: string };

const defaultRetry: S3Retry = { minBackoffMs: 100, maxBackoffMs: 3000, maxRetries: 5 };

/** What is asked of the store, by the names that dashboards know. */
export type S3Operation =
  | "get"
  | "get_range"
  | "attributes"
  | "upload"
  | "upload_part"
  | "upload_start"
  | "upload_end"
  | "upload_abort"
  | "iter"
  | "delete";

export interface S3Try {
  readonly operation: S3Operation;
  readonly seconds: number;
  /** HTTP status of the answer; 0 when there was none. */
  readonly status: number;
  /** What was asked for is there, or is known not to be. */
  readonly failed: boolean;
  readonly sentBytes: number;
  readonly receivedBytes: number;
}

/** The library: 20 MB of code that a process without a bucket never loads. */
type S3Library = typeof import("@aws-sdk/client-s3");

/** What a try works with. */
export interface S3Session {
  readonly library: S3Library;
  /** Sends a command and waits for the headers of its answer. */
  send: S3Client["send"];
  /** Ends when the caller does not want the answer any more, or the try takes too long. */
  readonly signal: AbortSignal;
  /** Counts bytes of bodies, for the report of the try. */
  readonly bytes: { sent: number; received: number };
}

const connections = 64;
const connectTimeoutMs = 5_000;
const idleTimeoutMs = 90_000;
/** A try without a body may take this long; with one, a second more for each of these bytes. */
const usualTryMs = 30_000;
const bytesPerSecond = 256 * 1024;

/** Calls of one bucket: each is tried again while that may help, with jitter, and every try has a time limit. */
export class S3Calls {
  readonly #options: S3Options;
  readonly #sleep: Sleep;
  #loading: Promise<{ library: S3Library; client: S3Client }> | undefined;

  constructor(options: S3Options, pause: Sleep = sleep) {
    this.#options = options;
    this.#sleep = pause;
  }

  /**
   * Runs a call that moves `bodyBytes` bytes: a try may take longer for more of them. Throws S3Failure, or the reason of
   * the signal.
   */
  async run<T>(
    operation: S3Operation,
    signal: AbortSignal,
    act: (session: S3Session) => Promise<T>,
    bodyBytes = 0,
  ): Promise<T> {
    signal.throwIfAborted();
    const policy = this.#options.retry ?? defaultRetry;
    let pauseMs = 0;
    return retry(() => this.#try(operation, signal, act, bodyBytes), {
      ...policy,
      signal,
      isRetriable: (error) => error instanceof S3Failure && this.#mayTry(error),
      onRetry: (error) => {
        pauseMs = ((error as S3Failure).retryAfterSeconds ?? 0) * 1000;
      },
      sleep: (ms, stop) => this.#sleep(Math.max(ms, pauseMs), stop),
    });
  }

  async close(): Promise<void> {
    const loaded = await this.#loading?.catch(() => undefined);
    loaded?.client.destroy();
  }

  /** When the store names a longer pause than ours, the caller gets the failure and tries again after the pause. */
  #mayTry({ passes, retryAfterSeconds = 0 }: S3Failure): boolean {
    return passes && retryAfterSeconds * 1000 <= (this.#options.retry ?? defaultRetry).maxBackoffMs;
  }

  async #try<T>(
    operation: S3Operation,
    signal: AbortSignal,
    act: (session: S3Session) => Promise<T>,
    bodyBytes: number,
  ): Promise<T> {
    const { library, client } = await this.#load();
    const limit = new TryLimit(signal);
    const bytes = { sent: 0, received: 0 };
    const started = performance.now();
    let status = 200;
    let failed = false;
    const { tryTimeoutMs = 0, headerTimeoutMs = 0 } = this.#options;
    const wholeMs = tryTimeoutMs || usualTryMs + (bodyBytes / bytesPerSecond) * 1000;
    limit.start(headerTimeoutMs > 0 ? Math.min(headerTimeoutMs, wholeMs) : wholeMs);
    const send = async (command: never) => {
      const answer = await client.send(command, { abortSignal: limit.signal });
      limit.start(wholeMs);
      return answer;
    };
    try {
      return await act({ library, send: send as S3Client["send"], signal: limit.signal, bytes });
    } catch (error) {
      // An answer that was understood.
      if (error instanceof SkaldError) throw error;
      signal.throwIfAborted();
      const failure = limit.signal.aborted ? tooSlow(limit.ms) : failureOf(error);
      status = failure.status;
      failed = !failure.isAbsent && status !== 412;
      throw failure;
    } finally {
      limit.clear();
      const seconds = (performance.now() - started) / 1000;
      const counts = { sentBytes: bytes.sent, receivedBytes: bytes.received };
      this.#options.onTry?.({ operation, seconds, status, failed, ...counts });
    }
  }

  #load() {
    this.#loading ??= import("@aws-sdk/client-s3").then(
      (library) => ({ library, client: new library.S3Client(clientConfig(this.#options)) }),
      (error: unknown) => {
        this.#loading = undefined;
        throw error;
      },
    );
    return this.#loading;
  }
}

/** Ends a try after a time that can be set anew, or with its caller. */
class TryLimit {
  ms = 0;
  readonly #controller = new AbortController();
  readonly #parent: AbortSignal;
  readonly #onAbort = () => this.#controller.abort(this.#parent.reason);
  #timer: NodeJS.Timeout | undefined;

  constructor(parent: AbortSignal) {
    this.#parent = parent;
    parent.addEventListener("abort", this.#onAbort, { once: true });
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  start(ms: number): void {
    clearTimeout(this.#timer);
    this.ms = ms;
    this.#timer = setTimeout(() => this.#controller.abort(), ms);
  }

  clear(): void {
    clearTimeout(this.#timer);
    this.#parent.removeEventListener("abort", this.#onAbort);
  }
}

function tooSlow(ms: number): S3Failure {
  const message = `no answer within ${Math.round(ms / 100) / 10} s`;
  return new S3Failure({ status: 0, code: "Timeout", message });
}

function clientConfig(options: S3Options): S3ClientConfig {
  const { endpoint, region, credentials, ca, insecureSkipVerify = false } = options;
  const agent = {
    keepAlive: true,
    maxSockets: connections,
    timeout: options.idleTimeoutMs || idleTimeoutMs,
  };
  const trust = {
    ...(ca === undefined ? {} : { ca }),
    ...(insecureSkipVerify ? { rejectUnauthorized: false } : {}),
  };
  return {
    region,
    ...(endpoint === undefined ? {} : { endpoint }),
    ...(credentials === undefined ? {} : { credentials }),
    forcePathStyle: options.pathStyle ?? false,
    // An endpoint of one's own has no second name for IPv6.
    useDualstackEndpoint: endpoint === undefined && (options.dualstack ?? false),
    followRegionRedirects: endpoint === undefined,
    // We try again ourselves: with a limit for each try, and with what the store says about pauses.
    maxAttempts: 1,
    // Checksums in trailers are not understood everywhere; bodies are signed, and segments carry checksums of their own.
    requestChecksumCalculation: "WHEN_REQUIRED",
    responseChecksumValidation: "WHEN_REQUIRED",
    // The library sends requests that wait for a "continue" by an agent of its own, which knows nothing of our certificates.
    expectContinueHeader: false,
    requestHandler: {
      connectionTimeout: connectTimeoutMs,
      httpAgent: agent,
      httpsAgent: { ...agent, ...trust },
    },
  };
}

/** Reads a body of a known length into memory with padding behind it; one of another length is a failure that passes. */
export async function readBody(
  body: unknown,
  length: number,
  { bytes, signal }: Pick<S3Session, "bytes" | "signal">,
): Promise<Uint8Array> {
  const stream = body as AsyncIterable<Uint8Array> & { destroy(error?: Error): void };
  const out = Buffer.allocUnsafeSlow(length + paddingBytes);
  let done = 0;
  const onAbort = () => stream.destroy(new Error("aborted"));
  signal.addEventListener("abort", onAbort, { once: true });
  try {
    for await (const chunk of stream) {
      bytes.received += chunk.byteLength;
      if (done + chunk.byteLength > length) throw incomplete(`more than ${length}`, length);
      out.set(chunk, done);
      done += chunk.byteLength;
    }
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
  if (done !== length) throw incomplete(done, length);
  return out.subarray(0, length);
}

function incomplete(got: number | string, length: number): S3Failure {
  const message = `a body of ${got} bytes came instead of ${length}`;
  return new S3Failure({ status: 0, code: "IncompleteBody", message });
}

/** An answer that is no success, or none at all: what is left of it once the library's classes are forgotten. */
export class S3Failure extends Error {
  /** HTTP status of the answer; 0 when there was none. */
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
function failureOf(error: unknown): S3Failure {
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

/** The pause in seconds before a caller tries again, when the store does not say how long. */
const usualPauseSeconds = 1;

/** A failure as the error that callers of the store branch on. */
export function storeError(failure: S3Failure, key: string, place: string): SkaldError {
  const text = `object ${key} cannot be reached in ${place}: ${failure.message}`;
  const retryAfterSeconds = failure.retryAfterSeconds ?? usualPauseSeconds;
  const pause = failure.passes ? { retryAfterSeconds } : {};
  return new SkaldError("unavailable", text, { cause: failure, ...pause });
}
