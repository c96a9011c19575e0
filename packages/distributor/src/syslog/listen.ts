import { createSocket, type RemoteInfo, type Socket as UdpSocket } from "node:dgram";
import { createServer, type Server, type Socket } from "node:net";
import { createServer as createTlsServer, type TLSSocket } from "node:tls";
import type { RawPush } from "@skald/kernels";
import { freeBuffer, SkaldError } from "@skald/model";
import { type Framing, SyslogFrames, type SyslogMapping } from "@skald/push";
import type { JobContext, JobHandler } from "@skald/runtime";
import { Certificates } from "@skald/transport/connections";
import { mayConnect, type TlsOptions } from "@skald/transport/tls";
import { SyslogBatches, type SyslogCounts } from "./batches.js";

/** A port that takes messages; plain data, for a thread. */
export interface SyslogListener {
  /** `tcp/0.0.0.0:514`, for logs and metrics. */
  readonly name: string;
  readonly protocol: "tcp" | "udp" | "tls";
  /** Empty: all addresses. */
  readonly host: string;
  readonly port: number;
  readonly tenant: string;
  readonly framing: Framing;
  readonly maxMessageBytes: number;
  readonly maxConnections: number;
  readonly mapping: SyslogMapping;
  readonly tls?: TlsOptions;
}

/** A batch of the listener with this number. */
export interface SyslogBatch {
  readonly listener: number;
  readonly push: RawPush;
}

/** What the thread tells of the listener with this number. */
export interface SyslogNews {
  readonly listener: number;
  readonly counts: SyslogCounts;
}

/** Time that peers get to close their connection at the end; until then what they send is taken. */
const goodbyeMs = 2000;
const newsPeriodMs = 1000;
const handshakeMs = 10_000;
/** Unfinished messages of all connections of a listener; a connection that wants more is closed. */
const maxHeldBytes = 64 * 1024 * 1024;
/** The kernel keeps datagrams of this size for a thread that is busy, if its own limit allows that. */
const datagramBufferBytes = 4 * 1024 * 1024;
const maxKnownPeers = 1024;

/** The job of the thread that has the ports: it runs until it is cancelled, and ends when all that arrived was sent. */
export function syslogJobs(): Record<string, JobHandler> {
  return {
    listen: async (listeners: readonly SyslogListener[], context: JobContext) => {
      await listen(listeners, context);
      return { value: undefined };
    },
  };
}

interface OpenPort {
  readonly port: number;
  readonly batches: SyslogBatches;
  /** Takes no more; resolves when what arrived is in batches. */
  close(): Promise<void>;
}

async function listen(listeners: readonly SyslogListener[], context: JobContext): Promise<void> {
  const ports: OpenPort[] = [];
  try {
    for (const [i, listener] of listeners.entries()) {
      const send = (push: RawPush) =>
        context.call<void>("push", { listener: i, push } satisfies SyslogBatch, {
          transfer: buffersOf(push),
        });
      ports.push(await (listener.protocol === "udp" ? openUdp : openTcp)(listener, send));
    }
    await context.call("listening", { ports: ports.map(({ port }) => port) });
    const telling = setInterval(() => tell(ports, context), newsPeriodMs);
    await new Promise<void>((resolve) => {
      context.signal.addEventListener("abort", () => resolve(), { once: true });
      if (context.signal.aborted) resolve();
    });
    clearInterval(telling);
  } finally {
    await Promise.all(ports.map((port) => port.close()));
    await Promise.all(ports.map(({ batches }) => batches.flush()));
  }
  tell(ports, context);
}

/** Tells the numbers of ports that have any, and begins them anew. */
function tell(ports: readonly OpenPort[], context: JobContext): void {
  for (const [listener, { batches }] of ports.entries()) {
    const { counts } = batches;
    void context.call("count", { listener, counts: { ...counts } } satisfies SyslogNews);
    Object.assign(counts, { messages: 0, bytes: 0, malformed: 0, cut: 0, dropped: 0, refused: 0 });
  }
}

function buffersOf(push: RawPush): ArrayBuffer[] {
  const columns = Object.values(push).filter((value) => ArrayBuffer.isView(value));
  return columns.map(({ buffer }) => buffer as ArrayBuffer);
}

async function openTcp(
  listener: SyslogListener,
  send: (push: RawPush) => Promise<void>,
): Promise<OpenPort> {
  const connections = new Set<Connection>();
  const resume = () => {
    for (const { socket } of connections) if (batches.hasRoom) socket.resume();
  };
  const pause = () => {
    for (const { socket } of connections) socket.pause();
  };
  const batches = new SyslogBatches(listener.mapping, send, resume);
  const held = { bytes: 0 };
  const onSocket = (socket: Socket) => {
    const connection = new Connection(socket, { listener, batches, held, onFull: pause });
    connections.add(connection);
    batches.counts.connections = connections.size;
    if (!batches.hasRoom) socket.pause();
    socket.once("close", () => {
      connections.delete(connection);
      batches.counts.connections = connections.size;
    });
  };
  const refuse = () => batches.counts.refused++;
  const { server, certificates } = serverOf(listener, onSocket, refuse);
  server.maxConnections = listener.maxConnections;
  server.on("drop", refuse);
  await opened(server, listener);
  return {
    port: (server.address() as { port: number }).port,
    batches,
    close: async () => {
      certificates?.stop();
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      for (const { socket } of connections) socket.end();
      const late = setTimeout(() => {
        for (const { socket } of connections) socket.destroy();
      }, goodbyeMs);
      await closed;
      clearTimeout(late);
    },
  };
}

