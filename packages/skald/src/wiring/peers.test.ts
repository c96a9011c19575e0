import { describe, expect, it } from "@jest/globals";
import { unavailable } from "@skald/model";
import { silentLogger } from "@skald/runtime/log";
import { collectGarbage } from "@skald/testkit";
import {
  followPeers,
  NamedPeers,
  type Peer,
  type PeerBook,
  PeerCalls,
  type Resolver,
  resolvePeers,
} from "./peers.js";

const hosts: Record<string, readonly string[]> = {
  "scheduler.internal": ["10.0.0.2", "10.0.0.1"],
  "a.internal": ["10.0.0.3"],
  "v6.internal": ["::1"],
};
const resolver: Resolver = {
  lookup: async (host) => {
    const found = hosts[host];
    if (found === undefined) throw new Error(`${host} is unknown`);
    return found;
  },
  srv: async () => [{ name: "a.internal", port: 9096 }],
};
const { signal } = new AbortController();

describe("resolvePeers", () => {
  it.each([
    ["10.0.0.9:9095", ["10.0.0.9:9095"]],
    ["scheduler.internal:9095", ["10.0.0.1:9095", "10.0.0.2:9095"]],
    ["dns+scheduler.internal:9095", ["10.0.0.1:9095", "10.0.0.2:9095"]],
    ["dns:///scheduler.internal:9095", ["10.0.0.1:9095", "10.0.0.2:9095"]],
    ["dnssrv+_grpc._tcp.scheduler", ["10.0.0.3:9096"]],
    ["10.0.0.9:1, a.internal:2, 10.0.0.9:1", ["10.0.0.3:2", "10.0.0.9:1"]],
    ["v6.internal:9095", ["[::1]:9095"]],
    ["[::2]:9095", ["[::2]:9095"]],
    ["", []],
  ])("finds what %s stands for", async (text, expected) => {
    const peers = await resolvePeers(text, resolver);
    expect(peers.map(({ address }) => address)).toEqual(expected);
  });

  it("knows the name that a certificate is of", async () => {
    expect(await resolvePeers("a.internal:1,10.0.0.9:1", resolver)).toEqual([
      { address: "10.0.0.3:1", host: "a.internal" },
      { address: "10.0.0.9:1" },
    ]);
  });
});

it("goes on with what was found last while names cannot be looked up", async () => {
  let addresses: readonly string[] | undefined = ["10.0.0.1"];
  const book = new NamedPeers({
    ...{ text: "x:1", periodMs: 1000, log: silentLogger() },
    resolver: {
      ...resolver,
      lookup: async () => {
        if (addresses === undefined) throw new Error("no answer");
        return addresses;
      },
    },
  });
  let changes = 0;
  book.onChange(() => changes++);
  await book.refresh();
  await book.refresh();
  addresses = undefined;
  await book.refresh();
  expect(book.peers).toEqual([{ address: "10.0.0.1:1", host: "x" }]);
  addresses = ["10.0.0.1", "10.0.0.2"];
  await book.refresh();
  expect(book.peers).toHaveLength(2);
  expect(changes).toBe(2);
});

it("looks names up at once, then after each pause", async () => {
  const end = new AbortController();
  const pauses: number[] = [];
  const book = new NamedPeers({
    ...{ text: "10.0.0.9:1", periodMs: 1000, log: silentLogger() },
    sleep: async (ms) => {
      pauses.push(book.peers.length, ms);
      end.abort();
    },
  });
  await book.run(end.signal);
  expect(pauses).toEqual([1, 1000]);
});

/** Peers of which some are down, and a note of which were called. */
function peersOf(names: readonly string[]) {
  const down = new Set<string>();
  const called: string[] = [];
  const time = { ms: 0 };
  const calls = new PeerCalls<string>({
    book: { peers: names.map((address) => ({ address })) },
    name: "gateway",
    connect: ({ address }) => address,
    clock: { elapsedMs: () => time.ms },
  });
  const call = (order?: { tenant: string; width: number }) =>
    calls.call(
      async (name) => {
        called.push(name);
        if (down.has(name)) throw unavailable(`${name} is down`);
        return name;
      },
      { signal, ...(order === undefined ? {} : { order }) },
    );
  return { call, called, down, time };
}

describe("a call to one of several", () => {
  it("goes to each in turn, and to another one when that is lost", async () => {
    const { call, called, down, time } = peersOf(["a", "b"]);
    expect([await call(), await call(), await call()]).toEqual(["a", "b", "a"]);
    down.add("b");
    expect(await call()).toBe("a");
    called.length = 0;
    // Who was lost is not asked again at once.
    expect([await call(), await call(), await call()]).toEqual(["a", "a", "a"]);
    expect(called).toEqual(["a", "a", "a"]);
    down.clear();
    time.ms += 10_000;
    expect(new Set([await call(), await call()])).toEqual(new Set(["a", "b"]));
  });

  it("is always to the same ones for a tenant, and to others only when those are lost", async () => {
    const { call, down } = peersOf(["a", "b", "c", "d"]);
    const order = { tenant: "shop", width: 2 };
    const own = new Set(await Promise.all(Array.from({ length: 6 }, () => call(order))));
    expect(own.size).toBe(2);
    for (const name of own) down.add(name);
    expect(own.has(await call(order))).toBe(false);
  });

  it("fails when all are lost, or none is known", async () => {
    const { call, down } = peersOf(["a"]);
    down.add("a");
    await expect(call()).rejects.toThrow("a is down");
    await expect(peersOf([]).call()).rejects.toThrow("no gateway is known");
  });
});

it("works with each peer for as long as that is there", async () => {
  const end = new AbortController();
  let tell = () => {};
  let peers: readonly Peer[] = [{ address: "a" }];
  const book: PeerBook = {
    get peers() {
      return peers;
    },
    onChange: (listener) => {
      tell = listener;
      return () => undefined;
    },
    run: (until) =>
      new Promise((resolve) => {
        until.addEventListener("abort", () => resolve(), { once: true });
      }),
  };
  const events: string[] = [];
  const counts: number[] = [];
  const followed = followPeers(
    book,
    ({ address }, until) => {
      events.push(`+${address}`);
      return new Promise((resolve) => {
        until.addEventListener("abort", () => resolve(void events.push(`-${address}`)));
      });
    },
    { signal: end.signal, onCount: (count) => counts.push(count) },
  );
  peers = [{ address: "a" }, { address: "b" }];
  tell();
  peers = [{ address: "b" }];
  tell();
  end.abort();
  await followed;
  expect(events).toEqual(["+a", "+b", "-a", "-b"]);
  expect(counts).toEqual([1, 2, 1]);
});

it("followPeers ends a task that looks at its signal from time to time, whatever is collected as garbage meanwhile", async () => {
  const end = new AbortController();
  let peers: Peer[] = [{ address: "a" }];
  let tell = () => {};
  const book: PeerBook = {
    get peers() {
      return peers;
    },
    run: (until) => new Promise((resolve) => until.addEventListener("abort", () => resolve())),
    onChange: (change) => {
      tell = change;
      return () => {};
    },
  };
  let seen: AbortSignal | undefined;
  const run = async (_: Peer, until: AbortSignal) => {
    seen = until;
  };
  const followed = followPeers(book, run, { signal: end.signal, onCount: () => {} });
  peers = [];
  tell();
  // A weak reference that was asked in a turn of the event loop lives as long as that.
  await new Promise(setImmediate);
  collectGarbage();
  expect(seen?.aborted).toBe(true);
  end.abort();
  await followed;
});
