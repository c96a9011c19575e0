import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type Server,
} from "node:http";
import type { AddressInfo } from "node:net";

/** What a stub was asked. */
export interface Asked {
  readonly method: string;
  /** The path, or the whole address for a proxy. */
  readonly path: string;
  readonly params: Readonly<Record<string, string>>;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** A server that keeps its requests, and gives the answers that a test chooses. */
export class StubServer {
  readonly asked: Asked[] = [];
  /** The body, or the status, of the answer to a request; undefined: an answer without data. */
  answer: (asked: Asked) => string | number | undefined = () => undefined;
  readonly #server: Server;

  constructor() {
    this.#server = createServer(async (request, response) => {
      const parts: Buffer[] = [];
      for await (const part of request) parts.push(part as Buffer);
      const found = this.#keep(request, Buffer.concat(parts).toString());
      const answer = this.answer(found) ?? '{"data":[]}';
      if (typeof answer === "number") response.writeHead(answer).end();
      else response.end(answer);
    });
    this.#server.on("upgrade", (request, socket) => {
      this.#keep(request, "");
      socket.end("HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n");
    });
  }

  async open(): Promise<void> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
  }

  close(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  #keep({ method = "", url = "", headers }: IncomingMessage, body: string): Asked {
    const [path = "", query = ""] = url.split("?");
    const params = Object.fromEntries(new URLSearchParams(query));
    const found = { method, path, params, headers, body };
    this.asked.push(found);
    return found;
  }
}
