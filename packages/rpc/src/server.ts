import { existsSync } from "node:fs";
import type {
  Http2Server,
  IncomingHttpHeaders,
  ServerHttp2Session,
  ServerHttp2Stream,
} from "node:http2";
import type { Socket } from "node:net";
import { fileURLToPath } from "node:url";
import {
  type Deadline,
  Metadata,
  Server,
  ServerCredentials,
  type ServerUnaryCall,
  type ServerWritableStream,
  type sendUnaryData,
  status,
} from "@grpc/grpc-js";
import { errorCodeOf, SkaldError, textForClients } from "@skald/model";
import { markWork } from "@skald/runtime";
import { isTracing, runSpan } from "@skald/runtime/tracing";
import { ConnectionGuard, type CutObserver } from "@skald/transport/connections";
import { type ByteCall, type ByteHandler, serveByteCall } from "./byte-calls.js";
import { statusOfError } from "./errors.js";
import { GrpcListener, type ListenerOptions } from "./listener.js";
import { type AnyMethods, type Method, serviceNameOf } from "./methods.js";
import { cutParts, type Part } from "./parts.js";
import { beginCalled } from "./spans.js";

export interface GrpcServerOptions extends ListenerOptions {
  /** Largest request, except of byte calls, and largest message of an answer, bytes. */
  readonly maxReceiveBytes: number;
  readonly maxSendBytes: number;
  /** Calls of a connection at a time; 0: no limit. */
  readonly maxConcurrentStreams: number;
  /** Pause between pings, and the time that an answer to one may take. */
  readonly keepaliveMs: number;
  readonly keepaliveTimeoutMs: number;
  /** A connection without calls ends after maxIdleMs, any connection after maxAgeMs and, for its calls, maxAgeGraceMs. */
  readonly maxIdleMs?: number | undefined;
  readonly maxAgeMs?: number | undefined;
  readonly maxAgeGraceMs?: number | undefined;
  /** Time that running calls get at the end. */
  readonly gracefulShutdownMs: number;
  /** Bytes that a caller may send ahead, by call and by connection. */
  readonly windowBytes?: number;
  /** Time in which the message of a byte call must have arrived; 0: no limit. */
  readonly readTimeoutMs?: number;
  /** Names of the cluster that calls must be for, except byte calls; empty: any. */
  readonly clusters?: readonly string[];
  /** Whether the reflection service says what can be called. */
  readonly hasReflection?: boolean;
  /** Called with a fault of this process; the caller only learns that there was one. */
  readonly onError?: (error: unknown, path: string) => void;
  /** Called at the end of each call of a method that exists. */
  readonly onEnd?: (call: EndedCall) => void;
  readonly onCut?: CutObserver;
}

/** A call that is over; without an error it went well. */
export interface EndedCall {
  readonly path: string;
  readonly durationMs: number;
  readonly error?: unknown;
  /** The answer over HTTP that means the same, of a byte call that was not OK. */
  readonly httpStatus?: number;
}

/** What a handler gets beside the request. */
export interface IncomingCall {
  /** Aborted when the caller cancels, is gone, or its deadline is over. */
  readonly signal: AbortSignal;
  /** When the caller gives up, ms since the epoch; undefined: never. */
  readonly deadlineMs: number | undefined;
}

/**
 * Answers the methods of a service. What a handler throws ends its call with that error. A method with a stream may answer
 * with several messages: each is asked for when the one before is sent.
 */
export type Handlers<Methods extends AnyMethods> = {
  readonly [M in keyof Methods]: Methods[M] extends Method<infer Request, infer Answer>
    ? (request: Request, call: IncomingCall) => Promise<Answer> | AsyncIterable<Answer>
    : never;
};
type AnyHandler = (
  request: unknown,
  call: IncomingCall,
) => Promise<unknown> | AsyncIterable<unknown>;

export type HealthState = "SERVING" | "NOT_SERVING";

/** The header with the name of the cluster that a call is for. */
export const clusterKey = "skald-cluster";

/** A smaller window would hold up the large messages of a cluster. */
const usualWindowBytes = 8 * 1024 * 1024;
const noLimit = 2 ** 32 - 1;
/** Longest time that a timer takes. */
const maxTimerMs = 2 ** 31 - 1;
const gone = new SkaldError("cancelled", "the caller is gone");

