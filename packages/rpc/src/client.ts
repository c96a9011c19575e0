import {
  Client,
  type ClientReadableStream,
  type ClientUnaryCall,
  connectivityState,
  credentials,
  Metadata,
  type ServiceError,
  status,
} from "@grpc/grpc-js";
import { errorCodeOf, internal, SkaldError, textForClients, unavailable } from "@skald/model";
import { isTracing, runSpan, type Span, traceHeaders, within } from "@skald/runtime/tracing";
import { type ClientTlsOptions, credentialsOf } from "./client-tls.js";
import { errorOfStatus } from "./errors.js";
import type { Method, Wire } from "./methods.js";
import { maxPartBytes, overLimit, PartGatherer } from "./parts.js";
import { clusterKey } from "./server.js";
import { beginCalling } from "./spans.js";

export interface GrpcConnectionOptions {
  /** `host:port` */
  readonly address: string;
  /** Largest answer and largest request, bytes. */
  readonly maxReceiveBytes: number;
  readonly maxSendBytes: number;
  readonly connectTimeoutMs: number;
  /** First and longest pause between tries to connect. */
  readonly minReconnectMs: number;
  readonly maxReconnectMs: number;
  /** Pause between pings while calls run, and the time that an answer to one may take. */
  readonly keepaliveMs: number;
  readonly keepaliveTimeoutMs: number;
  /** After this time without any bytes for calls that wait, the connection is probed, and soon replaced for new calls. */
  readonly silenceMs?: number;
  /** Bytes that the other side may send ahead. */
  readonly windowBytes?: number;
  /** The name of the cluster that calls are for; empty: it is not sent. */
  readonly cluster?: string;
  readonly tls?: ClientTlsOptions | undefined;
}

/** How a call is made. */
export interface OutgoingCall {
  readonly signal: AbortSignal;
  /** When the caller gives up, ms since the epoch. */
  readonly deadlineMs?: number | undefined;
}

const defaultWindowBytes = 8 * 1024 * 1024;
const defaultSilenceMs = 1500;
/** Bytes of a part that are not the answer. */
const partOverheadBytes = 16;

/** A connection to one process. It is made at the first call, and again when it is lost. */
export class GrpcConnection {
  readonly #options: GrpcConnectionOptions;
  readonly #metadata = new Metadata();
  #client: Client;
  /** Calls that wait, and when bytes last came for one, ms of the steady clock. */
  #waiting = 0;
  #heardMs = 0;
  #probe: NodeJS.Timeout | undefined;

  constructor(options: GrpcConnectionOptions) {
    this.#options = options;
    const { cluster = "" } = options;
    if (cluster !== "") this.#metadata.set(clusterKey, cluster);
    this.#client = connect(options);
  }

  get address(): string {
    return this.#options.address;
  }

  /**
   * Calls a method and resolves with the answer. Rejects with the error that the other side threw, with unavailable when it
   * cannot be reached, is lost meanwhile or takes longer than the time limit of the signal, with the reason of the signal
   * when that is aborted otherwise, with deadline_exceeded, and with too_large when a message is over its limit.
   */
  async call<Request, Answer>(
    method: Method<Request, Answer>,
    request: Request,
    options: OutgoingCall,
  ): Promise<Answer> {
    const bytes = this.#encode(method, request);
    const span = isTracing() ? beginCalling(method.path, this.address) : undefined;
    const exchange = () => this.#exchange(method, bytes, options, span);
    const answer = await (span === undefined ? exchange() : runSpan(span, exchange));
    return this.#decode(method.answer, answer);
  }

