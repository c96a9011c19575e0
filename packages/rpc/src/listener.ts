import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import {
  createServer as createTlsServer,
  type TLSSocket,
  type Server as TlsServer,
} from "node:tls";
import { Certificates, type ConnectionGuard } from "@skald/transport/connections";
import { mayConnect, type TlsOptions } from "@skald/transport/tls";

export interface ListenerOptions {
  /** An address of this machine; empty: all of them. */
  readonly address: string;
  readonly port: number;
  /** Connections at a time; 0: no limit. */
  readonly maxConnections: number;
  /** Only TLS is served when it is given. */
  readonly tls?: TlsOptions | undefined;
  /** Called when changed certificates were read again, or with the reason that they cannot be used. */
  readonly onCertificates?: (error: unknown) => void;
}

/**
 * Takes connections and hands them on without their TLS, so that TLS, its certificates and the limit of connections work for
 * calls between services as they do for HTTP.
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
