import {
  constants,
  createServer,
  type Http2Server,
  type IncomingHttpHeaders,
  type OutgoingHttpHeaders,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from "node:http2";
import type { Socket } from "node:net";
import { errorCodeOf, SkaldError } from "@skald/model";
import { isTracing, runSpan } from "@skald/runtime/tracing";
import { ConnectionGuard, type CutObserver } from "../connection-guard.js";
import { beginCalled } from "../tracing/call-span.js";
import { trailersOfError } from "./errors.js";
import { Health, type HealthState, healthPaths } from "./health.js";
import { after, type KeepaliveOptions, keepAlive } from "./keepalive.js";
import { GrpcListener, type ListenerOptions } from "./listener.js";
import { frameHead } from "./message/frames.js";
import { cutPieces, type Parts, PieceGatherer, pieceBytes, smallFrame } from "./message/pieces.js";
import { receive, receiveFrame } from "./message/reader.js";
import { Outflow } from "./outflow.js";
import { checkCluster, checkVersion, maxHeaderBytes, sayHello } from "./protocol.js";
import { decodeTimeout } from "./status.js";

export interface GrpcServerOptions extends ListenerOptions, KeepaliveOptions {
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
  /** Time that running calls get at the end. */
  readonly gracefulShutdownMs: number;
  /** Names of the cluster that calls must be for; empty: any. */
  readonly clusters?: readonly string[];
  /** Told of a fault of ours: the caller is told only that there was one. */
  readonly onError?: (error: unknown, path: string) => void;
  /** Told of the end of each call of a method that there is. */
  readonly onEnd?: (call: EndedCall) => void;
  readonly onCut?: CutObserver;
  /** What it says that it speaks; for tests. */
  readonly protocolVersion?: number;
}

/** A call that is over; without an error it went well. */
export interface EndedCall {
  readonly path: string;
  readonly durationMs: number;
  readonly error?: unknown;
}

/** What a handler is told of a call beside its message. */
export interface IncomingCall {
  /** Aborted when the caller cancels, is gone, or its deadline is over. */
  readonly signal: AbortSignal;
  /** When the caller gives up, ms since the epoch; undefined: never. */
  readonly deadlineMs: number | undefined;
  /** Says that nobody looks at the bytes of the message any more: the next one may be read into them. */
  readonly giveBack: () => void;
}

/** Answers one method: bytes in, bytes out. What it throws ends the call with that error. */
export type GrpcHandler = (request: Uint8Array, call: IncomingCall) => Promise<Parts>;

/**
 * Answers one method with any number of messages, each asked for once the caller has taken most of those before. Ends soon
 * after the signal; what it throws ends the call with that error, behind what it gave.
 */
export type GrpcStreamHandler = (request: Uint8Array, call: IncomingCall) => AsyncIterable<Parts>;

/** Methods of a service by name, and the name of the service, `skald.v1.Ingester`. */
export interface GrpcService {
  readonly name: string;
  readonly methods: Readonly<Record<string, GrpcHandler>>;
  /** Methods whose answers are of any number of messages. */
  readonly streams?: Readonly<Record<string, GrpcStreamHandler>>;
}

/** What callers may send ahead: for one call, and for all of a connection. */
const streamWindowBytes = 1024 * 1024;
const sessionWindowBytes = 4 * 1024 * 1024;
const noLimit = 2 ** 32 - 1;
const unsupportedMediaType = 415;

/** Serves calls between services. It knows no contract: a message is bytes, in pieces that it puts together and cuts. */
export class GrpcServer {
  readonly #options: GrpcServerOptions;
  readonly #guard: ConnectionGuard;
  readonly #hello: OutgoingHttpHeaders;
  readonly #methods = new Map<string, GrpcHandler>();
  readonly #streams = new Map<string, GrpcStreamHandler>();
  readonly #health = new Health();
  readonly #server: Http2Server;
  readonly #sessions = new Set<ServerHttp2Session>();
  readonly #listener: GrpcListener;

  constructor(options: GrpcServerOptions) {
    this.#options = options;
    const { protocolVersion: version } = options;
    this.#guard = new ConnectionGuard(options.onCut);
    this.#hello = sayHello(version === undefined ? {} : { version });
    this.#server = createServer({
      settings: {
        maxConcurrentStreams: options.maxConcurrentStreams || noLimit,
        maxHeaderListSize: maxHeaderBytes,
        initialWindowSize: streamWindowBytes,
      },
      maxSendHeaderBlockLength: maxHeaderBytes,
    });
    this.#guard.watch(this.#server);
    this.#server.on("session", (session) => this.#welcome(session));
    this.#server.on("sessionError", () => undefined);
    const take = (socket: Socket) => this.#server.emit("connection", socket);
    this.#listener = new GrpcListener(options, this.#guard, take);
  }

  /** Adds a service; before or after the start. */
  add({ name, methods, streams = {} }: GrpcService): void {
    for (const [method, handler] of Object.entries(methods)) {
      this.#methods.set(`/${name}/${method}`, handler);
    }
    for (const [method, handler] of Object.entries(streams)) {
      this.#streams.set(`/${name}/${method}`, handler);
    }
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
    for (const session of this.#sessions) session.close();
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
    for (const session of this.#sessions) session.destroy();
    this.#listener.cut();
  }

  #welcome(session: ServerHttp2Session): void {
    this.#sessions.add(session);
    session.setLocalWindowSize(sessionWindowBytes);
    session.on("error", () => undefined);
    const countReset = this.#guard.limitResets(session);
    session.on("stream", (stream, headers) => {
      stream.on("error", () => undefined);
      stream.once("close", () => countReset(stream));
      if (isOver(stream) || this.#guard.isCut(session)) return;
      void this.#guard.run(stream, () => this.#answer(stream, headers));
    });
    keepAlive(session, this.#options);
    const { maxIdleMs, maxAgeMs, maxAgeGraceMs } = this.#options;
    const timers: (NodeJS.Timeout | undefined)[] = [];
    if (maxIdleMs !== undefined) {
      // The time starts again with whatever comes or goes.
      session.setTimeout(Math.min(maxIdleMs, noLimit / 2), () => session.close());
    }
    if (maxAgeMs !== undefined) {
      const end = () => {
        session.close();
        if (maxAgeGraceMs !== undefined) timers.push(after(maxAgeGraceMs, () => session.destroy()));
      };
      timers.push(after(maxAgeMs, end));
    }
    session.once("close", () => {
      this.#sessions.delete(session);
      for (const timer of timers) clearTimeout(timer);
    });
  }

  async #answer(stream: ServerHttp2Stream, headers: IncomingHttpHeaders): Promise<void> {
    const { ":path": path = "", "content-type": type = "" } = headers;
    const abort = new AbortController();
    const start = performance.now();
    // Also at the end of a call that went well, when nobody listens any more.
    stream.once("close", () => abort.abort(gone));
    if (!type.startsWith("application/grpc")) {
      stream.respond({ ":status": unsupportedMediaType }, { endStream: true });
      return;
    }
    const timeoutMs = decodeTimeout(headers["grpc-timeout"] as string | undefined);
    const timer =
      timeoutMs === undefined
        ? undefined
        : after(timeoutMs, () => {
            const late = new SkaldError("deadline_exceeded", "the deadline of the call is over");
            void this.#guard.run(stream, () => fail(stream, this.#hello, late));
            abort.abort(late);
          });
    try {
      if (path === healthPaths.check || path === healthPaths.watch)
        await this.#tellHealth(path, stream, abort.signal);
      else await this.#serve(path, stream, headers, abort.signal, timeoutMs);
      this.#tellEnd({ path, durationMs: performance.now() - start });
    } catch (error) {
      const { aborted, reason } = abort.signal;
      const durationMs = performance.now() - start;
      this.#tellEnd({ path, durationMs, error: aborted ? reason : error });
      if (aborted) return;
      this.#tellFault(error, path);
      fail(stream, this.#hello, error);
    } finally {
      clearTimeout(timer);
    }
  }

  #tellEnd(call: EndedCall): void {
    // Names that callers make up would be counted for ever.
    if (this.#methods.has(call.path) || this.#streams.has(call.path)) this.#options.onEnd?.(call);
  }

  #tellFault(error: unknown, path: string): void {
    if (errorCodeOf(error) === "internal") this.#options.onError?.(error, path);
  }

  async #serve(
    path: string,
    stream: ServerHttp2Stream,
    headers: IncomingHttpHeaders,
    signal: AbortSignal,
    timeoutMs: number | undefined,
  ): Promise<void> {
    const { clusters = [] } = this.#options;
    checkVersion(headers, "the caller");
    checkCluster(headers, clusters);
    if (!this.#methods.has(path) && !this.#streams.has(path)) {
      respondTrailers(stream, this.#hello, {
        "grpc-status": String(unimplemented),
        "grpc-message": `there is no method ${path}`,
      });
      return;
    }
    const deadlineMs = timeoutMs === undefined ? undefined : Date.now() + timeoutMs;
    const gatherer = new PieceGatherer(
      this.#options.maxReceiveBytes,
      "grpc_server_max_recv_msg_size",
    );
    const call: ReceivedCall = { signal, deadlineMs, gatherer, giveBack: () => gatherer.give() };
    const span = isTracing() ? beginCalled(path, headers) : undefined;
    if (span === undefined) return this.#run(path, stream, call);
    return runSpan(span, () => this.#run(path, stream, call));
  }

  /** Runs a method that is there. */
  async #run(path: string, stream: ServerHttp2Stream, call: ReceivedCall): Promise<void> {
    const { signal, gatherer } = call;
    const handler = this.#methods.get(path);
    const streamer = this.#streams.get(path);
    const request = await receive(stream, gatherer, signal);
    if (streamer !== undefined) return this.#sendAll(path, stream, streamer(request, call), signal);
    const answer = (await handler?.(request, call)) ?? [];
    signal.throwIfAborted();
    start(stream, this.#hello);
    const small = smallFrame(answer);
    if (small !== undefined && small.length <= this.#options.maxSendBytes) {
      stream.end(small);
      return;
    }
    await this.#send(new Outflow(stream, signal), answer);
    stream.end();
  }

  /** Sends the messages of a stream; what it fails with behind them. */
  async #sendAll(
    path: string,
    stream: ServerHttp2Stream,
    messages: AsyncIterable<Parts>,
    signal: AbortSignal,
  ): Promise<void> {
    let trailers: OutgoingHttpHeaders = okTrailers;
    const flow = new Outflow(stream, signal);
    const begin = () => {
      if (!stream.headersSent) start(stream, this.#hello, () => trailers);
    };
    try {
      for await (const message of messages) {
        signal.throwIfAborted();
        begin();
        await this.#send(flow, message);
      }
    } catch (error) {
      if (signal.aborted || !stream.headersSent) throw error;
      this.#tellFault(error, path);
      trailers = trailersOfError(error);
    }
    signal.throwIfAborted();
    begin();
    stream.end();
  }

  async #send(flow: Outflow, message: Parts): Promise<void> {
    const maxBytes = Math.min(pieceBytes, this.#options.maxSendBytes);
    for (const piece of cutPieces(message, maxBytes)) await flow.write(piece);
  }

  async #tellHealth(path: string, stream: ServerHttp2Stream, signal: AbortSignal): Promise<void> {
    const request = await receiveFrame(stream, signal);
    const send = (answer: Uint8Array) =>
      void stream.write(Buffer.concat([frameHead(answer.length), answer]));
    if (path === healthPaths.watch) {
      start(stream, this.#hello);
      this.#health.watch(request, send, signal);
      return;
    }
    const answer = this.#health.check(request);
    start(stream, this.#hello);
    send(answer);
    stream.end();
  }
}

/** A call and what puts its message together. */
interface ReceivedCall extends IncomingCall {
  readonly gatherer: PieceGatherer;
}

const unimplemented = 12;
/** Made once: every call ends with it, most of them when nobody listens any more. */
const gone = new SkaldError("cancelled", "the caller is gone");

const okTrailers = { "grpc-status": "0" };
const answering = { waitForTrailers: true };

/** Begins an answer that goes well, as far as is known; the trailers are asked for at its end. */
function start(
  stream: ServerHttp2Stream,
  hello: OutgoingHttpHeaders,
  trailers: () => OutgoingHttpHeaders = () => okTrailers,
): void {
  stream.respond({ ":status": 200, ...hello }, answering);
  stream.once("wantTrailers", () => stream.sendTrailers(trailers()));
}

/** Whether nothing can be answered any more. */
function isOver(stream: ServerHttp2Stream): boolean {
  return stream.destroyed || stream.closed;
}

function fail(stream: ServerHttp2Stream, hello: OutgoingHttpHeaders, error: unknown): void {
  if (isOver(stream)) return;
  // An answer that was begun can only be cut.
  if (stream.headersSent) stream.close(constants.NGHTTP2_INTERNAL_ERROR);
  else respondTrailers(stream, hello, trailersOfError(error));
}

/** Ends a call without an answer; what the caller still sends is not read. */
function respondTrailers(
  stream: ServerHttp2Stream,
  hello: OutgoingHttpHeaders,
  trailers: ReturnType<typeof trailersOfError>,
): void {
  if (isOver(stream)) return;
  stream.removeAllListeners("data");
  stream.resume();
  stream.respond({ ":status": 200, ...hello, ...trailers }, { endStream: true });
  stream.once("finish", () => stream.close(constants.NGHTTP2_NO_ERROR));
}
