// Connections between processes that can be cut: each is a proxy, which passes bytes on until its mode changes.
import { connect, createServer } from "node:net";

/**
 * The modes of a link: `pass`; `drop` accepts connections but passes no bytes, also on open ones, like a network that loses
 * everything; `refuse` cuts open connections and accepts none; `strand` passes nothing on open connections but all on new ones,
 * as when a host was replaced.
 */
const modes = ["pass", "drop", "refuse", "strand"];

/** A link to a port of this machine. */
export class Link {
  #port;
  #target;
  #server;
  #mode = "pass";
  /** The open connections, each with the one that it leads to. */
  #pairs = new Set();
  #stranded = new Set();

  constructor(port, target) {
    this.#port = port;
    this.#target = target;
  }

  /** The port where the link is entered. */
  get port() {
    return this.#port;
  }

  async open() {
    this.#server = createServer({ allowHalfOpen: true }, (socket) => this.#take(socket));
    await new Promise((resolve, reject) => {
      this.#server.once("error", reject);
      this.#server.listen(this.#port, "127.0.0.1", resolve);
    });
  }

  async set(mode) {
    if (!modes.includes(mode)) throw new Error(`a way cannot be ${mode}, only ${modes.join(", ")}`);
    const before = this.#mode;
    this.#mode = mode;
    if (mode === "drop") for (const pair of this.#pairs) hold(pair);
    if (mode === "refuse") {
      this.#server.close();
      this.#cut(this.#pairs);
    }
    if (mode === "strand") {
      for (const pair of this.#pairs) this.#stranded.add(hold(pair));
      this.#pairs.clear();
    }
    if (before === "refuse" && mode !== "refuse") await this.open();
    if (mode === "pass") for (const pair of this.#pairs) this.#join(pair);
  }

  close() {
    this.#server.close();
    this.#cut(this.#pairs);
    this.#cut(this.#stranded);
  }

  #take(socket) {
    const pair = { socket, peer: undefined, isHeld: true };
    this.#pairs.add(pair);
    this.#guard(socket, pair);
    if (this.#mode !== "drop") this.#join(pair);
  }

  #join(pair) {
    if (pair.peer === undefined) {
      pair.peer = connect({ port: this.#target, host: "127.0.0.1", allowHalfOpen: true });
      this.#guard(pair.peer, pair);
    }
    const { socket, peer } = pair;
    pair.isHeld = false;
    if (socket.destroyed || peer.destroyed) return this.#cut([pair]);
    socket.pipe(peer).pipe(socket);
  }

  /** Passes the end of one side on to the other, unless the mode passes nothing. */
  #guard(socket, pair) {
    socket.setNoDelay(true);
    socket.on("error", () => undefined);
    socket.on("close", () => pair.isHeld || this.#cut([pair]));
  }

  #cut(pairs) {
    for (const pair of [...pairs]) {
      pair.socket.destroy();
      pair.peer?.destroy();
      this.#pairs.delete(pair);
      this.#stranded.delete(pair);
    }
  }
}

function hold(pair) {
  const { socket, peer } = pair;
  pair.isHeld = true;
  socket.unpipe(peer);
  peer?.unpipe(socket);
  socket.pause();
  peer?.pause();
  return pair;
}
