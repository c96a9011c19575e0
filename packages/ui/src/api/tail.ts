import { addressOf, currentTenant } from "./client.js";
import { decodeStreams, type Line, type RawStream } from "./lines.js";

export interface TailEvents {
  /** Lines in the order in which they came; `first` says that they are the first of a connection. */
  onLines(lines: Line[], first: boolean): void;
  /** How many lines the server left out because this page is too slow for them. */
  onDropped(count: number): void;
  /** A connection ended: why, and in how many ms the next one is tried; undefined once it is there again. */
  onBroken(reason: string | undefined, retryMs: number): void;
}

/** All lines of a span, oldest first. */
export type Poll = (startNs: string, endNs: string) => Promise<Line[]>;

interface TailMessage {
  readonly streams?: readonly RawStream[] | null;
  readonly dropped_entries?: readonly unknown[] | null;
  /** Of which `dropped_entries` names some. */
  readonly dropped_total?: number;
}

const retriesMs = [1000, 2000, 5000, 10_000];
const overlapNs = 5_000_000_000n;
const historyMax = 1000;
const pollMs = 2000;
/** Attempts without a single connection after which there is no WebSocket on the way to the server. */
const attemptsMax = 2;

/**
 * Follows the lines of a query until it is closed. A connection that ends is made again, from five seconds before the last line
 * on; where no WebSocket passes, the server is asked every two seconds.
 */
export class Tail {
  readonly #query: string;
  readonly #poll: Poll;
  readonly #events: TailEvents;
  #socket: WebSocket | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #lastNs: string;
  #attempt = 0;
  #hasOpened = false;
  #closed = false;

  constructor(query: string, sinceNs: string, poll: Poll, events: TailEvents) {
    this.#query = query;
    this.#lastNs = sinceNs;
    this.#poll = poll;
    this.#events = events;
    this.#connect();
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#timer);
    this.#socket?.close();
  }

  #startNs(): string {
    return String(BigInt(this.#lastNs) - overlapNs);
  }

  #connect(): void {
    const params = { query: this.#query, start: this.#startNs(), limit: historyMax };
    const url = addressOf("loki/api/v1/tail", params);
    url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
    const tenant = currentTenant();
    const protocols = tenant === "" ? [] : [`skald.tenant.${base64Url(tenant)}`];
    const socket = new WebSocket(url, protocols);
    let first = true;
    this.#socket = socket;
    socket.onopen = () => {
      this.#hasOpened = true;
      this.#attempt = 0;
      this.#events.onBroken(undefined, 0);
    };
    socket.onmessage = ({ data }) => {
      this.#take(JSON.parse(String(data)) as TailMessage, first);
      first = false;
    };
    socket.onclose = ({ reason, code }) => this.#again(reason || `the connection ended (${code})`);
  }

  #take(
    { streams, dropped_entries: named, dropped_total: total }: TailMessage,
    first: boolean,
  ): void {
    const lines = decodeStreams(streams ?? []).sort((a, b) =>
      a.ns < b.ns ? -1 : a.ns > b.ns ? 1 : 0,
    );
    const last = lines.at(-1);
    if (last !== undefined && last.ns > this.#lastNs) this.#lastNs = last.ns;
    if (lines.length > 0 || first) this.#events.onLines(lines, first);
    const dropped = total ?? named?.length ?? 0;
    if (dropped > 0) this.#events.onDropped(dropped);
  }

  #again(reason: string): void {
    if (this.#closed) return;
    const isBlocked = !this.#hasOpened && this.#attempt >= attemptsMax;
    const waitMs = isBlocked ? pollMs : retriesMs[Math.min(this.#attempt, retriesMs.length - 1)]!;
    this.#attempt++;
    this.#events.onBroken(
      isBlocked ? "no WebSocket to this server: asking every 2 s" : reason,
      waitMs,
    );
    this.#timer = setTimeout(() => (isBlocked ? void this.#ask() : this.#connect()), waitMs);
  }

  /** Asks what came since; the reason why there is no connection stays in sight. */
  async #ask(): Promise<void> {
    const endNs = String(BigInt(Date.now()) * 1_000_000n);
    try {
      const lines = await this.#poll(this.#startNs(), endNs);
      const last = lines.at(-1);
      if (last !== undefined && last.ns > this.#lastNs) this.#lastNs = last.ns;
      if (!this.#closed && lines.length > 0) this.#events.onLines(lines, true);
    } catch {
      // The next question says whether the server is there again.
    }
    if (!this.#closed) this.#timer = setTimeout(() => void this.#ask(), pollMs);
  }
}

function base64Url(text: string): string {
  const bytes = new TextEncoder().encode(text);
  return btoa(String.fromCharCode(...bytes))
    .replaceAll("+", "-")
    .replaceAll("/", "_")
    .replace(/=+$/, "");
}
