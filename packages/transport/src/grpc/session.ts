import { type ClientHttp2Session, connect } from "node:http2";
import { connect as dial, isIP, type Socket } from "node:net";
import { type ConnectionOptions, connect as dialTls } from "node:tls";
import { type SkaldError, unavailable } from "@skald/model";
import { within } from "@skald/runtime/tracing";
import { type ClientTlsOptions, clientTls } from "./client-tls.js";
import { after, type KeepaliveOptions, keepAlive, watchSilence } from "./keepalive.js";
import { maxHeaderBytes } from "./protocol.js";

export interface SessionOptions extends KeepaliveOptions {
  /** `host:port` */
  readonly address: string;
  readonly connectTimeoutMs: number;
  /** First and longest pause between tries to connect. */
  readonly minReconnectMs: number;
  readonly maxReconnectMs: number;
  /** Where calls wait and nothing comes for so long, a ping is sent; new calls get a connection of their own soon after. */
  readonly silenceMs?: number;
  /** Bytes that the other side may send ahead. */
  readonly windowBytes?: number;
  /** TLS, when it is given. */
  readonly tls?: ClientTlsOptions | undefined;
}

const defaultSilenceMs = 1500;
const defaultWindowBytes = 1024 * 1024;
/** Of all calls of a connection, as a multiple of that of one. */
const sessionWindows = 4;

/** Keeps a session of HTTP/2 to one address: made when it is asked for, and again when it is lost. */
export class Session {
  readonly #options: SessionOptions;
  readonly #tls: ConnectionOptions | undefined;
  #current: Promise<ClientHttp2Session> | undefined;
  #ready: ClientHttp2Session | undefined;
  #failures = 0;
  /** Until when nobody tries to connect, ms of the steady clock, and why. */
  #restUntilMs = 0;
  #lastFailure: SkaldError | undefined;
  readonly #open = new Set<ClientHttp2Session>();
  #isClosed = false;

  constructor(options: SessionOptions) {
    this.#options = options;
    this.#tls = options.tls === undefined ? undefined : clientTls(options.tls);
  }

  /** The session that there is now. */
  get current(): ClientHttp2Session | undefined {
    return this.#ready;
  }

  /** The session; rejects with unavailable when there is none to be had, or there was none a moment ago. */
  get(): Promise<ClientHttp2Session> {
    if (this.#current !== undefined) return this.#current;
    const { address } = this.#options;
    if (this.#isClosed) return Promise.reject(unavailable(`${address}: the connection is closed`));
    if (this.#lastFailure !== undefined && performance.now() < this.#restUntilMs) {
      const { message } = this.#lastFailure;
      return Promise.reject(unavailable(message, { cause: this.#lastFailure }));
    }
    const forget = () => {
      if (this.#current !== made) return;
      this.#current = undefined;
      this.#ready = undefined;
    };
    // It outlives the call that it is made for.
    const made: Promise<ClientHttp2Session> = within(undefined, () => this.#connect(forget));
    this.#current = made;
    made.then(
      (session) => {
        if (this.#current === made) this.#ready = session;
      },
      (error: SkaldError) => this.#rest(error),
    );
    return made;
  }

  /** Takes no more calls; those that run go on to their end. */
  close(): void {
    this.#isClosed = true;
    this.#current = undefined;
    this.#ready = undefined;
    for (const session of this.#open) session.close();
  }

  /** The pause doubles with every failure. */
  #rest(error: SkaldError): void {
    const { minReconnectMs, maxReconnectMs } = this.#options;
    const pauseMs = Math.min(minReconnectMs * 2 ** Math.min(this.#failures++, 30), maxReconnectMs);
    this.#restUntilMs = performance.now() + pauseMs;
    this.#lastFailure = error;
  }

  /** `forget` is called when no call may start on the session any more. */
  #connect(forget: () => void): Promise<ClientHttp2Session> {
    const { address, connectTimeoutMs, windowBytes = defaultWindowBytes } = this.#options;
    const socket = this.#dial();
    const session = connect(`http://${address}`, {
      createConnection: () => socket,
      settings: {
        enablePush: false,
        initialWindowSize: windowBytes,
        maxHeaderListSize: maxHeaderBytes,
      },
      maxSendHeaderBlockLength: maxHeaderBytes,
    });
    this.#open.add(session);
    return new Promise((resolve, reject) => {
      let failure: Error | undefined;
      const timer = after(connectTimeoutMs, () =>
        session.destroy(new Error(`no connection within ${connectTimeoutMs} ms`)),
      );
      const fail = (error: Error) => {
        failure ??= error;
      };
      session.on("error", fail);
      session.once("remoteSettings", () => {
        clearTimeout(timer);
        session.setLocalWindowSize(windowBytes * sessionWindows);
        this.#watch(session, socket, forget);
        this.#failures = 0;
        this.#lastFailure = undefined;
        if (this.#isClosed) session.close();
        // A call that runs keeps its process alive, an idle connection does not.
        session.unref();
        resolve(session);
      });
      session.once("goaway", forget);
      const end = () => {
        clearTimeout(timer);
        this.#open.delete(session);
        forget();
        const why = failure?.message ?? "the connection was closed";
        reject(unavailable(`${address}: ${why}`, { cause: failure }));
      };
      session.once("close", end);
      // A certificate that the other side refuses ends the session without a word of its own.
      socket.on("error", (error) => {
        fail(error);
        session.destroy();
        end();
      });
    });
  }

  /** A way that is lost without a word holds up calls that run until a ping is late, and new ones a few seconds. */
  #watch(session: ClientHttp2Session, socket: Socket, forget: () => void): void {
    watchSilence(session, {
      ping: keepAlive(session, this.#options),
      received: () => socket.bytesRead,
      isBusy: () => isBusy(session),
      silenceMs: this.#options.silenceMs ?? defaultSilenceMs,
      onSilent: () => {
        forget();
        session.close();
      },
    });
  }

  #dial(): Socket {
    const { hostname, port } = new URL(`tcp://${this.#options.address}`);
    const target = { host: hostname.replace(/^\[|\]$/g, ""), port: Number(port), noDelay: true };
    if (this.#tls === undefined) return dial(target);
    const name = isIP(target.host) === 0 ? { servername: target.host } : {};
    return dialTls({ ...target, ...name, ALPNProtocols: ["h2"], ...this.#tls });
  }
}

/** Calls that run on a session. */
const running = new WeakMap<ClientHttp2Session, number>();

/** Counts a call that begins. */
export function countCall(session: ClientHttp2Session): void {
  running.set(session, (running.get(session) ?? 0) + 1);
}

/** Counts a call that has ended; a session without calls keeps no process alive. */
export function uncountCall(session: ClientHttp2Session): void {
  const left = (running.get(session) ?? 1) - 1;
  running.set(session, left);
  if (left === 0 && !session.destroyed) session.unref();
}

function isBusy(session: ClientHttp2Session): boolean {
  return (running.get(session) ?? 0) > 0;
}
