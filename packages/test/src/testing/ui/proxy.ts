import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";

export interface ProxyOptions {
  /** Asks the server by HTTP/1.0, one request a connection, and knows no WebSocket; else bytes pass as they are. */
  readonly old?: boolean;
}

/** What stands between a browser and a server, and can be cut. */
export class TestProxy {
  readonly #target: number;
  readonly #options: ProxyOptions;
  readonly #sockets = new Set<Socket>();
  #server: Server | undefined;
  #port = 0;

  constructor(target: number, options: ProxyOptions = {}) {
    this.#target = target;
    this.#options = options;
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  /** Opens the way, at the same address each time. */
  async open(): Promise<this> {
    const server = createServer((client) => this.#serve(client));
    this.#server = server.listen(this.#port, "127.0.0.1");
    await once(server, "listening");
    this.#port = (server.address() as AddressInfo).port;
    return this;
  }

  /** Ends all connections, and refuses new ones. */
  async cut(): Promise<void> {
    const closed = new Promise((resolve) => this.#server?.close(resolve));
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }

  #serve(client: Socket): void {
    const server = connect(this.#target, "127.0.0.1");
    for (const [one, other] of [
      [client, server],
      [server, client],
    ] as const) {
      this.#sockets.add(one);
      one.on("error", () => other.destroy());
      one.once("close", () => {
        this.#sockets.delete(one);
        other.end();
      });
    }
    server.pipe(client);
    if (!this.#options.old) client.pipe(server);
    else passAsOld(client, server);
  }
}

const headMax = 64 * 1024;

/** Passes one request on as HTTP/1.0. */
function passAsOld(client: Socket, server: Socket): void {
  let head = Buffer.alloc(0);
  const take = (chunk: Buffer) => {
    head = Buffer.concat([head, chunk]);
    const end = head.indexOf("\r\n\r\n");
    if (end < 0) {
      if (head.length > headMax) client.destroy();
      return;
    }
    client.off("data", take);
    const [first = "", ...fields] = head.subarray(0, end).toString("latin1").split("\r\n");
    const kept = fields.filter((field) => !/^(?:connection|upgrade|sec-websocket-)/i.test(field));
    const lines = [first.replace(/HTTP\/1\.1$/, "HTTP/1.0"), ...kept, "Connection: close"];
    server.write(`${lines.join("\r\n")}\r\n\r\n`, "latin1");
    server.write(head.subarray(end + 4));
    client.pipe(server);
  };
  client.on("data", take);
}
