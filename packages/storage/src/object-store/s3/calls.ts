import type { S3Client, S3ClientConfig } from "@aws-sdk/client-s3";
import { paddingBytes, SkaldError } from "@skald/model";
import { retry, type Sleep, sleep } from "@skald/runtime";
import { failureOf, S3Failure } from "./failure.js";
import { defaultRetry, type S3Operation, type S3Options } from "./options.js";

/** The library: 20 MB of code that a process without a bucket never loads. */
export type S3Library = typeof import("@aws-sdk/client-s3");

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

export interface S3Call<T> {
  readonly operation: S3Operation;
  readonly signal: AbortSignal;
  /** Bytes that the call moves: a try may take longer for more of them. */
  readonly bodyBytes: number;
  readonly run: (session: S3Session) => Promise<T>;
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

  /** Throws S3Failure, or the signal's reason. */
  async run<T>(call: S3Call<T>): Promise<T> {
    const { signal } = call;
    signal.throwIfAborted();
    const policy = this.#options.retry ?? defaultRetry;
    let pauseMs = 0;
    const again = (error: unknown) => error instanceof S3Failure && this.#mayTry(error);
    return retry(() => this.#try(call), {
      ...policy,
      signal,
      isRetriable: again,
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

  /** A store that names a longer pause than ours is believed: whoever asked is told, and tries again then. */
  #mayTry({ passes, retryAfterSeconds = 0 }: S3Failure): boolean {
    return passes && retryAfterSeconds * 1000 <= (this.#options.retry ?? defaultRetry).maxBackoffMs;
  }

  async #try<T>({ operation, signal, bodyBytes, run }: S3Call<T>): Promise<T> {
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
      return await run({ library, send: send as S3Client["send"], signal: limit.signal, bytes });
    } catch (error) {
      // An answer, and what to make of it.
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
