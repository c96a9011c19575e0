import { Agent as HttpAgent, request as httpRequest } from "node:http";
import { setTimeout as pause } from "node:timers/promises";
import { connect as connectTls } from "node:tls";
import { type ClientOptions, WebSocket } from "ws";
import { type AnswerStream, type Entry, entriesOf } from "../output/entries.js";
import { exits, Failure } from "../shell/command.js";
import type { Client } from "./client.js";
import { keyOf, queryRange } from "./log-pages.js";
import type { Connection } from "./settings.js";

export interface TailQuery {
  readonly query: string;
  /** Lines from this time on come first. */
  readonly fromNs: bigint;
  /** Most lines of the history; 0: those that come while the connection is made. */
  readonly limit: number;
  /** Most lines that one request asks after a lost connection. */
  readonly batch: number;
  readonly delaySeconds: number;
  /** Takes what the reader should know: lost connections, and lines that were left out. */
  readonly onNote: (text: string) => void;
}

export interface TailPage {
  readonly streams: readonly AnswerStream[];
  readonly entries: readonly Entry[];
}

interface TailMessage {
  readonly streams?: readonly AnswerStream[] | null;
  readonly dropped_entries?: readonly { readonly timestamp?: string }[] | null;
  /** Of which `dropped_entries` names some; other servers do not say it. */
  readonly dropped_total?: number;
}

const firstPauseMs = 250;
const longestPauseMs = 10_000;
const handshakeTimeoutMs = 30_000;

/**
 * The newest lines, and then lines as they come in, until the client's signal aborts. The server reads the history when the tail
 * is open, so no line falls in between. After a lost connection the lines since the last one are asked,
 * and then the tail goes on; lines that the server left out are named.
 */
export async function* tail(client: Client, query: TailQuery): AsyncGenerator<TailPage> {
  const place = new Place(query);
  let failed = 0;
  for (let isFirst = true; !client.signal.aborted; isFirst = false) {
    let reason = "";
    try {
      if (!isFirst && place.lastNs !== undefined) yield* catchUp(client, query, place);
      const limit = isFirst && query.limit > 0 ? query.limit : query.batch;
      for await (const message of messages(client, { ...query, limit, fromNs: place.fromNs })) {
        failed = 0;
        const dropped = message.dropped_total ?? message.dropped_entries?.length ?? 0;
        if (dropped > 0) query.onNote(`the server left out ${dropped} lines here`);
        const streams = message.streams ?? [];
        const entries = place.take(entriesOf(streams, true));
        if (entries.length > 0) yield { streams, entries };
      }
    } catch (error) {
      if (client.signal.aborted) return;
      if (error instanceof ClosedByServer) {
        if (isFirst && error.isRefusal) throw new Failure("refused", error.message);
        reason = `: ${error.message}`;
      } else {
        const mayRetry = error instanceof Failure && error.exit === exits.unreached;
        if (!mayRetry || isFirst) throw error;
      }
    }
    if (client.signal.aborted) return;
    if (failed === 0) query.onNote(`the connection was lost${reason}; connecting again`);
    const waitMs = Math.min(firstPauseMs * 2 ** failed++, longestPauseMs);
    await pause(waitMs, undefined, { signal: client.signal }).catch(() => undefined);
  }
}

/** The last line of a tail, and its neighbours of the same time: where it goes on. */
class Place {
  readonly #startNs: bigint;
  lastNs: bigint | undefined;
  #seen = new Set<string>();

  constructor({ fromNs }: TailQuery) {
    this.#startNs = fromNs;
  }

  get fromNs(): bigint {
    return this.lastNs ?? this.#startNs;
  }

  /** The lines that are new. */
  take(entries: readonly Entry[]): Entry[] {
    const fresh = entries.filter(
      (entry) => entry.ns !== this.lastNs || !this.#seen.has(keyOf(entry)),
    );
    for (const entry of fresh) {
      if (this.lastNs !== undefined && entry.ns < this.lastNs) continue;
      if (entry.ns !== this.lastNs) this.#seen = new Set();
      this.lastNs = entry.ns;
      this.#seen.add(keyOf(entry));
    }
    return fresh;
  }
}

/** The lines between a lost connection and now. */
async function* catchUp(client: Client, { query, batch, onNote }: TailQuery, place: Place) {
  let count = 0;
  const range = { fromNs: place.fromNs, toNs: BigInt(Date.now() + 1) * 1_000_000n };
  const pages = queryRange(client, { query, ...range, limit: 0, batch, isForward: true });
  for await (const page of pages) {
    if (page.kind !== "lines") continue;
    const entries = place.take(page.entries);
    count += entries.length;
    if (entries.length > 0) yield { streams: page.streams, entries };
  }
  onNote(`connected again; ${count} lines had come meanwhile`);
}

