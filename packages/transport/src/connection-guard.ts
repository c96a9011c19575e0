import { EventEmitter } from "node:events";
import { IncomingMessage, ServerResponse } from "node:http";
import { constants, type ServerHttp2Session, type ServerHttp2Stream } from "node:http2";

/** Why a server cut a connection: a handler threw, or the client reset too many requests or sent too many ahead. */
export type CutReason = "fault" | "resets" | "ahead";

/** Called when a connection is cut, with the error if a handler threw. */
export type CutObserver = (reason: CutReason, error?: unknown) => void;

interface Connection {
  destroy(error?: Error, code?: number): unknown;
  /** HTTP/2 sessions have it, to tell the client why they end. */
  readonly goaway?: unknown;
}

/** Requests that a client of HTTP/2 may reset in a period before its connection is cut. */
const maxResets = 500;
const resetPeriodMs = 10_000;

const goawayCodes = {
  fault: constants.NGHTTP2_INTERNAL_ERROR,
  resets: constants.NGHTTP2_ENHANCE_YOUR_CALM,
  ahead: constants.NGHTTP2_ENHANCE_YOUR_CALM,
};

/**
 * Keeps a fault of one connection from ending the process. In Node a listener that throws is an uncaught exception, which ends
 * the process; the guard catches the error, cuts the connection and calls an observer.
 */
export class ConnectionGuard {
  readonly #onCut: CutObserver | undefined;
  readonly #emit: EventEmitter["emit"];
  /** Connections of emitters that do not name them. */
  readonly #parents = new WeakMap<EventEmitter, Connection>();
  readonly #cut = new WeakSet<Connection>();

  constructor(onCut?: CutObserver) {
    this.#onCut = onCut;
    const guard = this;
    this.#emit = function (this: EventEmitter, event, ...args) {
      for (const arg of args) if (arg instanceof EventEmitter) guard.watch(arg);
      try {
        const { emit } = Object.getPrototypeOf(this) as EventEmitter;
        return emit.call(this, event, ...args);
      } catch (error) {
        // An error of the server itself, such as a port in use, has no connection.
        if (!guard.#fail([this, ...args], error)) throw error;
        return true;
      }
    };
  }

  /**
   * Guards every listener of an emitter, those added later too. An emitter that comes with an event is watched as well, so a
   * watched server covers its sockets, sessions, streams, requests and answers.
   */
  watch(emitter: EventEmitter, connection?: Connection): void {
    emitter.emit = this.#emit;
    if (connection !== undefined) this.#parents.set(emitter, connection);
  }

  /** Runs work that a listener continues in a timer or a promise. The returned promise never rejects. */
  async run(emitter: EventEmitter, work: () => unknown): Promise<void> {
    try {
      await work();
    } catch (error) {
      this.#fail([emitter], error);
    }
  }

  /**
   * Cuts a session whose client resets more than 500 requests in ten seconds: a reset costs the server more than the client.
   * The returned function must be called with each closed stream of the session.
   */
  limitResets(session: ServerHttp2Session): (closed: ServerHttp2Stream) => void {
    let resets = 0;
    let sinceMs = performance.now();
    return ({ aborted, rstCode }) => {
      if (!aborted && rstCode === constants.NGHTTP2_NO_ERROR) return;
      const nowMs = performance.now();
      if (nowMs - sinceMs > resetPeriodMs) {
        resets = 0;
        sinceMs = nowMs;
      }
      // The end of a session resets its running streams.
      if (++resets > maxResets && !session.destroyed) this.cut(session, "resets");
    };
  }

  /** Cuts a connection for what its client does. */
  cut(connection: Connection, reason: Exclude<CutReason, "fault">): void {
    this.#end(connection, reason);
  }

  /** Whether a connection is about to be cut: its further requests need no answer. */
  isCut(connection: Connection): boolean {
    return this.#cut.has(connection);
  }

  /** Cuts the connection of an event; false if it has none. */
  #fail(emitters: readonly unknown[], error: unknown): boolean {
    for (const emitter of emitters) {
      const connection = this.#connectionOf(emitter);
      if (connection === undefined) continue;
      this.#end(connection, "fault", error);
      return true;
    }
    return false;
  }

  #end(connection: Connection, reason: CutReason, error?: unknown): void {
    if (this.#cut.has(connection)) return;
    this.#cut.add(connection);
    this.#onCut?.(reason, error);
    // Node 20 runs listeners while nghttp2 reads, and crashes when a session is destroyed within that.
    setImmediate(() => {
      if (connection.goaway === undefined) connection.destroy();
      else connection.destroy(new Error("the connection was cut"), goawayCodes[reason]);
    });
  }

  /** The connection of an emitter: the socket of a message, the session of a stream. */
  #connectionOf(emitter: unknown): Connection | undefined {
    if (!(emitter instanceof EventEmitter)) return undefined;
    const parent = this.#parents.get(emitter);
    if (parent !== undefined) return parent;
    if (emitter instanceof IncomingMessage) return emitter.socket;
    // An answer that is sent has no socket of its own any more.
    if (emitter instanceof ServerResponse) return emitter.req.socket;
    const { session } = emitter as Partial<ServerHttp2Stream>;
    return session ?? ("destroy" in emitter ? (emitter as EventEmitter & Connection) : undefined);
  }
}
