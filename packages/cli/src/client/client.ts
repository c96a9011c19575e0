import { setTimeout as pause } from "node:timers/promises";
import { Failure } from "../shell/command.js";
import type { Connection } from "./settings.js";

export type Params = Readonly<Record<string, string | number | readonly string[] | undefined>>;

export interface Call {
  readonly method?: string;
  readonly params?: Params;
  readonly body?: string | Uint8Array;
  readonly headers?: Readonly<Record<string, string>>;
  /** Repeats at least this often; the connection may ask for more. */
  readonly retries?: number;
  /** Repeats at most this often after 429. */
  readonly busyRetries?: number;
  /** Is told, before the first pause for a 429, what the server answered and how long this may go on. */
  readonly onBusy?: (text: string) => void;
}

const tooManyRequests = 429;

/** Asks a server over HTTP, and repeats what was not answered. */
export class Client {
  readonly connection: Connection;
  /** Aborts when the command ends early. */
  readonly signal: AbortSignal;
  #dispatcher: Promise<Fetch> | undefined;

  constructor(connection: Connection, signal: AbortSignal) {
    this.connection = connection;
    this.signal = signal;
  }

  /** The same, with requests that also end with this signal. */
  until(signal: AbortSignal): Client {
    return new Client(this.connection, AbortSignal.any([this.signal, signal]));
  }

  /** The body of an answer of 2xx as JSON. */
  async json<T>(path: string, params: Params, call: Call = {}): Promise<T> {
    const text = await (await this.call(path, { ...call, params })).text();
    try {
      return JSON.parse(text) as T;
    } catch (cause) {
      throw new Failure("unreached", `${this.url(path)} did not answer JSON`, { cause });
    }
  }

  /** An answer of 2xx. Throws a `Failure` for 4xx, and when there is no answer, or 5xx, after all repetitions. */
  async call(path: string, call: Call = {}): Promise<Response> {
    const { retries, minBackoffMs, maxBackoffMs } = this.connection;
    const most = Math.max(retries, call.retries ?? 0);
    for (let tried = 0; ; tried++) {
      const backoffMs = Math.min(minBackoffMs * 2 ** tried, maxBackoffMs);
      const found = await this.#once(path, call);
      if (!(found instanceof Failure) && found.status < 300) return found;
      const isBusy = !(found instanceof Failure) && found.status === tooManyRequests;
      const isFinal = !(found instanceof Failure) && found.status < 500 && !isBusy;
      const mostNow = isBusy ? Math.min(most, call.busyRetries ?? most) : most;
      if (isFinal || tried >= mostNow)
        throw found instanceof Failure ? found : await refusal(found);
      const asked = found instanceof Failure ? null : found.headers.get("retry-after");
      const askedMs = Number(asked ?? 0) * 1000;
      const waitMs = Number.isFinite(askedMs) && askedMs > 0 ? askedMs : backoffMs;
      if (isBusy && tried === 0 && call.onBusy !== undefined) {
        const { message } = await refusal(found);
        call.onBusy(`${message}; trying again in ${waitMs / 1000} s, at most ${mostNow} times`);
      }
      await pause(waitMs, undefined, { signal: this.signal });
    }
  }

  /** The address of an endpoint. */
  url(path: string, params: Params = {}): string {
    const query = new URLSearchParams();
    for (const [name, value] of Object.entries(params).sort(([a], [b]) => (a < b ? -1 : 1))) {
      const values = Array.isArray(value) ? value : value === undefined ? [] : [value];
      for (const one of values) query.append(name, String(one));
    }
    const text = query.toString();
    return `${this.connection.addr}${path}${text === "" ? "" : `?${text}`}`;
  }

  async #once(path: string, call: Call): Promise<Response | Failure> {
    const { method = "GET", params, body } = call;
    const url = this.url(path, params);
    this.#dispatcher ??= fetchOf(this.connection);
    try {
      return await (await this.#dispatcher)(url, {
        ...{ method, signal: this.signal, redirect: "follow" },
        headers: { ...this.connection.headers, ...call.headers },
        ...(body === undefined ? {} : { body: body as string }),
      });
    } catch (error) {
      if (this.signal.aborted) throw error;
      const { message, cause } = error as Error;
      const { addr } = this.connection;
      const why = cause instanceof Error && cause.message !== "" ? cause.message : message;
      const code = ((cause ?? error) as NodeJS.ErrnoException).code;
      return new Failure("unreached", `${addr} was not reached: ${why || code}`, { cause: error });
    }
  }
}

type Fetch = (url: string, init: RequestInit) => Promise<Response>;

/** Node's own fetch; with TLS files or a proxy the one of undici, which takes them. */
async function fetchOf({ addr, tls, proxy }: Connection): Promise<Fetch> {
  if (tls === undefined && proxy === undefined) return fetch;
  const { default: undici } = await import("undici");
  const connect = tls === undefined ? {} : { ...tls };
  const dispatcher =
    proxy === undefined
      ? new undici.Agent({ connect })
      : new undici.ProxyAgent({
          ...{ uri: proxy, requestTls: connect, proxyTls: connect },
          proxyTunnel: addr.startsWith("https:"),
        });
  const call = undici.fetch as unknown as (url: string, init: object) => Promise<Response>;
  return (url, init) => call(url, { ...init, dispatcher });
}

async function refusal(answer: Response): Promise<Failure> {
  const text = (await answer.text()).trim();
  const why = text === "" ? answer.statusText : text;
  const isFault = answer.status >= 500;
  return new Failure(
    isFault ? "unreached" : "refused",
    `the server answered ${answer.status}: ${why}`,
  );
}