/** The server closed a connection, and said why. */
class ClosedByServer extends Error {
  /** Whether the tail had not begun. */
  readonly isRefusal: boolean;

  constructor(reason: string, isRefusal: boolean) {
    super(reason);
    this.isRefusal = isRefusal;
  }
}

/** WebSocket's code for what went wrong at the server. */
const failureCode = 1011;

/** The messages of one connection. */
async function* messages(client: Client, tail: TailQuery): AsyncGenerator<TailMessage> {
  const { query, fromNs, limit, delaySeconds } = tail;
  const params = { query, start: `${fromNs}`, limit, delay_for: delaySeconds || undefined };
  const url = client.url("/loki/api/v1/tail", params).replace(/^http/, "ws");
  const socket = new WebSocket(url, socketOptions(client.connection));
  const close = () => socket.terminate();
  client.signal.addEventListener("abort", close);
  const queue: TailMessage[] = [];
  let isOpen = true;
  let hasBegun = false;
  let failure: Error | undefined;
  let wake: () => void = () => undefined;
  const take = (message: TailMessage) => {
    hasBegun = true;
    queue.push(message);
    wake();
  };
  // A tail without lines has pings only: the next attempt after one is a first attempt again.
  socket.on("ping", () => take({}));
  socket.on("message", (data) => take(JSON.parse(String(data))));
  socket.on("error", ({ message }) => {
    failure ??= new Failure("unreached", `${client.connection.addr} was not reached: ${message}`);
  });
  socket.on("unexpected-response", (_request, response) => {
    let text = "";
    response.setEncoding("utf8").on("data", (part) => {
      text += part;
    });
    response.on("end", () => {
      const { statusCode = 0 } = response;
      const kind = statusCode >= 500 ? "unreached" : "refused";
      failure = new Failure(kind, `the server answered ${statusCode}: ${text.trim()}`);
      socket.terminate();
    });
  });
  socket.on("close", (code, why) => {
    isOpen = false;
    if (why.length > 0)
      failure ??= new ClosedByServer(String(why), code === failureCode && !hasBegun);
    wake();
  });
  try {
    for (;;) {
      yield* queue.splice(0);
      if (queue.length > 0) continue;
      if (!isOpen) break;
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
    }
  } finally {
    client.signal.removeEventListener("abort", close);
    socket.terminate();
  }
  if (failure !== undefined) throw failure;
}

function socketOptions({ addr, headers, tls, proxy }: Connection): ClientOptions {
  const { "accept-encoding": _, ...rest } = headers;
  return {
    headers: rest,
    handshakeTimeout: handshakeTimeoutMs,
    ...tls,
    ...(proxy === undefined
      ? {}
      : { agent: new TunnelAgent(proxy, addr.startsWith("https"), tls) }),
  };
}

/** Connects through a proxy by CONNECT. */
class TunnelAgent extends HttpAgent {
  readonly #proxy: URL;
  readonly #isSecure: boolean;
  readonly #tls: Connection["tls"];

  constructor(proxy: string, isSecure: boolean, tls: Connection["tls"]) {
    super();
    this.#proxy = new URL(proxy);
    this.#isSecure = isSecure;
    this.#tls = tls;
  }

  override createConnection(
    options: { readonly host?: string | null; readonly port?: number | string | null },
    onConnected?: (error: Error | null, stream: never) => void,
  ): undefined {
    const { hostname, port, username, password } = this.#proxy;
    const host = options.host ?? "localhost";
    const path = `${host}:${options.port ?? (this.#isSecure ? 443 : 80)}`;
    const user = Buffer.from(`${decodeURIComponent(username)}:${decodeURIComponent(password)}`);
    const auth =
      username === "" ? {} : { "proxy-authorization": `Basic ${user.toString("base64")}` };
    const call = httpRequest({
      host: hostname,
      port: port || 80,
      method: "CONNECT",
      path,
      headers: auth,
    });
    call.once("error", (error) => onConnected?.(error, undefined as never));
    call.once("connect", ({ statusCode }, socket) => {
      const error = new Error(`the proxy answered ${statusCode}`);
      if (statusCode !== 200) return onConnected?.(error, undefined as never);
      const stream = this.#isSecure
        ? connectTls({ socket, servername: host, ...this.#tls })
        : socket;
      onConnected?.(null, stream as never);
    });
    call.end();
  }
}