/** A server of plain connections or of those with TLS; `refuse` is called for peers that do not get that far. */
function serverOf(
  { tls }: SyslogListener,
  onSocket: (socket: Socket) => void,
  refuse: () => void,
): { readonly server: Server; readonly certificates?: Certificates } {
  if (tls === undefined) return { server: createServer({ keepAlive: true }, onSocket) };
  const certificates = new Certificates(tls);
  // The protocols of HTTP are of no use here.
  const { ALPNProtocols: _, ...options } = certificates.options;
  const server = createTlsServer({ ...options, handshakeTimeout: handshakeMs, keepAlive: true });
  certificates.watch(server);
  server.on("secureConnection", (socket: TLSSocket) => {
    if (mayConnect(socket, tls)) {
      onSocket(socket);
      return;
    }
    refuse();
    socket.destroy();
  });
  server.on("tlsClientError", refuse);
  return { server, certificates };
}

function opened(server: Server, { host, port, name }: SyslogListener): Promise<void> {
  return new Promise((resolve, reject) => {
    const fail = (error: Error) => reject(cannotListen(name, error));
    server.once("error", fail);
    server.listen({ port, ...(host === "" ? {} : { host }) }, () => {
      server.off("error", fail);
      // A connection that cannot be accepted must not end the others.
      server.on("error", () => undefined);
      resolve();
    });
  });
}

function cannotListen(name: string, cause: Error): Error {
  const text = `the syslog listener ${name} cannot be opened: ${cause.message} (syslog.listeners)`;
  return new SkaldError("internal", text, { cause });
}

interface ConnectionOptions {
  readonly listener: SyslogListener;
  readonly batches: SyslogBatches;
  /** What unfinished messages of all connections take. */
  readonly held: { bytes: number };
  /** Called when the batches have no room for another piece. */
  readonly onFull: () => void;
}

/** A connection of a peer: its messages go into the batches. A fault of it ends only itself. */
class Connection {
  readonly socket: Socket;
  readonly #options: ConnectionOptions;
  readonly #frames: SyslogFrames;
  #heldBytes = 0;

  constructor(socket: Socket, options: ConnectionOptions) {
    this.socket = socket;
    this.#options = options;
    const { batches, listener } = options;
    const peer = peerBytes(socket.remoteAddress ?? "");
    this.#frames = new SyslogFrames(
      listener.framing,
      listener.maxMessageBytes,
      (bytes, start, end, isCut) => {
        if (isCut) batches.counts.cut++;
        batches.add(bytes, start, end, peer);
      },
    );
    socket.on("data", (chunk: Buffer) => this.#read(chunk));
    // The event "close" follows.
    socket.on("error", () => undefined);
    socket.once("close", () => this.#end());
  }

  #read(chunk: Buffer): void {
    const { batches, held, onFull } = this.#options;
    try {
      this.#frames.read(chunk);
    } catch {
      this.#refuse();
    }
    freeBuffer(chunk);
    held.bytes += this.#frames.heldBytes - this.#heldBytes;
    this.#heldBytes = this.#frames.heldBytes;
    if (this.#heldBytes > 0 && held.bytes > maxHeldBytes) this.#refuse();
    if (!batches.hasRoom) onFull();
  }

  #refuse(): void {
    this.#options.batches.counts.refused++;
    this.socket.destroy();
  }

  #end(): void {
    this.#options.held.bytes -= this.#heldBytes;
    this.#heldBytes = 0;
    this.#frames.end();
  }
}

async function openUdp(
  listener: SyslogListener,
  send: (push: RawPush) => Promise<void>,
): Promise<OpenPort> {
  const { mapping, maxMessageBytes } = listener;
  const batches = new SyslogBatches(mapping, send);
  const peers = new Map<string, Uint8Array>();
  const socket = await bound(listener);
  socket.on("message", (message: Buffer, { address }: RemoteInfo) => {
    const { counts, hasRoom } = batches;
    if (!hasRoom) {
      counts.dropped++;
      return;
    }
    let peer = peers.get(address);
    if (peer === undefined) {
      if (peers.size === maxKnownPeers) peers.clear();
      peer = peerBytes(address);
      peers.set(address, peer);
    }
    if (message.length > maxMessageBytes) counts.cut++;
    batches.add(message, 0, Math.min(message.length, maxMessageBytes), peer);
    freeBuffer(message);
  });
  // What the kernel says of one datagram must not end the others.
  socket.on("error", () => undefined);
  return {
    port: socket.address().port,
    batches,
    close: () => new Promise((resolve) => socket.close(() => resolve())),
  };
}

/** A socket of the port. For all addresses it has those of IPv4 too, or only those where the machine has no others. */
async function bound({ host, port, name }: SyslogListener): Promise<UdpSocket> {
  const open = (type: "udp4" | "udp6") =>
    new Promise<UdpSocket>((resolve, reject) => {
      const socket = createSocket({ type, recvBufferSize: datagramBufferBytes });
      socket.once("error", reject);
      socket.bind({ port, ...(host === "" ? {} : { address: host }) }, () => {
        socket.off("error", reject);
        resolve(socket);
      });
    });
  try {
    if (host !== "" && !host.includes(":")) return await open("udp4");
    return await open("udp6").catch((error: NodeJS.ErrnoException) => {
      if (host === "" && error.code === "EAFNOSUPPORT") return open("udp4");
      throw error;
    });
  } catch (error) {
    throw cannotListen(name, error as Error);
  }
}

/** The address of a peer as text; one of IPv4 that came over IPv6 is written as such. */
function peerBytes(address: string): Uint8Array {
  return Buffer.from(address.startsWith("::ffff:") ? address.slice(7) : address);
}
