import {
  Server as GrpcJsServer,
  type MethodDefinition,
  ServerCredentials,
  type ServerDuplexStream,
} from "@grpc/grpc-js";
import { SkaldError } from "@skald/model";
import { statusOfError } from "./errors.js";
import { Health, type HealthState, healthDefinition } from "./health.js";
import { GrpcListener, type ListenerOptions } from "./listener.js";
import { Outflow } from "./outflow.js";
import { cutPieces, type Parts, PieceGatherer, pieceBytes, pieceOverheadBytes } from "./pieces.js";
import { checkCluster, checkVersion, sayHello } from "./protocol.js";

export interface GrpcServerOptions extends ListenerOptions {
  /** Largest call; more is too_large before there is memory for it. */
  readonly maxReceiveBytes: number;
  /** Largest piece of an answer; what is larger goes in several. */
  readonly maxSendBytes: number;
  /** Calls of a connection at a time; 0: no limit. */
  readonly maxConcurrentStreams: number;
  /** After which connections end that have no calls; undefined: never. The same for their age, and for what their calls get then. */
  readonly maxIdleMs?: number | undefined;
  readonly maxAgeMs?: number | undefined;
  readonly maxAgeGraceMs?: number | undefined;
  /** Pause between pings, and time that an answer to one may take. */
  readonly keepaliveMs: number;
  readonly keepaliveTimeoutMs: number;
  /** Time that running calls get at the end. */
  readonly gracefulShutdownMs: number;
  /** Names of the cluster that calls must be for; empty: any. */
  readonly clusters?: readonly string[];
  /** Told of a fault of ours: the caller is told only that there was one. */
  readonly onError?: (error: unknown, path: string) => void;
  /** What it says that it speaks; for tests. */
  readonly protocolVersion?: number;
}

/** What a handler is told of a call beside its message. */
export interface IncomingCall {
  /** Aborted when the caller cancels, is gone, or its deadline is over. */
  readonly signal: AbortSignal;
  /** When the caller gives up, ms since the epoch; undefined: never. */
  readonly deadlineMs: number | undefined;
}

/** Answers one method: bytes in, bytes out. What it throws ends the call with that error. */
export type GrpcHandler = (request: Uint8Array, call: IncomingCall) => Promise<Parts>;

/** Methods of a service by name, and the name of the service, `skald.v1.Ingester`. */
export interface GrpcService {
  readonly name: string;
  readonly methods: Readonly<Record<string, GrpcHandler>>;
}

type PieceStream = ServerDuplexStream<Buffer, Buffer>;

/** Serves calls between services. It knows no contract: a message is bytes, in pieces that it puts together and cuts. */
export class GrpcServer {
  readonly #options: GrpcServerOptions;
  readonly #server: GrpcJsServer;
  readonly #health = new Health();
  readonly #injector: ReturnType<GrpcJsServer["createConnectionInjector"]>;
  readonly #listener: GrpcListener;

  constructor(options: GrpcServerOptions) {
    this.#options = options;
    this.#server = new GrpcJsServer(channelOptions(options));
    this.#server.addService(healthDefinition, this.#health.handlers());
    this.#injector = this.#server.createConnectionInjector(ServerCredentials.createInsecure());
    this.#listener = new GrpcListener(options, (socket) => this.#injector.injectConnection(socket));
  }

  /** Adds a service; before or after the start. */
  add({ name, methods }: GrpcService): void {
    const definition: Record<string, MethodDefinition<Buffer, Buffer>> = {};
    const handlers: Record<string, (stream: PieceStream) => void> = {};
    for (const [method, handler] of Object.entries(methods)) {
      const path = `/${name}/${method}`;
      definition[method] = { path, ...piecesBothWays };
      handlers[method] = (stream) => void this.#serve(path, stream, handler);
    }
    this.#server.addService(definition, handlers);
    this.#health.set(name, "serving");
  }

  /** Whether it takes calls, as the health service tells. */
  setHealth(state: HealthState, service = ""): void {
    this.#health.set(service, state);
  }

  /** Listens; resolves with the port, which is chosen by the system when 0 was asked for. */
  start(): Promise<number> {
    return this.#listener.start();
  }

