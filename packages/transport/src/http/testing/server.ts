import { connect, type Socket } from "node:net";
import { HttpServer, type HttpServerOptions } from "../http-server.js";
import { type HttpResponse, textResponse } from "../route.js";

const started: HttpServer[] = [];

/** A server of tests on a free port of this machine, with limits that no test meets by accident. */
export async function startTestServer(
  options: Partial<HttpServerOptions>,
): Promise<{ server: HttpServer; port: number; url: string }> {
  const server = new HttpServer({
    address: "127.0.0.1",
    port: 0,
    readTimeoutMs: 60_000,
    readHeaderTimeoutMs: 0,
    writeTimeoutMs: 60_000,
    idleTimeoutMs: 60_000,
    gracefulShutdownMs: 0,
    maxConnections: 0,
    maxBodyBytes: 1000,
    compressResponses: true,
    pathPrefix: "",
    routes: [],
    rawRoutes: new Map(),
    ...options,
  });
  started.push(server);
  const port = await server.start();
  return { server, port, url: `http://127.0.0.1:${port}` };
}

/** Cuts whatever a test left open. */
export async function stopTestServers(): Promise<void> {
  await Promise.all(started.splice(0).map((server) => server.stop()));
}

/** A connection that sends and receives plain text. */
export interface Wire {
  readonly socket: Socket;
  write(text: string): void;
  /** All that came so far. */
  received(): string;
  /** Resolves once the text came; rejects when the connection ends before. */
  until(text: string): Promise<void>;
  /** Resolves with all that came when the other side closed, orderly or not. */
  closed(): Promise<string>;
}

export async function openWire(port: number): Promise<Wire> {
  const socket = connect(port, "127.0.0.1");
  let text = "";
  const watchers = new Set<() => void>();
  socket.on("data", (chunk) => {
    text += chunk.toString("latin1");
    for (const watch of watchers) watch();
  });
  // A reset is one of the ways in which the other side closes.
  socket.on("error", () => undefined);
  await new Promise((resolve) => socket.once("connect", resolve));
  return {
    socket,
    write: (part) => void socket.write(part, "latin1"),
    received: () => text,
    until: (part) =>
      new Promise((resolve, reject) => {
        const watch = () => {
          if (!text.includes(part)) return;
          watchers.delete(watch);
          resolve();
        };
        watchers.add(watch);
        socket.once("close", () => reject(new Error(`closed before ${part} came: ${text}`)));
        watch();
      }),
    closed: () =>
      new Promise((resolve) => {
        if (socket.closed) resolve(text);
        else socket.once("close", () => resolve(text));
      }),
  };
}

/** An answer that waits to be released, and the requests that wait for it. */
export function makeGate(): {
  open(): void;
  wait(): Promise<HttpResponse>;
  entered: Promise<void>;
} {
  let open = (): void => undefined;
  let enter = (): void => undefined;
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  const entered = new Promise<void>((resolve) => {
    enter = resolve;
  });
  return {
    open,
    entered,
    wait: async () => {
      enter();
      await opened;
      return textResponse(200, "done");
    },
  };
}