/** Serves calls between services. */
export class GrpcServer {
  readonly #options: GrpcServerOptions;
  readonly #server: Server;
  readonly #guard: ConnectionGuard;
  readonly #listener: GrpcListener;
  readonly #states = new Map<string, HealthState>([["", "SERVING"]]);
  readonly #byteHandlers = new Map<string, ByteHandler>();
  #health: { setStatus(service: string, status: HealthState): void } | undefined;

  constructor(options: GrpcServerOptions) {
    this.#options = options;
    this.#server = new Server(channelOptionsOf(options));
    this.#guard = new ConnectionGuard(options.onCut);
    const injector = this.#server.createConnectionInjector(ServerCredentials.createInsecure());
    this.#watchSessions();
    const take = (socket: Socket) => injector.injectConnection(socket);
    this.#listener = new GrpcListener(options, this.#guard, take);
  }

  /** Adds a service, before or after the start; `service` is its name in proto/services.proto. */
  add<Methods extends AnyMethods>(
    service: string,
    methods: Methods,
    handlers: Handlers<Methods>,
  ): void {
    const entries = Object.entries<Method<unknown, unknown>>(methods);
    const definition = entries.map(([name, { path, isStream }]) => [
      name,
      definitionOf(path, isStream),
    ]);
    const functions = entries.map(([name, method]) => {
      const handler = (handlers as unknown as Record<string, AnyHandler>)[name] as AnyHandler;
      return [
        name,
        method.isStream ? this.#streamed(method, handler) : this.#unary(method, handler),
      ];
    });
    if (entries.length > 0)
      this.#server.addService(Object.fromEntries(definition), Object.fromEntries(functions));
    this.setHealth("SERVING", serviceNameOf(service));
  }

  /** Adds a unary method for clients from outside, by its path `/package.Service/Method`. */
  addBytes(path: string, handler: ByteHandler): void {
    this.#byteHandlers.set(path, handler);
    this.setHealth("SERVING", path.split("/")[1]);
  }

  /** Sets what the health service says of a service, or of the process. */
  setHealth(state: HealthState, service = ""): void {
    this.#states.set(service, state);
    this.#health?.setStatus(service, state);
  }

