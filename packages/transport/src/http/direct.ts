import { STATUS_CODES } from "node:http";
import type { Socket } from "node:net";
import type { ConnectionGuard } from "../connection-guard.js";
import { type PlainHead, readPlainHead } from "./plain-head.js";
import type { RequestObserver } from "./router.js";
import type { HttpResponse } from "./types.js";

/** A small request that is there as a whole. */
export interface DirectRequest {
  readonly path: string;
  /** By their names in lower case; none was there twice. */
  readonly headers: ReadonlyMap<string, string>;
  /** Nobody else has this memory. */
  readonly body: Uint8Array;
}

/** Answers a request that is there as a whole; its body has one piece. What it throws is answered as of a raw handler. */
export type DirectHandler = (request: DirectRequest) => Promise<DirectResponse>;

export interface DirectResponse extends HttpResponse {
  readonly body?: string | Uint8Array;
}

export interface DirectOptions {
  /** Handler and route name by exact path. */
  readonly routes: ReadonlyMap<string, DirectRoute>;
  readonly guard: ConnectionGuard;
  readonly idleTimeoutMs: number;
  /** As of the server: an answer that nobody takes is given up after it; 0: never. */
  readonly writeTimeoutMs: number;
  readonly onRequest?: RequestObserver | undefined;
  /** Makes an answer of what a handler threw. */
  readonly failureOf: (error: unknown, path: string) => DirectResponse;
  /** Whether a request may be served here now. */
  readonly isOpen: () => boolean;
  /** Takes over a connection, whose bytes that were not served yet are put back, for as long as it lasts. */
  readonly serveHttp1: (socket: Socket) => void;
}

export interface DirectRoute {
  readonly name: string;
  readonly handler: DirectHandler;
  /** A larger body goes the other way. */
  readonly maxBodyBytes: number;
}

/** Larger bodies are left to the usual way, which counts their bytes as they come. */
const maxDirectBytes = 128 * 1024;
/** A request in more pieces, or one that takes longer to come, is left to the usual way, which has timeouts for it. */
const maxPieces = 8;
const maxArrivalMs = 250;
/** What a client may send ahead of an answer before it is read no further. */
const maxAheadBytes = 64 * 1024;
const clientLeft = 499;
/** What node:http answers to a request whose end never comes. */
const cutOff = "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n";

/**
 * Serves small POSTs of some paths without `node:http`, which costs more than storing them: requests as agents send them, one
 * at a time on a connection. Whatever is unusual about a request hands its connection over to the usual server, as if
 * nothing had been read of that request.
 */
export class DirectFront {
  readonly #options: DirectOptions;
  readonly #connections = new Map<Socket, DirectConnection>();

  constructor(options: DirectOptions) {
    this.#options = options;
  }

  /** Takes a connection with what came of it so far. */
  serve(socket: Socket, first: Buffer): void {
    const connection = new DirectConnection(socket, this.#options, () =>
      this.#connections.delete(socket),
    );
    this.#connections.set(socket, connection);
    connection.onData(first);
  }

  /** Whether a request of this connection is being served, or has begun to come. */
  isBusy(socket: Socket): boolean {
    return this.#connections.get(socket)?.isBusy ?? false;
  }
}

class DirectConnection {
  readonly #socket: Socket;
  readonly #options: DirectOptions;
  readonly #forget: () => void;
  #rest: Buffer | undefined;
  #pieces = 0;
  #head: PlainHead | undefined;
  #isServing = false;
  #isEnded = false;
  #arrival: NodeJS.Timeout | undefined;

