import {
  Client,
  type ClientDuplexStream,
  connectivityState,
  type ServiceError,
} from "@grpc/grpc-js";
import { unavailable } from "@skald/model";
import { type ClientTlsOptions, clientCredentials } from "./client-tls.js";
import { errorOfStatus } from "./errors.js";
import { type HealthState, healthMethod } from "./health.js";
import { Outflow } from "./outflow.js";
import {
  cutPieces,
  overLimit,
  type Parts,
  PieceGatherer,
  pieceBytes,
  pieceOverheadBytes,
  sizeOf,
} from "./pieces.js";
import { checkVersion, sayHello } from "./protocol.js";

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
  /** Pause between pings, and time that an answer to one may take. */
  readonly keepaliveMs: number;
  readonly keepaliveTimeoutMs: number;
  /** Bytes that the other side may send ahead. */
  readonly windowBytes?: number;
  /** TLS, when it is given. */
  readonly tls?: ClientTlsOptions | undefined;
  /** Cluster that calls are for; empty: it is not said. */
  readonly cluster?: string;
  /** What it says that it speaks; for tests. */
  readonly protocolVersion?: number;
}

/** How a call is made. */
export interface OutgoingCall {
  readonly signal: AbortSignal;
  /** When the caller gives up, ms since the epoch. */
  readonly deadlineMs?: number | undefined;
}

type PieceStream = ClientDuplexStream<Buffer, Buffer>;

/** A connection to one process, which is made at the first call and again when it is lost. */
export class GrpcConnection {
  readonly #options: GrpcConnectionOptions;
  readonly #client: Client;

  constructor(options: GrpcConnectionOptions) {
    this.#options = options;
    const credentials = clientCredentials(options.tls);
    this.#client = new Client(options.address, credentials, channelOptions(options));
  }

  get address(): string {
    return this.#options.address;
  }