  /**
   * Calls a method that answers with any number of messages and gives them as they come; they are taken no faster than they
   * are read. Throws what `call` rejects with, also in between. The call ends when the reader leaves.
   */
  async *stream<Request, Answer>(
    method: Method<Request, Answer>,
    request: Request,
    options: OutgoingCall,
  ): AsyncGenerator<Answer, void> {
    const bytes = this.#encode(method, request);
    const { signal } = options;
    const span = isTracing() ? beginCalling(method.path, this.address) : undefined;
    const gatherer = new PartGatherer(this.#options.maxReceiveBytes);
    if (signal.aborted) throw this.#reasonOf(signal);
    const call = this.#open(method.path, bytes, options, span);
    // The end comes again after the reader has left.
    call.on("error", () => undefined);
    const stop = new AbortController();
    const onAbort = () => stop.abort(this.#reasonOf(signal));
    stop.signal.addEventListener("abort", () => {
      call.cancel();
      call.destroy(stop.signal.reason);
    });
    signal.addEventListener("abort", onAbort, { once: true });
    const connected = this.#limitConnecting((error) => stop.abort(error));
    try {
      for await (const part of call) {
        this.#heardMs = performance.now();
        const answer = gatherer.add(part);
        if (answer !== undefined) yield this.#decode(method.answer, answer);
      }
    } catch (error) {
      const shown = stop.signal.aborted ? stop.signal.reason : this.#errorOf(error);
      span?.end(shown);
      throw shown;
    } finally {
      span?.end();
      clearTimeout(connected);
      signal.removeEventListener("abort", onAbort);
      call.cancel();
    }
  }

  /** Takes no more calls; those that run go on to their end. */
  close(): void {
    clearInterval(this.#probe);
    this.#client.close();
  }

  #encode<Request>({ request: wire }: Method<Request, unknown>, request: Request): Buffer {
    const bytes = wire.encode(request);
    const { maxSendBytes } = this.#options;
    if (bytes.length > maxSendBytes)
      throw overLimit(bytes.length, maxSendBytes, "max_send_msg_size");
    return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  #decode<Answer>(wire: Wire<Answer>, bytes: Uint8Array): Answer {
    try {
      return wire.decode(bytes);
    } catch (cause) {
      if (errorCodeOf(cause) !== "invalid_argument") throw cause;
      // The caller did nothing wrong.
      throw internal(`${this.address} gave an answer that makes no sense`, { cause });
    }
  }

  #exchange(
    { path, isStream }: Pick<Method<unknown, unknown>, "path" | "isStream">,
    bytes: Buffer,
    options: OutgoingCall,
    span: Span | undefined,
  ): Promise<Uint8Array> {
    const { signal } = options;
    if (signal.aborted) return Promise.reject(this.#reasonOf(signal));
    return new Promise((resolve, reject) => {
      let call: ClientUnaryCall | ClientReadableStream<Buffer> | undefined;
      const end = () => {
        signal.removeEventListener("abort", onAbort);
        clearTimeout(connecting);
        this.#endWaiting();
      };
      const fail = (error: unknown) => {
        end();
        reject(error);
        call?.cancel();
      };
      const succeed = (answer: Uint8Array) => {
        this.#heardMs = performance.now();
        end();
        resolve(answer);
      };
      const onAbort = () => fail(this.#reasonOf(signal));
      signal.addEventListener("abort", onAbort, { once: true });
      const connecting = this.#limitConnecting(fail);
      this.#beginWaiting();
      try {
        call = isStream
          ? this.#gather(this.#open(path, bytes, options, span), succeed, fail)
          : this.#client.makeUnaryRequest(
              path,
              same,
              same,
              bytes,
              this.#metadataOf(span),
              deadlineOf(options),
              (error: ServiceError | null, answer?: Buffer) =>
                answer === undefined ? fail(this.#errorOf(error)) : succeed(answer),
            );
      } catch (cause) {
        fail(unavailable(`${this.address}: the connection is closed`, { cause }));
      }
    });
  }

  #open(
    path: string,
    bytes: Buffer,
    options: OutgoingCall,
    span: Span | undefined,
  ): ClientReadableStream<Buffer> {
    const deadline = deadlineOf(options);
    const metadata = this.#metadataOf(span);
    return this.#client.makeServerStreamRequest(path, same, same, bytes, metadata, deadline);
  }

  /** The one answer of a stream. */
  #gather(
    call: ClientReadableStream<Buffer>,
    succeed: (answer: Uint8Array) => void,
    fail: (error: unknown) => void,
  ): ClientReadableStream<Buffer> {
    const gatherer = new PartGatherer(this.#options.maxReceiveBytes);
    call.on("data", (part: Buffer) => {
      this.#heardMs = performance.now();
      try {
        const answer = gatherer.add(part);
        if (answer !== undefined) succeed(answer);
      } catch (error) {
        fail(errorCodeOf(error) === "too_large" ? error : this.#lost());
      }
    });
    call.on("error", (error) => fail(this.#errorOf(error)));
    call.on("end", () => fail(this.#lost()));
    return call;
  }

  #lost(): SkaldError {
    return unavailable(`${this.address}: the call ended without an answer`);
  }

  #metadataOf(span: Span | undefined): Metadata {
    if (span === undefined) return this.#metadata;
    const metadata = this.#metadata.clone();
    for (const [key, value] of Object.entries(traceHeaders(span.context))) metadata.set(key, value);
    return metadata;
  }

  /** Calls `fail` when there is still no connection after the time for it. */
  #limitConnecting(fail: (error: SkaldError) => void): NodeJS.Timeout | undefined {
    const { connectTimeoutMs } = this.#options;
    const client = this.#client;
    if (isReady(client)) return undefined;
    const late = () => {
      const why = `no connection within ${connectTimeoutMs} ms`;
      if (!isReady(client)) fail(unavailable(`${this.address}: ${why}`));
    };
    return setTimeout(late, connectTimeoutMs).unref();
  }

  /** The reason of the signal; that of a time limit names the address that did not answer. */
  #reasonOf({ reason }: AbortSignal): unknown {
    if (reason instanceof SkaldError || errorCodeOf(reason) !== "unavailable") return reason;
    return unavailable(`${this.address}: ${textForClients(reason)}`, { cause: reason });
  }

  #errorOf(error: unknown): unknown {
    if (!isServiceError(error)) return error;
    if (
      error.code === status.DEADLINE_EXCEEDED &&
      error.metadata.get("skald-error-bin").length === 0
    )
      return new SkaldError("deadline_exceeded", "the deadline of the call is over");
    return errorOfStatus(error, this.address);
  }

  #beginWaiting(): void {
    if (this.#waiting++ > 0) return;
    this.#heardMs = performance.now();
    const { silenceMs = defaultSilenceMs } = this.#options;
    this.#probe ??= within(undefined, () =>
      setInterval(() => this.#lookForSilence(silenceMs), silenceMs).unref(),
    );
  }

  #endWaiting(): void {
    this.#waiting--;
  }

  /** A way that is lost without a word would hold up new calls until a ping is late. */
  #lookForSilence(silenceMs: number): void {
    const client = this.#client;
    if (this.#waiting === 0) {
      clearInterval(this.#probe);
      this.#probe = undefined;
    } else if (performance.now() - this.#heardMs >= silenceMs && isReady(client))
      this.#ask(client, 2 * silenceMs);
  }

  /** Any answer shows that the way is there; without one new calls get another connection. */
  #ask(client: Client, withinMs: number): void {
    const deadline = { deadline: Date.now() + withinMs };
    const answered = (error: ServiceError | null) => {
      if (error?.code !== status.DEADLINE_EXCEEDED) this.#heardMs = performance.now();
      else if (this.#client === client) {
        this.#client = connect(this.#options);
        client.close();
      }
    };
    const path = "/grpc.health.v1.Health/Check";
    client.makeUnaryRequest(path, same, same, Buffer.alloc(0), this.#metadata, deadline, answered);
  }
}

function connect(options: GrpcConnectionOptions): Client {
  const { address, tls, maxReceiveBytes, windowBytes = defaultWindowBytes } = options;
  const security = tls === undefined ? credentials.createInsecure() : credentialsOf(tls);
  return new Client(address, security, {
    "grpc.max_receive_message_length": Math.max(maxReceiveBytes, maxPartBytes) + partOverheadBytes,
    "grpc.max_send_message_length": -1,
    "grpc.initial_reconnect_backoff_ms": options.minReconnectMs,
    "grpc.max_reconnect_backoff_ms": options.maxReconnectMs,
    "grpc.keepalive_time_ms": Math.min(options.keepaliveMs, maxTimerMs),
    "grpc.keepalive_timeout_ms": options.keepaliveTimeoutMs,
    "grpc-node.flow_control_window": windowBytes,
    ...(tls?.serverName ? { "grpc.ssl_target_name_override": tls.serverName } : {}),
    // A push that may have arrived must not be sent again.
    "grpc.enable_retries": 0,
    "grpc.use_local_subchannel_pool": 1,
    "grpc.service_config_disable_resolution": 1,
    "grpc.enable_http_proxy": 0,
    "grpc.enable_channelz": 0,
  });
}

/** Longest time that a timer takes. */
const maxTimerMs = 2 ** 31 - 1;

function same(bytes: Buffer): Buffer {
  return bytes;
}

function isReady(client: Client): boolean {
  try {
    return client.getChannel().getConnectivityState(false) === connectivityState.READY;
  } catch {
    // It is closed.
    return true;
  }
}

function deadlineOf({ deadlineMs }: OutgoingCall) {
  return deadlineMs === undefined ? {} : { deadline: deadlineMs };
}

function isServiceError(error: unknown): error is ServiceError {
  return error instanceof Error && "code" in error && "details" in error;
}
