import {
  type ClientRequest,
  type IncomingHttpHeaders,
  type IncomingMessage,
  request,
} from "node:http";
import {
  constants,
  createServer,
  type IncomingHttpHeaders as Http2Headers,
  type Http2Server,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from "node:http2";
import type { Socket } from "node:net";
import { type Duplex, duplexPair, pipeline } from "node:stream";
import type { ConnectionGuard } from "../connection-guard.js";
import { type RequestTurns, turnOf } from "../request-turns.js";

/** Takes a connection that speaks HTTP/1. */
export type ConnectionListener = (socket: Duplex) => void;

export interface Http2Options {
  readonly serveHttp1: ConnectionListener;
  readonly guard: ConnectionGuard;
  readonly turns: RequestTurns;
  readonly maxHeaderBytes: number;
  /** Time after which a connection without requests ends; 0: never. */
  readonly idleTimeoutMs: number;
  /** Time after which a request ends if its client does not take the answer; 0: never. */
  readonly writeTimeoutMs: number;
}

/** Requests of a connection at a time. */
const maxConcurrentStreams = 250;
/** Bytes that a client may send ahead, for one request and for a connection; they are held in memory. */
const streamWindowBytes = 256 * 1024;
const sessionWindowBytes = 1024 * 1024;

/**
 * Serves connections that speak HTTP/2. Each request is handed on as one of HTTP/1 over a pair of streams in memory, so
 * that there is one server behind both, with one set of limits.
 */
export class Http2Front {
  readonly #options: Http2Options;
  readonly #server: Http2Server;
  readonly #sessions = new Set<ServerHttp2Session>();

  constructor(options: Http2Options) {
    this.#options = options;
    this.#server = createServer({
      settings: {
        maxConcurrentStreams,
        maxHeaderListSize: options.maxHeaderBytes,
        initialWindowSize: streamWindowBytes,
      },
      maxSendHeaderBlockLength: options.maxHeaderBytes,
    });
    options.guard.watch(this.#server);
    this.#server.on("session", (session) => this.#onSession(session));
    this.#server.on("sessionError", () => undefined);
  }

  /** Takes a paused connection, whose bytes that were already read are unshifted. */
  readonly serve = (socket: Duplex, ahead: Buffer): void => {
    if (resetsIn(ahead) > maxConcurrentStreams) this.#options.guard.cut(socket, "resets");
    else this.#server.emit("connection", socket);
  };

  /** Lets running requests end, and takes no more. */
  close(): void {
    for (const session of this.#sessions) session.close();
  }

  /** Cuts all connections. */
  destroy(): void {
    for (const session of this.#sessions) session.destroy(undefined, constants.NGHTTP2_CANCEL);
  }

  #onSession(session: ServerHttp2Session): void {
    this.#sessions.add(session);
    session.setLocalWindowSize(sessionWindowBytes);
    const { idleTimeoutMs, guard, turns } = this.#options;
    session.once("close", () => {
      this.#sessions.delete(session);
      turns.drop(session);
    });
    const countReset = guard.limitResets(session);
    let open = 0;
    session.on("stream", (stream, headers) => {
      stream.on("error", () => undefined);
      open++;
      stream.once("close", () => {
        open--;
        countReset(stream);
      });
      const begin = (): void => {
        // The client may have reset the request, or left, before its turn.
        if (stream.destroyed || guard.isCut(session)) return;
        void guard.run(stream, () => this.#onStream(stream, headers));
      };
      const turn = turnOf(headers, headers[":path"] ?? "");
      if (!turns.run(session, begin, turn)) guard.cut(session, "ahead");
    });
    if (idleTimeoutMs > 0)
      session.setTimeout(idleTimeoutMs, () => {
        if (open === 0) session.close();
      });
  }

  #onStream(stream: ServerHttp2Stream, headers: Http2Headers): void {
    const { writeTimeoutMs } = this.#options;
    if (writeTimeoutMs > 0)
      stream.setTimeout(writeTimeoutMs, () => {
        if (stream.writableLength > 0) stream.close(constants.NGHTTP2_CANCEL);
      });
    bridge(stream, headers, this.#options);
  }
}

/** Headers of a connection, which differs on each side. */
const hopHeaders = new Set([
  "connection",
  "expect",
  "host",
  "http2-settings",
  "keep-alive",
  "proxy-connection",
  "te",
  "transfer-encoding",
  "upgrade",
]);

function bridge(
  stream: ServerHttp2Stream,
  headers: Http2Headers,
  { serveHttp1, guard }: Pick<Http2Options, "serveHttp1" | "guard">,
): void {
  const [near, far] = duplexPair();
  let asked: ClientRequest;
  try {
    asked = request({
      createConnection: () => near as Socket,
      method: headers[":method"] ?? "GET",
      path: headers[":path"] ?? "/",
      headers: { host: String(headers[":authority"] ?? headers.host ?? ""), ...endToEnd(headers) },
    });
  } catch {
    // HTTP/1 cannot express the method or the path.
    stream.respond({ ":status": 400 }, { endStream: true });
    return;
  }
  for (const end of [asked, near, far]) guard.watch(end);
  const cut = (): void => {
    near.destroy();
    far.destroy();
  };
  stream.once("close", cut);
  asked.once("error", () => stream.close(constants.NGHTTP2_INTERNAL_ERROR));
  asked.once("response", (response) => answer(stream, response));
  far.on("error", () => undefined);
  if (headers.expect !== undefined) stream.additionalHeaders({ ":status": 100 });
  serveHttp1(far);
  pipeline(stream, asked, () => undefined);
}

function answer(stream: ServerHttp2Stream, response: IncomingMessage): void {
  if (stream.destroyed || stream.closed) return;
  stream.respond({ ":status": response.statusCode ?? 500, ...endToEnd(response.headers) });
  pipeline(response, stream, () => undefined);
}

function endToEnd(headers: IncomingHttpHeaders | Http2Headers): Record<string, string | string[]> {
  const kept: Record<string, string | string[]> = Object.create(null);
  for (const [name, value] of Object.entries(headers))
    if (value !== undefined && !name.startsWith(":") && !hopHeaders.has(name)) kept[name] = value;
  return kept;
}

/** A connection that waits is read until this much is there: more would be parsed at once when it has its turn. */
const maxAheadBytes = 4 * 1024;

/**
 * Reads ahead while a connection waits to be served, because else nobody notices that its client has left: it is destroyed then. What is
 * returned ends that and gives what was read; the connection is paused then, and this can be read again.
 */
export function readAhead(socket: Duplex): () => Buffer {
  const chunks: Buffer[] = [];
  let bytes = 0;
  const onData = (chunk: Buffer): void => {
    chunks.push(chunk);
    bytes += chunk.length;
    if (bytes > maxAheadBytes) socket.pause();
  };
  const onEnd = (): void => void socket.destroy();
  socket.on("data", onData).once("end", onEnd).resume();
  return () => {
    socket.off("data", onData).off("end", onEnd).pause();
    const ahead = Buffer.concat(chunks);
    if (bytes > 0) socket.unshift(ahead);
    return ahead;
  };
}

const preface = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
/** Bytes of a frame before its payload: three of its length, one of its type. */
const frameHeadBytes = 9;
const typeOfReset = 3;

/**
 * Requests that a client reset before it heard anything, by the frames of RFC 9113, section 4.1. Node makes an object and some strings of each, which
 * V8 clears up later in one stretch: 100 to 160 ms after 100,000 requests.
 */
function resetsIn(ahead: Buffer): number {
  let resets = 0;
  let at = preface.length;
  while (at + frameHeadBytes <= ahead.length) {
    if (ahead[at + 3] === typeOfReset) resets++;
    at += frameHeadBytes + ahead.readUIntBE(at, 3);
  }
  return resets;
}

/** Hands a connection to HTTP/1 or HTTP/2 by its first bytes; a silent one is cut after `timeoutMs`, 0: never. */
export function sniff(
  socket: Socket,
  {
    http1,
    http2,
    timeoutMs,
  }: {
    http1: ConnectionListener;
    http2: (socket: Duplex, head: Buffer) => void;
    timeoutMs: number;
  },
): void {
  let head: Buffer = Buffer.alloc(0);
  const cut = (): void => void socket.destroy();
  const onData = (chunk: Buffer): void => {
    head = head.length === 0 ? chunk : Buffer.concat([head, chunk]);
    const isPreface = preface.subarray(0, head.length).equals(head.subarray(0, preface.length));
    if (isPreface && head.length < preface.length) return;
    socket.off("data", onData).off("end", cut).off("error", cut).off("timeout", cut);
    socket.setTimeout(0);
    socket.pause();
    socket.unshift(head);
    if (isPreface) {
      http2(socket, head);
      return;
    }
    http1(socket);
    socket.resume();
  };
  socket.on("data", onData).on("end", cut).on("error", cut).on("timeout", cut);
  socket.setTimeout(timeoutMs);
}
