import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { silentLogger } from "@skald/runtime/log";
import { findRedis, RedisServer, redisStandIn } from "@skald/testkit";
import { needs } from "@skald/testkit/needs";
import { parseEndpoint } from "./redis-client.js";
import { RedisRingStore, type RedisStoreOptions } from "./redis-store.js";
import type { RingStore } from "./ring-store.js";
import { FakeClock, fakeProcess, live } from "./testing/fake-process.js";
import { describeRingStore } from "./testing/ring-store.suite.js";

const { signal } = new AbortController();

function openAt(changes: Partial<RedisStoreOptions>): RedisRingStore {
  const usual = { endpoints: [], prefix: "collectors/", timeoutMs: 5000, log: silentLogger() };
  return new RedisRingStore({ ...usual, ...changes });
}

/** A way to a port, whose open connections can be lost so that neither side hears of it. */
async function openWay(port: number) {
  const open = new Set<Socket>();
  const way = createServer((socket) => {
    const peer = connect(port, "127.0.0.1");
    for (const one of [socket, peer]) open.add(one.on("error", () => undefined));
    socket.pipe(peer).pipe(socket);
  });
  await new Promise<void>((resolve) => way.listen(0, "127.0.0.1", resolve));
  return {
    endpoint: `127.0.0.1:${(way.address() as AddressInfo).port}`,
    loseAll: () => {
      for (const one of open) one.unpipe().pause();
    },
    close: () => {
      way.close();
      for (const one of open) one.destroy();
    },
  };
}

/** Asks until the store answers again. */
async function untilAnswers(store: RedisRingStore): Promise<void> {
  for (;;) {
    try {
      await store.read("any");
      return;
    } catch {
      // Asked again: each time waits for a connection.
    }
  }
}

// Where a real one is installed, the stand-in has to do what it does.
describe.each([...new Set([findRedis(), redisStandIn])])("with $name", (program) => {
  let server: RedisServer;
  beforeAll(async () => {
    server = await RedisServer.start(program);
  });
  afterAll(() => server?.remove());
  const open = (changes: Partial<RedisStoreOptions> = {}): RedisRingStore =>
    openAt({ endpoints: [server.endpoint], ...changes });

  describeRingStore("redis", () => ({ open }));

  describe("the redis store", () => {
    it("keeps rings with different prefixes apart", async () => {
      const [a, b] = [open({ prefix: "a/" }), open({ prefix: "b/" })];
      await a.write("ring", "x", "1", { news: true });
      expect((await b.read("ring")).size).toBe(0);
      expect((await a.read("ring")).size).toBe(1);
      await Promise.all([a.close(), b.close()]);
    });

    it("lets in who has the password", async () => {
      const closed = await RedisServer.start(program, "--requirepass", "secret");
      const store = open({ endpoints: [closed.endpoint], username: "default", password: "secret" });
      await store.write("ring", "x", "1", { news: true });
      const stranger = open({ endpoints: [closed.endpoint], password: "wrong", timeoutMs: 300 });
      await expect(stranger.read("ring")).rejects.toThrow();
      await Promise.all([store.close(), stranger.close()]);
      await closed.remove();
    });

    it("leaves connections that are lost without a word", async () => {
      const way = await openWay(server.port);
      const store = open({ endpoints: [way.endpoint], timeoutMs: 100 });
      let heard = 0;
      const end = store.watch("lossy", () => {
        heard++;
      });
      await untilAnswers(store);
      way.loseAll();
      await untilAnswers(store);
      const writer = open();
      for (const before = heard; heard < before + 2; ) {
        // Each reading tries the other connection too.
        await store.read("lossy").catch(() => undefined);
        await writer.write("lossy", "x", String(heard), { news: true });
      }
      end();
      await Promise.all([store.close(), writer.close()]);
      way.close();
    });
  });

  describe("a ring in Redis", () => {
    it("goes on while Redis is down, and is whole again after it comes back empty", async () => {
      const own = await RedisServer.start(program);
      const time = new FakeClock();
      const stores = [0, 1, 2].map(() => open({ endpoints: [own.endpoint], timeoutMs: 300 }));
      const processes = stores.map((store, i) =>
        fakeProcess(store, `i${i}`, { time, skewMs: i * 60_000 }),
      );
      for (const { member } of processes) {
        await member.start();
        await member.join(signal);
      }
      await live(time, processes, 10_000);
      const views = processes.map(({ ring }) => ring.view);
      expect(views.map((view) => view.activeCount)).toEqual([3, 3, 3]);

      await own.kill();
      // Each turn waits for its time limits, so there are few; fake time passes in large steps.
      await live(time, processes, 10_000);
      time.ms += 3_600_000;
      expect(processes.map(({ ring }) => ring.view)).toEqual(views);
      expect(processes[0]?.ring.view.planWrites(Uint32Array.of(1)).copies).toBe(3);

      await own.restart();
      for (const store of stores) await untilAnswers(store);
      await processes[0]?.ring.refresh();
      expect(processes[0]?.ring.view.activeCount).toBe(3);
      await live(time, processes, 10_000);
      expect((await stores[0]?.read("ring"))?.size).toBe(3);
      await live(time, processes, 120_000);
      for (const [i, { ring }] of processes.entries()) {
        expect(ring.view.activeCount).toBe(3);
        expect(ring.view.instances.map(({ tokens }) => tokens)).toEqual(
          views[i]?.instances.map(({ tokens }) => tokens),
        );
      }
      for (const store of stores) await store.close();
      await own.remove();
    });

    it("is seen by asking from time to time when nobody is told of news", async () => {
      const time = new FakeClock();
      const [writer, reader] = [open({ prefix: "deaf/" }), open({ prefix: "deaf/" })];
      const silent: RingStore = {
        read: (ring) => writer.read(ring),
        write: (ring, id, text) => writer.write(ring, id, text, { news: false }),
        remove: (ring, id) => writer.remove(ring, id),
        watch: () => () => undefined,
        close: () => writer.close(),
      };
      const a = fakeProcess(silent, "a", { time });
      let turns = 0;
      const end = new AbortController();
      const b = fakeProcess(reader, "b", {
        time,
        sleep: async () => {
          // A turn of its own: the first finds nothing, then somebody joins unheard.
          if (++turns === 1) await a.member.start();
          if (b.ring.view.find("a") !== undefined) end.abort();
        },
      });
      await b.ring.run(end.signal);
      expect(b.ring.view.find("a")?.state).toBe("PENDING");
      await Promise.all([writer.close(), reader.close()]);
    });
  });
});

