import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import {
  createServer as createTlsServer,
  type TLSSocket,
  type Server as TlsServer,
} from "node:tls";
import type { ConnectionGuard } from "../connection-guard.js";
import { Certificates, mayConnect, type TlsOptions } from "../http/tls.js";

export interface ListenerOptions {
  /** Empty: all. */
  readonly address: string;
  readonly port: number;
  /** Connections at a time; 0: no limit. */
  readonly maxConnections: number;
  /** TLS, and nothing but that, when it is given. */
  readonly tls?: TlsOptions | undefined;
  /** Told when certificates were read again because they changed, or why they cannot be used. */
  readonly onCertificates?: (error: unknown) => void;
}

/**
 * Takes connections and hands them on with TLS taken off, so that TLS and the limit of connections are the same for calls
 * between services as for HTTP.
 */
export class GrpcListener {
  readonly #options: ListenerOptions;
  readonly #server: Server;
  readonly #certificates: Certificates | undefined;
  readonly #sockets = new Set<Socket>();

  constructor(options: ListenerOptions, guard: ConnectionGuard, take: (socket: Socket) => void) {
    this.#options = options;
    const { tls, onCertificates } = options;
    this.#certificates = tls === undefined ? undefined : new Certificates(tls, onCertificates);
    const open = (socket: Socket) => {
      socket.setNoDelay(true);
      take(socket);
    };
    this.#server =
      tls === undefined || this.#certificates === undefined
        ? createServer(open)
        : createTlsServer(this.#certificates.options, (socket: TLSSocket) => {
            if (mayConnect(socket, tls)) open(socket);
            else socket.destroy();
          });
    guard.watch(this.#server);
    this.#server.on("connection", (socket: Socket) => this.#watch(socket));
    // A client that fails the handshake is its own problem.
    this.#server.on("tlsClientError", () => undefined);
    if (options.maxConnections > 0) this.#server.maxConnections = options.maxConnections;
  }

  /** Listens; resolves with the port. */
  start(): Promise<number> {
    const { port, address } = this.#options;
    return new Promise((resolve, reject) => {
      this.#server.once("error", reject);
      this.#server.listen(port, address === "" ? undefined : address, () => {
        this.#server.off("error", reject);
        this.#certificates?.watch(this.#server as TlsServer);
        resolve((this.#server.address() as AddressInfo).port);
      });
    });
  }

  /** Takes no more connections; resolves when the last one is closed. */
  close(): Promise<void> {
    this.#certificates?.stop();
    return new Promise((resolve) => void this.#server.close(() => resolve()));
  }

  /** Cuts every connection. */
  cut(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  reloadCertificates(): void {
    this.#certificates?.reload(this.#server as TlsServer);
  }

  #watch(socket: Socket): void {
    this.#sockets.add(socket);
    socket.on("error", () => undefined);
    socket.once("close", () => this.#sockets.delete(socket));
  }
}
