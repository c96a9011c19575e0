import { once } from "node:events";
import { connect, createServer, type Server, type Socket } from "node:net";
import { afterEach, expect, it } from "@jest/globals";
import { sayHello } from "./protocol.js";
import { countCall, Session, uncountCall } from "./session.js";
import { startTestGrpc, stopTestGrpc } from "./testing/grpc.js";

/** A way to a port that can lose the connections that go by it, without a word to either end. */
class Way {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  taken = 0;

  constructor(port: number) {
    this.#server = createServer((socket) => {
      this.taken++;
      const peer = connect(port, "127.0.0.1");
      for (const one of [socket, peer]) {
        one.on("error", () => undefined);
        this.#sockets.add(one);
      }
      socket.pipe(peer).pipe(socket);
    });
  }

  async open(): Promise<string> {
    this.#server.listen(0, "127.0.0.1");
    await once(this.#server, "listening");
    const { port } = this.#server.address() as { port: number };
    return `127.0.0.1:${port}`;
  }

  strand(): void {
    for (const socket of this.#sockets) {
      socket.unpipe();
      socket.pause();
    }
  }

  close(): void {
    for (const socket of this.#sockets) socket.destroy();
    this.#server.close();
  }
}

let way: Way;
let session: Session;

/** A session by a way that can be lost; pings come soon where somebody waits, and late where nobody does. */
async function start(): Promise<{ readonly entered: Promise<void> }> {
  let enter = (): void => undefined;
  const entered = new Promise<void>((resolve) => {
    enter = resolve;
  });
  const { address } = await startTestGrpc({
    Wait: () => {
      enter();
      return new Promise(() => {});
    },
  });
  way = new Way(Number(address.split(":")[1]));
  session = new Session({
    ...{ address: await way.open(), connectTimeoutMs: 60_000, silenceMs: 20 },
    ...{ minReconnectMs: 10, maxReconnectMs: 100 },
    ...{ keepaliveMs: 60_000, keepaliveTimeoutMs: 60_000 },
  });
  return { entered };
}

afterEach(async () => {
  session.close();
  way.close();
  await stopTestGrpc();
});

it("is another one for new calls where those that run hear nothing any more", async () => {
  const { entered } = await start();
  const first = await session.get();
  countCall(first);
  const asked = { ":method": "POST", ":path": "/test.Test/Wait", ...sayHello({ cluster: "" }) };
  const waits = first.request(asked);
  waits.end(Buffer.alloc(5));
  waits.on("error", () => undefined);
  await entered;
  way.strand();
  while (session.current === first) await new Promise(setImmediate);
  expect(await session.get()).not.toBe(first);
  expect(way.taken).toBe(2);
  // Its calls may have an answer yet.
  expect(first.destroyed).toBe(false);
  uncountCall(first);
});

it("stays where the other side answers pings, and where nobody waits", async () => {
  await start();
  const first = await session.get();
  countCall(first);
  let pings = 0;
  while (pings < 5) await new Promise<void>((resolve) => first.ping(() => resolve(void pings++)));
  expect(session.current).toBe(first);
  uncountCall(first);
});
