import { WebSocket } from "ws";

/** A message of a tail. */
export interface TailMessage {
  readonly streams: readonly {
    readonly stream: Readonly<Record<string, string>>;
    readonly values: readonly (readonly [string, string, object?])[];
  }[];
  readonly dropped_entries?: readonly object[];
  readonly dropped_total?: number;
  readonly encodingFlags?: readonly string[];
}

export interface TailOptions {
  readonly path?: string;
  /** Subprotocols that are offered. */
  readonly protocols?: readonly string[];
}

/** A tail as a client sees it. */
export class TailClient {
  readonly messages: TailMessage[] = [];
  /** Resolves with code and reason. */
  readonly closed: Promise<readonly [number, string]>;
  readonly socket: WebSocket;
  #wake: () => void = () => undefined;

  constructor(
    url: string,
    params: Readonly<Record<string, string>>,
    headers: Readonly<Record<string, string>> = {},
    { path = "/loki/api/v1/tail", protocols = [] }: TailOptions = {},
  ) {
    const target = `${url.replace("http", "ws")}${path}?${new URLSearchParams(params)}`;
    this.socket = new WebSocket(target, [...protocols], { headers });
    this.socket.on("message", (data) => {
      this.messages.push(JSON.parse(String(data)));
      this.#wake();
    });
    this.closed = new Promise((resolve) => {
      this.socket.once("close", (code, reason) => resolve([code, String(reason)]));
    });
    this.socket.on("error", () => undefined);
  }

  /** Resolves once the handshake is done; rejects with status and text of a refusal. */
  opened(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.socket.once("open", resolve);
      this.socket.once("unexpected-response", (_, response) => {
        let text = "";
        response.on("data", (data) => {
          text += data;
        });
        response.once("end", () => reject(new Error(`${response.statusCode} ${text}`)));
      });
    });
  }

  /** Lines so far, in the order in which they came. */
  get lines(): string[] {
    return this.messages.flatMap(({ streams }) =>
      streams.flatMap(({ values }) => values.map(([, line]) => line)),
    );
  }

  /** Waits for a number of lines and returns them. */
  async linesOf(count: number): Promise<string[]> {
    while (this.lines.length < count) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    return this.lines;
  }

  close(): Promise<readonly [number, string]> {
    this.socket.close();
    return this.closed;
  }
}