  constructor(socket: Socket, options: DirectOptions, forget: () => void) {
    this.#socket = socket;
    this.#options = options;
    this.#forget = forget;
    socket.setTimeout(options.idleTimeoutMs);
    socket.on("data", this.onData).on("end", this.#onEnd).on("close", this.#onClose);
    socket.on("error", ignore).on("timeout", this.#onTimeout);
  }

  get isBusy(): boolean {
    return this.#isServing || this.#rest !== undefined;
  }

  readonly onData = (chunk: Buffer): void => {
    this.#rest = this.#rest === undefined ? chunk : Buffer.concat([this.#rest, chunk]);
    this.#pieces++;
    if (!this.#isServing) this.#next();
    else if (this.#rest.length > maxAheadBytes || this.#pieces > maxPieces) this.#socket.pause();
  };

  /** A client that sends no more may still read. */
  readonly #onEnd = (): void => {
    this.#isEnded = true;
    if (this.#isServing) return;
    if (this.#head === undefined) this.#socket.end();
    else {
      this.#observe(this.#head)?.(clientLeft, undefined);
      this.#socket.end(cutOff);
    }
  };

  readonly #onClose = (): void => {
    if (!this.#isEnded && !this.#isServing && this.#head !== undefined) {
      this.#observe(this.#head)?.(clientLeft, undefined);
    }
    this.#leave();
  };

  readonly #onTimeout = (): void => {
    if (this.#isServing && this.#socket.writableLength === 0) return;
    this.#socket.destroy();
  };

  /** Serves the request that has come; one that has not is waited for, and one that is not for here handed over. */
  #next(): void {
    const { isOpen, routes, guard } = this.#options;
    const bytes = this.#rest;
    if (bytes === undefined) return;
    this.#head ??= isOpen() ? readPlainHead(bytes) : undefined;
    const head = this.#head;
    const route = head === undefined ? undefined : routes.get(head.path);
    if (head === undefined || route === undefined || !fits(head, route)) {
      this.#handOver();
      return;
    }
    const end = head.headBytes + head.bodyBytes;
    if (bytes.length < end) {
      if (this.#pieces >= maxPieces) this.#handOver();
      else this.#arrival ??= setTimeout(() => this.#onLate(), maxArrivalMs);
      return;
    }
    clearTimeout(this.#arrival);
    this.#arrival = undefined;
    this.#rest = bytes.length > end ? bytes.subarray(end) : undefined;
    this.#pieces = this.#rest === undefined ? 0 : 1;
    this.#head = undefined;
    this.#isServing = true;
    const body = bytes.subarray(head.headBytes, end);
    void guard.run(this.#socket, () => this.#serve(route, head, body));
  }

  #onLate(): void {
    void this.#options.guard.run(this.#socket, () => this.#handOver());
  }

  async #serve(route: DirectRoute, head: PlainHead, body: Uint8Array): Promise<void> {
    const { path, headers } = head;
    const ended = this.#observe(head);
    let answer: DirectResponse;
    try {
      answer = await route.handler({ path, headers, body });
    } catch (error) {
      answer = this.#options.failureOf(error, path);
    }
    if (this.#socket.destroyed || !this.#socket.writable) {
      ended?.(clientLeft, undefined);
      return;
    }
    const isLast = this.#isEnded || !this.#options.isOpen();
    const text = this.#textOf(answer, isLast);
    const isTaken = this.#socket.write(text.head, "latin1") && text.body === undefined;
    if (text.body !== undefined) this.#socket.write(text.body);
    ended?.(answer.status, text.body?.length ?? 0);
    if (isLast) this.#socket.end();
    else if (isTaken || this.#socket.writableLength === 0) this.#goOn();
    else this.#waitUntilTaken();
  }

  #goOn(): void {
    this.#isServing = false;
    if (this.#socket.isPaused()) this.#socket.resume();
    this.#next();
  }

  #waitUntilTaken(): void {
    const { writeTimeoutMs, idleTimeoutMs } = this.#options;
    this.#socket.setTimeout(writeTimeoutMs);
    this.#socket.once("drain", () => {
      this.#socket.setTimeout(idleTimeoutMs);
      this.#goOn();
    });
  }

  #observe({ path, bodyBytes }: PlainHead) {
    const { onRequest, routes } = this.#options;
    if (onRequest === undefined) return undefined;
    const start = performance.now();
    const begun = { method: "POST", route: routes.get(path)?.name ?? "" };
    const onEnd = onRequest(begun);
    return (status: number, responseBytes: number | undefined) => {
      const durationMs = performance.now() - start;
      onEnd({ ...begun, status, durationMs, requestBytes: bodyBytes, responseBytes });
    };
  }

  #textOf({ status, headers, body }: DirectResponse, isLast: boolean) {
    const { idleTimeoutMs } = this.#options;
    let head = `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? "unknown"}\r\n`;
    if (headers !== undefined) {
      for (const name in headers) head += `${name}: ${headers[name]}\r\n`;
    }
    const bytes = typeof body === "string" ? Buffer.from(body) : body;
    if (status !== noContent) head += `content-length: ${bytes?.length ?? 0}\r\n`;
    head += `Date: ${dateOfNow()}\r\n`;
    if (isLast) head += "Connection: close\r\n\r\n";
    else if (idleTimeoutMs < 1000) head += "Connection: keep-alive\r\n\r\n";
    else {
      const seconds = Math.floor(idleTimeoutMs / 1000);
      head += `Connection: keep-alive\r\nKeep-Alive: timeout=${seconds}\r\n\r\n`;
    }
    return { head, body: bytes?.length === 0 ? undefined : bytes };
  }

  #handOver(): void {
    const socket = this.#socket;
    const bytes = this.#rest;
    this.#leave();
    if (socket.destroyed) return;
    socket.setTimeout(0);
    socket.pause();
    if (bytes !== undefined) socket.unshift(bytes);
    this.#options.serveHttp1(socket);
    socket.resume();
  }

  #leave(): void {
    clearTimeout(this.#arrival);
    const socket = this.#socket;
    socket.off("data", this.onData).off("end", this.#onEnd).off("close", this.#onClose);
    socket.off("timeout", this.#onTimeout);
    if (!socket.destroyed) socket.off("error", ignore);
    this.#forget();
  }
}

const noContent = 204;

function ignore(): void {
  // Whoever is gone gets no answer; "close" follows.
}

function fits(head: PlainHead, route: DirectRoute): boolean {
  return head.bodyBytes <= Math.min(route.maxBodyBytes, maxDirectBytes);
}

let dateSecond = 0;
let dateText = "";

/** The time as HTTP writes it; the text of a second is made once. */
function dateOfNow(): string {
  const second = Math.floor(Date.now() / 1000);
  if (second !== dateSecond) {
    dateSecond = second;
    dateText = new Date(second * 1000).toUTCString();
  }
  return dateText;
}