  /**
   * Calls a method, `/skald.v1.Ingester/Push`, with a message and resolves with the answer. Rejects with the error that the
   * other side threw, with unavailable when it cannot be reached or is lost meanwhile, with the reason of the signal when
   * that is aborted, and with too_large when a message is over its limit.
   */
  async call(path: string, request: Parts, options: OutgoingCall): Promise<Uint8Array> {
    const { signal } = options;
    signal.throwIfAborted();
    const { maxSendBytes, protocolVersion: version, cluster = "" } = this.#options;
    const size = sizeOf(request);
    if (size > maxSendBytes) throw overLimit(size, maxSendBytes, "max_send_msg_size");
    await this.#connected(options);
    const stream: PieceStream = this.#client.makeBidiStreamRequest(
      path,
      same,
      same,
      sayHello({ cluster, ...(version === undefined ? {} : { version }) }),
      options.deadlineMs === undefined ? {} : { deadline: options.deadlineMs },
    );
    const cancel = () => stream.cancel();
    signal.addEventListener("abort", cancel, { once: true });
    try {
      const answer = this.#receive(stream, signal);
      const sent = this.#send(stream, request, answer);
      return await answer.finally(() => sent);
    } finally {
      signal.removeEventListener("abort", cancel);
    }
  }

  /** What the other side says of itself, or of one service. */
  checkHealth(service: string, { signal, deadlineMs }: OutgoingCall): Promise<HealthState> {
    return new Promise((resolve, reject) => {
      const call = this.#client.makeUnaryRequest(
        healthMethod.path,
        healthMethod.requestSerialize,
        healthMethod.responseDeserialize,
        { service },
        deadlineMs === undefined ? {} : { deadline: deadlineMs },
        (error, state) => {
          signal.removeEventListener("abort", cancel);
          if (error !== null) reject(this.#failure(error, signal));
          else resolve(state ?? "service_unknown");
        },
      );
      const cancel = () => call.cancel();
      signal.addEventListener("abort", cancel, { once: true });
    });
  }

  /** Ends the connection; calls that run go on to their end. */
  close(): void {
    this.#client.close();
  }

  /** Waits for a connection that is being made, no longer than it may take. */
  async #connected({ signal, deadlineMs = Number.POSITIVE_INFINITY }: OutgoingCall): Promise<void> {
    const channel = this.#client.getChannel();
    const state = channel.getConnectivityState(true);
    if (state !== connectivityState.IDLE && state !== connectivityState.CONNECTING) return;
    const { connectTimeoutMs, address } = this.#options;
    const giveUpMs = Math.min(Date.now() + connectTimeoutMs, deadlineMs);
    await new Promise<void>((resolve, reject) => {
      const abort = () => reject(signal.reason);
      signal.addEventListener("abort", abort, { once: true });
      const watch = (last: connectivityState) =>
        channel.watchConnectivityState(last, giveUpMs, (error) => {
          const now = channel.getConnectivityState(true);
          const isPending = now === connectivityState.CONNECTING || now === connectivityState.IDLE;
          if (error === undefined && isPending) return watch(now);
          signal.removeEventListener("abort", abort);
          if (!isPending) resolve();
          else reject(unavailable(`${address}: no connection within ${connectTimeoutMs} ms`));
        });
      watch(state);
    });
  }

  async #send(stream: PieceStream, request: Parts, answer: Promise<unknown>): Promise<void> {
    const done = new AbortController();
    const stop = () => done.abort();
    answer.then(stop, stop);
    const flow = new Outflow(stream, done.signal);
    try {
      for (const piece of cutPieces(request)) await flow.write(piece);
      stream.end();
    } catch {
      // The answer came, or will not come: it says what there is to say.
    }
  }

  #receive(stream: PieceStream, signal: AbortSignal): Promise<Uint8Array> {
    const { address, maxReceiveBytes } = this.#options;
    const gatherer = new PieceGatherer(maxReceiveBytes, "max_recv_msg_size");
    let answer: Uint8Array | undefined;
    return new Promise((resolve, reject) => {
      const refuse = (error: unknown) => {
        reject(error);
        stream.cancel();
      };
      const attempt = (step: () => void) => {
        try {
          step();
        } catch (error) {
          refuse(error);
        }
      };
      stream.on("metadata", (metadata) => attempt(() => checkVersion(metadata, address)));
      stream.on("data", (piece) =>
        attempt(() => {
          answer = gatherer.add(piece);
        }),
      );
      stream.on("end", () => {
        if (answer !== undefined) resolve(answer);
      });
      stream.on("error", (error: ServiceError) => reject(this.#failure(error, signal)));
      stream.on("status", () => {
        // Behind data, end and error: whatever came of them came.
        setImmediate(() => reject(unavailable(`${address}: the answer is not whole`)));
      });
    });
  }

  #failure(error: ServiceError, signal: AbortSignal): unknown {
    return signal.aborted ? signal.reason : errorOfStatus(error, this.address);
  }
}

const same = (bytes: Buffer): Buffer => bytes;

function channelOptions(options: GrpcConnectionOptions): Record<string, number | string> {
  const { tls, windowBytes } = options;
  const serverName = tls?.serverName ?? "";
  return {
    "grpc.max_receive_message_length": pieceBytes + pieceOverheadBytes,
    "grpc.max_send_message_length": -1,
    "grpc.initial_reconnect_backoff_ms": options.minReconnectMs,
    "grpc.max_reconnect_backoff_ms": options.maxReconnectMs,
    "grpc.keepalive_time_ms": options.keepaliveMs,
    "grpc.keepalive_timeout_ms": options.keepaliveTimeoutMs,
    // A connection that a partition took away is found out before the next call.
    "grpc.keepalive_permit_without_calls": 1,
    "grpc.use_local_subchannel_pool": 1,
    "grpc.enable_retries": 0,
    "grpc.enable_http_proxy": 0,
    "grpc.enable_channelz": 0,
    "grpc.service_config_disable_resolution": 1,
    ...(windowBytes === undefined ? {} : { "grpc-node.flow_control_window": windowBytes }),
    ...(serverName === ""
      ? {}
      : { "grpc.ssl_target_name_override": serverName, "grpc.default_authority": serverName }),
  };
}
