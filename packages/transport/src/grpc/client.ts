import type { ClientHttp2Session, ClientHttp2Stream, OutgoingHttpHeaders } from "node:http2";
import { constants } from "node:http2";
import { errorCodeOf, SkaldError, textForClients, unavailable } from "@skald/model";
import { isTracing, runSpan, type Span, traceHeaders } from "@skald/runtime/tracing";
import { beginCalling } from "../tracing/call-span.js";
import {
  decodeHealthAnswer,
  encodeHealthRequest,
  type HealthState,
  healthPaths,
} from "./health.js";
import { Inflow, lostError, readAnswer } from "./inflow.js";
import { after } from "./keepalive.js";
import { frameHead } from "./message/frames.js";
import {
  cutPieces,
  overLimit,
  type Parts,
  PieceGatherer,
  sizeOf,
  smallFrame,
} from "./message/pieces.js";
import { MessageReader, readFrame } from "./message/reader.js";
import { Outflow } from "./outflow.js";
import { sayHello } from "./protocol.js";
import { countCall, Session, type SessionOptions, uncountCall } from "./session.js";
import { encodeTimeout } from "./status.js";

export interface GrpcConnectionOptions extends SessionOptions {
  /** Largest answer and largest request, bytes. */
  readonly maxReceiveBytes: number;
  readonly maxSendBytes: number;
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

/** A call that is a span. */
interface SpannedCall extends OutgoingCall {
  readonly span?: Span | undefined;
}

/** Puts what comes of an answer together; the answer when it is whole. */
type Gather = (chunk: Buffer) => Uint8Array | undefined;

/** A connection to one process, which is made at the first call and again when it is lost. */
export class GrpcConnection {
  readonly #options: GrpcConnectionOptions;
  readonly #session: Session;
  readonly #hello: OutgoingHttpHeaders;

  constructor(options: GrpcConnectionOptions) {
    this.#options = options;
    const { protocolVersion: version, cluster = "" } = options;
    this.#hello = sayHello({ cluster, ...(version === undefined ? {} : { version }) });
    this.#session = new Session(options);
  }

  get address(): string {
    return this.#options.address;
  }

  /**
   * Calls a method, `/skald.v1.Ingester/Push`, with a message and resolves with the answer. Rejects with the error that the
   * other side threw, with unavailable when it cannot be reached, is lost meanwhile or takes longer than the signal's time
   * limit, with the reason of the signal when that is aborted otherwise, with deadline_exceeded, and with too_large when a
   * message is over its limit.
   */
  async call(path: string, request: Parts, options: OutgoingCall): Promise<Uint8Array> {
    const { maxReceiveBytes } = this.#options;
    this.#checkSize(request);
    const reader = new MessageReader(new PieceGatherer(maxReceiveBytes, "max_recv_msg_size"));
    const gather: Gather = (chunk) => reader.add(chunk);
    const small = smallFrame(request);
    const frames = small === undefined ? cutPieces(request) : [[small]];
    const span = isTracing() ? beginCalling(path, this.address) : undefined;
    if (span === undefined) return this.#exchange(path, options, frames, gather, true);
    const call = { ...options, span };
    return runSpan(span, () => this.#exchange(path, call, frames, gather, true));
  }

  /**
   * Calls a method that answers with any number of messages, as they come; they are taken no faster than they are read.
   * Throws what `call` rejects with, also in between: what came before an end of the signal or the deadline may be lost
   * then. The call is given up when the reader is.
   */
  async *stream(
    path: string,
    request: Parts,
    options: OutgoingCall,
  ): AsyncGenerator<Uint8Array, void> {
    const { maxReceiveBytes: maxBytes } = this.#options;
    this.#checkSize(request);
    const limit = new CallLimit(options, this.address);
    const span = isTracing() ? beginCalling(path, this.address) : undefined;
    let stream: ClientHttp2Stream | undefined;
    try {
      const session = await limit.race(this.#session.get());
      const opened = this.#begin(session, path, { ...options, span });
      stream = opened;
      const inflow = new Inflow(opened, { address: this.address, maxBytes });
      limit.onEnd((reason) => {
        inflow.end(reason);
        opened.close(constants.NGHTTP2_CANCEL);
      });
      send(opened, cutPieces(request));
      yield* inflow.read();
    } catch (error) {
      span?.end(error);
      throw error;
    } finally {
      span?.end();
      limit.end();
      if (stream?.closed === false) stream.close(constants.NGHTTP2_CANCEL);
    }
  }

  /** What the other side says of itself, or of one service. */
  async checkHealth(service: string, options: OutgoingCall): Promise<HealthState> {
    const request = encodeHealthRequest(service);
    const frames = [[frameHead(request.length), request]];
    const answer = await this.#exchange(healthPaths.check, options, frames, readFrame(), false);
    return decodeHealthAnswer(answer);
  }

  /** Ends the connection; calls that run go on to their end. */
  close(): void {
    this.#session.close();
  }

  async #exchange(
    path: string,
    options: SpannedCall,
    frames: Iterable<Parts>,
    gather: Gather,
    isOurs: boolean,
  ): Promise<Uint8Array> {
    const limit = new CallLimit(options, this.address);
    try {
      const session = this.#session.current ?? (await limit.race(this.#session.get()));
      const stream = this.#begin(session, path, options);
      return await this.#receive(stream, gather, isOurs, (reject) => {
        limit.onEnd((reason) => {
          reject(reason);
          stream.close(constants.NGHTTP2_CANCEL);
        });
        return send(stream, frames);
      });
    } finally {
      limit.end();
    }
  }