  /** Listens; resolves with the port, which the system chooses when 0 was asked for. */
  async start(): Promise<number> {
    // Loaded here: a process that serves no calls needs neither.
    const { default: health } = await import("grpc-health-check");
    const served = new health.HealthImplementation(Object.fromEntries(this.#states));
    served.addToServer(this.#server);
    this.#health = served;
    if (this.#options.hasReflection === true) await addReflection(this.#server);
    return this.#listener.start();
  }

  /** Takes no more calls, lets those that run end within the grace, then cuts the rest. */
  async stop(): Promise<void> {
    for (const service of this.#states.keys()) this.setHealth("NOT_SERVING", service);
    const closed = this.#listener.close();
    this.#server.tryShutdown(() => undefined);
    const cut = setTimeout(() => this.#cut(), this.#options.gracefulShutdownMs);
    await closed;
    clearTimeout(cut);
  }

  /** Ends all at once, as a process does that is killed. */
  async kill(): Promise<void> {
    const closed = this.#listener.close();
    this.#cut();
    await closed;
  }

  /** Reads certificates again now. */
  reloadCertificates(): void {
    this.#listener.reloadCertificates();
  }

  #cut(): void {
    this.#server.forceShutdown();
    this.#listener.cut();
  }

  /** The guard, the window and byte calls need the server of HTTP/2 behind the injector, which the library keeps to itself. */
  #watchSessions(): void {
    const { windowBytes = usualWindowBytes } = this.#options;
    const { http2Servers } = this.#server as unknown as ServerInside;
    for (const server of http2Servers.keys()) {
      this.#guard.watch(server);
      this.#splitCalls(server);
      // The library has an option for the window of a channel, but none for that of a server.
      server.updateSettings({ initialWindowSize: windowBytes });
      server.prependListener("session", (session: ServerHttp2Session) => {
        session.on("error", () => undefined);
        session.setLocalWindowSize(windowBytes);
        const countReset = this.#guard.limitResets(session);
        session.on("stream", (stream: ServerHttp2Stream) => {
          stream.once("close", () => countReset(stream));
        });
      });
      server.on("sessionError", () => undefined);
    }
  }

  /** Takes byte calls before the library sees them. */
  #splitCalls(server: Http2Server): void {
    const [byLibrary] = server.listeners("stream") as [StreamListener];
    const { onStreamOpened } = this.#server as unknown as ServerInside;
    server.removeAllListeners("stream");
    server.on("stream", (stream, headers, flags) => {
      const handler = this.#byteHandlers.get(headers[":path"] ?? "");
      if (handler === undefined || headers[":method"] !== "POST") {
        byLibrary.call(server, stream, headers, flags);
        return;
      }
      // The library ends connections that have had no calls for a while.
      onStreamOpened.call(this.#server, stream);
      void this.#guard.run(stream, () => this.#serveBytes(handler, stream, headers));
    });
  }

  async #serveBytes(
    handler: ByteHandler,
    stream: ServerHttp2Stream,
    headers: IncomingHttpHeaders,
  ): Promise<void> {
    const start = performance.now();
    const path = headers[":path"] as string;
    markWork(path, "");
    const span = isTracing() ? beginCalled(path, Metadata.fromHttp2Headers(headers)) : undefined;
    const answerCall: ByteHandler = async (call: ByteCall) => {
      try {
        return await (span === undefined ? handler(call) : runSpan(span, () => handler(call)));
      } catch (error) {
        this.#options.onError?.(error, path);
        return { code: status.INTERNAL, text: textForClients(error), httpStatus: 500 };
      }
    };
    const answer = await serveByteCall(
      stream,
      headers,
      this.#options.readTimeoutMs ?? 0,
      answerCall,
    );
    if (answer === undefined) return;
    const isOk = answer.code === status.OK;
    const durationMs = performance.now() - start;
    this.#tellEnd({ path, durationMs, ...(isOk ? {} : { httpStatus: answer.httpStatus }) });
  }

  /** An observer that throws must not end the process. */
  #tellEnd(call: EndedCall): void {
    try {
      this.#options.onEnd?.(call);
    } catch (error) {
      this.#options.onCut?.("fault", error);
    }
  }

  #unary(method: Method<unknown, unknown>, handler: AnyHandler) {
    return (call: ServerUnaryCall<Buffer, Buffer>, callback: sendUnaryData<Buffer>): void =>
      void this.#serve(method, handler, call, {
        send: async (answer) => callback(null, bufferOf(method.answer.encode(await answer))),
        fail: (error) => callback(statusOfError(error)),
      });
  }

  #streamed(method: Method<unknown, unknown>, handler: AnyHandler) {
    return (call: ServerWritableStream<Buffer, Part>): void =>
      void this.#serve(method, handler, call, {
        send: async (answers, signal) => {
          if (Symbol.asyncIterator in answers) {
            for await (const one of answers) await this.#write(call, method, one, signal);
          } else await this.#write(call, method, await answers, signal);
          call.end();
        },
        // What was written before goes first.
        fail: (error) => void call.emit("error", statusOfError(error)),
      });
  }

  /** Each part is made when the one before has gone out, so that a caller that does not read holds up only itself. */
  async #write(
    call: ServerWritableStream<Buffer, Part>,
    { answer: wire }: Method<unknown, unknown>,
    answer: unknown,
    signal: AbortSignal,
  ): Promise<void> {
    for (const part of cutParts(wire.encode(answer), this.#options.maxSendBytes)) {
      signal.throwIfAborted();
      await written(call, part, signal);
    }
  }

  async #serve(
    { path, request: wire }: Method<unknown, unknown>,
    handler: AnyHandler,
    call: ServerUnaryCall<Buffer, Buffer> | ServerWritableStream<Buffer, Part>,
    { send, fail }: Ends,
  ): Promise<void> {
    const start = performance.now();
    markWork(path, "");
    const deadlineMs = msOf(call.getDeadline());
    const abort = new AbortController();
    let isAnswered = false;
    call.on("cancelled", () => {
      // Every call ends with this event.
      if (isAnswered) return;
      const isLate = deadlineMs !== undefined && Date.now() >= deadlineMs;
      abort.abort(
        isLate ? new SkaldError("deadline_exceeded", "the deadline of the call is over") : gone,
      );
    });
    const { signal } = abort;
    try {
      checkCluster(call.metadata, this.#options.clusters ?? []);
      const request = wire.decode(call.request);
      const run = async () => {
        const answer = handler(request, { signal, deadlineMs });
        await send(answer, signal);
        isAnswered = true;
      };
      const span = isTracing() ? beginCalled(path, call.metadata) : undefined;
      await (span === undefined ? run() : runSpan(span, run));
      this.#tellEnd({ path, durationMs: performance.now() - start });
    } catch (error) {
      const { aborted, reason } = signal;
      const shown = aborted ? reason : error;
      this.#tellEnd({ path, durationMs: performance.now() - start, error: shown });
      if (aborted) return;
      if (errorCodeOf(error) === "internal") this.#options.onError?.(error, path);
      fail(error);
    }
  }
}

