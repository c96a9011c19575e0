import { once } from "node:events";
import { connect, createServer, type Server, type Socket } from "node:net";
import { afterEach, expect, it } from "@jest/globals";
import { until } from "@skald/testkit";
import {
  callTestGrpc,
  connectTestGrpc,
  echo,
  startTestGrpc,
  stopTestGrpc,
} from "./testing/grpc.js";

/** A way to a port that can lose the connections that go by it, without a word to either end. */
class Way {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  taken = 0;
  /** Pieces that the server sent. */
  answers = 0;

  constructor(port: number) {
    this.#server = createServer((socket) => {
      this.taken++;
      const peer = connect(port, "127.0.0.1");
      for (const one of [socket, peer]) {
        one.on("error", () => undefined);
        this.#sockets.add(one);
      }
      peer.on("data", () => this.answers++);
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

/** A connection by a way that can be lost; it is probed soon where somebody waits, and pings come late. */
async function start(silenceMs: number) {
  let enter = (): void => undefined;
  const entered = new Promise<void>((resolve) => {
    enter = resolve;
  });
  const { address } = await startTestGrpc({
    Echo: echo,
    Wait: () => {
      enter();
      return new Promise(() => {});
    },
  });
  way = new Way(Number(address.split(":")[1]));
  const connection = connectTestGrpc(await way.open(), { silenceMs });
  return { connection, entered };
}

afterEach(async () => {
  way.close();
  await stopTestGrpc();
});

it("new calls get another connection where those that run hear nothing any more", async () => {
  const { connection, entered } = await start(20);
  let isOver = false;
  const end = () => {
    isOver = true;
  };
  void callTestGrpc(connection, "Wait").then(end, end);
  await entered;
  way.strand();
  const found = await callTestGrpc(connection, "Echo", "x", { deadlineMs: Date.now() + 200 }).catch(
    () => undefined,
  );
  expect(found).toBeUndefined();
  for (;;) {
    const options = { deadlineMs: Date.now() + 200 };
    const answer = await callTestGrpc(connection, "Echo", "x", options).catch(() => "");
    if (String(answer) === "x") break;
  }
  expect(way.taken).toBe(2);
  // Its calls may have an answer yet.
  expect(isOver).toBe(false);
});

it("a connection stays where the other side answers, and where nobody waits", async () => {
  const { connection, entered } = await start(100);
  callTestGrpc(connection, "Wait").catch(() => undefined);
  await entered;
  // The server answers probes; nothing else goes by the way.
  const before = way.answers;
  await until(() => way.answers >= before + 3);
  expect(String(await callTestGrpc(connection, "Echo", "x"))).toBe("x");
  expect(way.taken).toBe(1);
});