  #checkSize(request: Parts): void {
    const { maxSendBytes } = this.#options;
    const size = sizeOf(request);
    if (size > maxSendBytes) throw overLimit(size, maxSendBytes, "max_send_msg_size");
  }

  /** Opens a stream, which keeps the process alive while it is open. */
  #begin(session: ClientHttp2Session, path: string, options: SpannedCall): ClientHttp2Stream {
    const stream = this.#open(session, path, options);
    session.ref();
    stream.once("close", () => uncountCall(session));
    return stream;
  }

  #open(session: ClientHttp2Session, path: string, { deadlineMs, span }: SpannedCall) {
    countCall(session);
    try {
      return session.request({
        ":method": "POST",
        ":path": path,
        te: "trailers",
        ...this.#hello,
        ...(span === undefined ? {} : traceHeaders(span.context)),
        ...(deadlineMs === undefined
          ? {}
          : { "grpc-timeout": encodeTimeout(deadlineMs - Date.now()) }),
      });
    } catch (cause) {
      uncountCall(session);
      throw unavailable(`${this.address}: the connection is closed`, { cause });
    }
  }

  /** The answer; `begin` sends what is asked, and gives what ends that. */
  #receive(
    stream: ClientHttp2Stream,
    gather: Gather,
    isOurs: boolean,
    begin: (reject: (reason: unknown) => void) => () => void,
  ): Promise<Uint8Array> {
    let answer: Uint8Array | undefined;
    return new Promise((resolve, reject) => {
      const stop = begin(reject);
      readAnswer(stream, {
        address: this.address,
        isOurs,
        onData: (chunk) => {
          answer = gather(chunk);
        },
        onEnd: (error) => {
          stop();
          if (error !== undefined) reject(error);
          else if (answer !== undefined) resolve(answer);
          else reject(lostError(stream, this.address));
        },
      });
    });
  }
}

/** Made once: an error for every call would cost more than the call. */
const over = new SkaldError("cancelled", "the call is over");

const nothing = () => undefined;

/** Sends a request; gives what ends that, as the end of the stream does. */
function send(stream: ClientHttp2Stream, frames: Iterable<Parts>): () => void {
  if (Array.isArray(frames) && frames.length === 1 && frames[0].length === 1) {
    stream.end(frames[0][0]);
    return nothing;
  }
  const done = new AbortController();
  const stop = () => done.abort(over);
  stream.once("close", stop);
  void sendAll(stream, frames, new Outflow(stream, done.signal));
  return stop;
}

async function sendAll(
  stream: ClientHttp2Stream,
  frames: Iterable<Parts>,
  flow: Outflow,
): Promise<void> {
  try {
    for (const frame of frames) await flow.write(frame);
    stream.end();
  } catch {
    // The answer came, or will not come: it says what there is to say.
  }
}

/** Ends a call when its signal is aborted or its deadline is over. */
class CallLimit {
  readonly #signal: AbortSignal;
  readonly #timer: NodeJS.Timeout | undefined;
  #stop: (reason: unknown) => void = () => undefined;
  #ended: { readonly reason: unknown } | undefined;
  readonly #abort = () => this.#finish(this.#reason());
  readonly #address: string;

  constructor({ signal, deadlineMs }: OutgoingCall, address: string) {
    this.#signal = signal;
    this.#address = address;
    if (signal.aborted) throw this.#reason();
    signal.addEventListener("abort", this.#abort, { once: true });
    if (deadlineMs === undefined) return;
    this.#timer = after(Math.max(0, deadlineMs - Date.now()), () =>
      this.#finish(new SkaldError("deadline_exceeded", "the deadline of the call is over")),
    );
  }

  /** What the promise gives, or the end of the call if that is sooner. */
  race<T>(promise: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      this.onEnd(reject);
      promise.then(resolve, reject);
    });
  }

  /** Says what else ends then. */
  onEnd(stop: (reason: unknown) => void): void {
    this.#stop = stop;
    if (this.#ended !== undefined) stop(this.#ended.reason);
  }

  /** The call is over. */
  end(): void {
    this.#signal.removeEventListener("abort", this.#abort);
    clearTimeout(this.#timer);
  }

  /** The reason of the signal; that of a time limit says who did not answer. */
  #reason(): unknown {
    const { reason } = this.#signal;
    if (reason instanceof SkaldError || errorCodeOf(reason) !== "unavailable") return reason;
    return unavailable(`${this.#address}: ${textForClients(reason)}`, { cause: reason });
  }

  #finish(reason: unknown): void {
    this.#ended ??= { reason };
    this.#stop(reason);
  }
}