type StreamListener = (
  stream: ServerHttp2Stream,
  headers: IncomingHttpHeaders,
  flags: number,
) => void;

/** What of the library is not in its types. */
interface ServerInside {
  readonly http2Servers: ReadonlyMap<Http2Server, unknown>;
  onStreamOpened(stream: ServerHttp2Stream): void;
}

/** How a call ends. */
interface Ends {
  send(answer: Promise<unknown> | AsyncIterable<unknown>, signal: AbortSignal): Promise<void>;
  fail(error: unknown): void;
}

function channelOptionsOf(options: GrpcServerOptions) {
  const { maxIdleMs, maxAgeMs, maxAgeGraceMs } = options;
  return {
    "grpc.max_receive_message_length": options.maxReceiveBytes,
    "grpc.max_send_message_length": -1,
    "grpc.max_concurrent_streams": options.maxConcurrentStreams || noLimit,
    "grpc.keepalive_time_ms": Math.min(options.keepaliveMs, maxTimerMs),
    "grpc.keepalive_timeout_ms": options.keepaliveTimeoutMs,
    ...(maxIdleMs === undefined ? {} : { "grpc.max_connection_idle_ms": maxIdleMs }),
    ...(maxAgeMs === undefined ? {} : { "grpc.max_connection_age_ms": maxAgeMs }),
    ...(maxAgeGraceMs === undefined ? {} : { "grpc.max_connection_age_grace_ms": maxAgeGraceMs }),
    "grpc.enable_channelz": 0,
  };
}

function definitionOf(path: string, responseStream: boolean) {
  return {
    path,
    requestStream: false,
    responseStream,
    requestSerialize: same,
    requestDeserialize: same,
    responseSerialize: same,
    responseDeserialize: same,
  };
}

/** Messages are encoded and decoded around the library, so that an error of that is one of the call. A part stays a part. */
function same(message: Buffer | Part): Buffer {
  return message as Buffer;
}

function bufferOf({ buffer, byteOffset, byteLength }: Uint8Array): Buffer {
  return Buffer.from(buffer, byteOffset, byteLength);
}

function msOf(deadline: Deadline): number | undefined {
  const ms = Number(deadline);
  return Number.isFinite(ms) ? ms : undefined;
}

function written(
  call: ServerWritableStream<Buffer, Part>,
  part: Part,
  signal: AbortSignal,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const onAbort = () => reject(signal.reason);
    signal.addEventListener("abort", onAbort, { once: true });
    call.write(part, () => {
      signal.removeEventListener("abort", onAbort);
      resolve();
    });
  });
}

/** Throws unauthenticated when a call was meant for another cluster. Without names every call is taken. */
function checkCluster(metadata: Metadata, names: readonly string[]): void {
  if (names.length === 0) return;
  const [given = ""] = metadata.get(clusterKey);
  if (names.includes(String(given))) return;
  throw new SkaldError(
    "unauthenticated",
    `the call is for the cluster "${String(given)}", and this is "${names[0]}"; see cluster_validation`,
  );
}

/** The folder of the schema: beside the code in the bundle, else at the root of the repository. */
function protoFolder(): string {
  const beside = fileURLToPath(new URL("./proto", import.meta.url));
  return existsSync(beside) ? beside : fileURLToPath(new URL("../../../proto", import.meta.url));
}

/** Serves `grpc.reflection.v1`, by which tools such as grpcurl learn the methods and messages. */
async function addReflection(server: Pick<Server, "addService">): Promise<void> {
  const { default: loader } = await import("@grpc/proto-loader");
  const { default: reflection } = await import("@grpc/reflection");
  const schema = loader.loadSync("services.proto", { includeDirs: [protoFolder()] });
  new reflection.ReflectionService(schema).addToServer(server);
}
