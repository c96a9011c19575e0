import {
  Client,
  connectivityState,
  credentials,
  Metadata,
  type StatusObject,
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

type OpenOptions = OutgoingCall & { readonly span: Span | undefined };
type AnyMethod = Pick<Method<unknown, unknown>, "path" | "isStream">;

interface OpenCall {
  read(): void;
  cancel(): void;
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
    const exchange = () => this.#exchange(method, bytes, { ...options, span });
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
    const span = isTracing() ? beginCalling(method.path, this.address) : undefined;
    let next: Uint8Array | undefined;
    let over: { readonly error: unknown } | undefined;
    let wake = () => {};
    const call = this.#open(method, bytes, { ...options, span }, (answer, error) => {
      next = answer;
      if (answer === undefined) over = { error };
      wake();
    });
    try {
      for (;;) {
        call.read();
        while (next === undefined && over === undefined)
          await new Promise<void>((resolve) => {
            wake = resolve;
          });
        const answer = next;
        if (answer === undefined) break;
        next = undefined;
        yield this.#decode(method.answer, answer);
      }
      if (over?.error !== undefined) throw over.error;
    } catch (error) {
      span?.end(error);
      throw error;
    } finally {
      span?.end();
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

  #exchange(method: AnyMethod, bytes: Buffer, options: OpenOptions): Promise<Uint8Array> {
    return new Promise((resolve, reject) => {
      this.#beginWaiting();
      let found: Uint8Array | undefined;
      const call = this.#open(method, bytes, options, (answer, error) => {
        if (answer !== undefined) {
          found = answer;
          call.read();
          return;
        }
        this.#waiting--;
        if (error === undefined && found !== undefined) resolve(found);
        else reject(error ?? this.#lost());
      });
      call.read();
    });
  }

  /**
   * Starts a call. Answers are told one after the other, each after a `read`, then the end without an answer, once. The channel
   * is used as it is: the methods of the client take a stack trace and make a chain of interceptors and a stream for each call.
   */
  #open(
    { path, isStream }: AnyMethod,
    bytes: Buffer,
    { signal, deadlineMs = Infinity, span }: OpenOptions,
    tell: (answer: Uint8Array | undefined, error?: unknown) => void,
  ): OpenCall {
    const client = this.#client;
    const gatherer = new PartGatherer(this.#options.maxReceiveBytes);
    let call: ReturnType<ReturnType<Client["getChannel"]>["createCall"]> | undefined;
    let connecting: NodeJS.Timeout | undefined;
    let isOver = false;
    const end = (error?: unknown) => {
      if (isOver) return;
      isOver = true;
      signal.removeEventListener("abort", onAbort);
      clearTimeout(connecting);
      // The caller has its call by then.
      if (call === undefined) queueMicrotask(() => tell(undefined, error));
      else tell(undefined, error);
    };
    const fail = (error?: unknown) => {
      end(error);
      call?.cancelWithStatus(status.CANCELLED, "the caller is gone");
    };
    const onAbort = () => fail(this.#reasonOf(signal));
    const opened = { read: () => call?.startRead(), cancel: fail };
    if (signal.aborted) {
      onAbort();
      return opened;
    }
    signal.addEventListener("abort", onAbort, { once: true });
    try {
      call = client.getChannel().createCall(path, deadlineMs, null, null, undefined);
    } catch (cause) {
      fail(unavailable(`${this.address}: the connection is closed`, { cause }));
      return opened;
    }
    connecting = this.#limitConnecting(fail);
    call.start(this.#metadataOf(span), {
      onReceiveMetadata: () => undefined,
      onReceiveMessage: (message: Buffer) => {
        this.#heardMs = performance.now();
        if (isOver) return;
        try {
          const answer = isStream ? gatherer.add(message) : message;
          if (answer === undefined) opened.read();
          else tell(answer);
        } catch (error) {
          fail(errorCodeOf(error) === "too_large" ? error : this.#lost());
        }
      },
      onReceiveStatus: (ended) => end(ended.code === status.OK ? undefined : this.#errorOf(ended)),
    });
    call.sendMessageWithContext({}, bytes);
    call.halfClose();
    return opened;
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

  #errorOf(ended: StatusObject): SkaldError {
    const isLate = ended.code === status.DEADLINE_EXCEEDED;
    if (isLate && ended.metadata.get("skald-error-bin").length === 0)
      return new SkaldError("deadline_exceeded", "the deadline of the call is over");
    return errorOfStatus(ended, this.address);
  }

  #beginWaiting(): void {
    if (this.#waiting++ > 0) return;
    this.#heardMs = performance.now();
    const { silenceMs = defaultSilenceMs } = this.#options;
    this.#probe ??= within(undefined, () =>
      setInterval(() => this.#lookForSilence(silenceMs), silenceMs).unref(),
    );
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
    const answered = (error: Pick<StatusObject, "code"> | null) => {
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