describe("the redis store", () => {
  needs("redis")("finds the master by a Sentinel", async () => {
    const server = await RedisServer.start(findRedis());
    const sentinel = await RedisServer.startSentinel("main", server.port);
    const store = openAt({ endpoints: [sentinel.endpoint], masterName: "main" });
    await store.write("sentinel", "x", "1", { news: true });
    const direct = openAt({ endpoints: [server.endpoint] });
    expect((await direct.read("sentinel")).get("x")).toBe("1");
    await Promise.all([store.close(), direct.close()]);
    await Promise.all([sentinel.remove(), server.remove()]);
  });

  needs("redis")("speaks to a Cluster", async () => {
    const node = await RedisServer.start(
      findRedis(),
      ...["--cluster-enabled", "yes", "--cluster-announce-ip", "127.0.0.1"],
    );
    await node.command("cluster", "addslotsrange", "0", "16383");
    const store = openAt({ endpoints: [node.endpoint], isCluster: true });
    await untilAnswers(store);
    await store.write("ring", "x", "1", { news: true });
    expect((await store.read("ring")).get("x")).toBe("1");
    await store.close();
    await node.remove();
  });

  it("fails within its time limit when nobody listens, and when it is closed", async () => {
    const store = openAt({ endpoints: ["127.0.0.1:1"], timeoutMs: 50 });
    await expect(store.read("ring")).rejects.toThrow("no connection to Redis at 127.0.0.1:1");
    await store.close();
    await expect(store.read("ring")).rejects.toThrow("closed");
  });

  it.each([
    ["redis", "redis", 6379],
    ["redis:1", "redis", 1],
    ["[::1]:2", "::1", 2],
    [" 10.0.0.1:3 ", "10.0.0.1", 3],
  ])("reads the endpoint %s", (endpoint, host, port) => {
    expect(parseEndpoint(endpoint, 6379)).toEqual({ host, port });
  });
});