  /** Takes no more calls, lets those that run end within the grace, then cuts the rest. */
  async stop(): Promise<void> {
    this.#health.stop();
    const closed = this.#listener.close();
    this.#injector.drain(this.#options.gracefulShutdownMs);
    const cut = setTimeout(() => this.#listener.cut(), this.#options.gracefulShutdownMs);
    await closed;
    clearTimeout(cut);
    this.#server.forceShutdown();
  }

  /** Ends all at once, as a process does that is killed. */
  async kill(): Promise<void> {
    this.#listener.cut();
    this.#server.forceShutdown();
    await this.#listener.close();
  }

  /** Reads certificates again now. */
  reloadCertificates(): void {
    this.#listener.reloadCertificates();
  }

  async #serve(path: string, stream: PieceStream, handler: GrpcHandler): Promise<void> {
    const abort = new AbortController();
    stream.on("cancelled", () => abort.abort());
    stream.on("error", () => abort.abort());
    try {
      this.#welcome(stream);
      const request = await this.#receive(stream, abort.signal);
      const call = { signal: abort.signal, deadlineMs: deadlineOf(stream) };
      const answer = await handler(request, call);
      const flow = new Outflow(stream, abort.signal);
      const maxBytes = Math.min(pieceBytes, this.#options.maxSendBytes);
      for (const piece of cutPieces(answer, maxBytes)) await flow.write(piece);
      stream.end();
    } catch (error) {
      this.#fail(path, stream, error, abort.signal);
    }
  }

  #welcome(stream: PieceStream): void {
    const { protocolVersion: version, clusters = [] } = this.#options;
    stream.sendMetadata(sayHello(version === undefined ? {} : { version }));
    checkVersion(stream.metadata, "the caller");
    checkCluster(stream.metadata, clusters);
  }

  #receive(stream: PieceStream, signal: AbortSignal): Promise<Uint8Array> {
    const gatherer = new PieceGatherer(
      this.#options.maxReceiveBytes,
      "grpc_server_max_recv_msg_size",
    );
    return new Promise((resolve, reject) => {
      stream.on("data", (piece) => {
        try {
          const whole = gatherer.add(piece);
          if (whole !== undefined) resolve(whole);
        } catch (error) {
          // What still comes is not looked at.
          stream.removeAllListeners("data");
          stream.resume();
          reject(error);
        }
      });
      stream.on("end", () => {
        if (!gatherer.isWhole)
          reject(new SkaldError("invalid_argument", "the call ended in the middle of its message"));
      });
      signal.addEventListener("abort", () => reject(signal.reason), { once: true });
    });
  }

  #fail(path: string, stream: PieceStream, error: unknown, signal: AbortSignal): void {
    if (signal.aborted) return;
    const ending = statusOfError(error);
    if (!(error instanceof SkaldError) || error.code === "internal")
      this.#options.onError?.(error, path);
    stream.emit("error", ending);
  }
}

const same = (bytes: Buffer): Buffer => bytes;

/** Every method is a stream of pieces in both directions. */
export const piecesBothWays = {
  requestStream: true,
  responseStream: true,
  requestSerialize: same,
  requestDeserialize: same,
  responseSerialize: same,
  responseDeserialize: same,
} as const;

function channelOptions(options: GrpcServerOptions): Record<string, number> {
  const { maxConcurrentStreams, maxIdleMs, maxAgeMs, maxAgeGraceMs } = options;
  return {
    "grpc.max_receive_message_length": pieceBytes + pieceOverheadBytes,
    "grpc.max_send_message_length": -1,
    "grpc.keepalive_time_ms": options.keepaliveMs,
    "grpc.keepalive_timeout_ms": options.keepaliveTimeoutMs,
    "grpc.enable_channelz": 0,
    ...(maxConcurrentStreams > 0 ? { "grpc.max_concurrent_streams": maxConcurrentStreams } : {}),
    ...(maxIdleMs === undefined ? {} : { "grpc.max_connection_idle_ms": maxIdleMs }),
    ...(maxAgeMs === undefined ? {} : { "grpc.max_connection_age_ms": maxAgeMs }),
    ...(maxAgeGraceMs === undefined ? {} : { "grpc.max_connection_age_grace_ms": maxAgeGraceMs }),
  };
}

function deadlineOf(stream: PieceStream): number | undefined {
  const deadlineMs = Number(stream.getDeadline());
  return Number.isFinite(deadlineMs) ? deadlineMs : undefined;
}
