import { setImmediate as nextTurn } from "node:timers/promises";
import { afterEach, describe, expect, it } from "@jest/globals";
import type { RequestFacts } from "./observe.js";
import type { HttpBody, Route } from "./route.js";
import { openWire, startTestServer, stopTestServers } from "./testing/server.js";

afterEach(stopTestServers);

const route = (body: () => HttpBody): Route => ({
  methods: ["GET"],
  path: "/answer",
  handler: () => ({ status: 200, headers: { "content-type": "text/plain" }, body: body() }),
});
const piece = (size: number, text = "x") => Buffer.from(text.repeat(size));

async function ask(url: string, headers: Record<string, string> = {}) {
  const response = await fetch(`${url}/answer`, { headers });
  const length = response.headers.get("content-length");
  return {
    length,
    encoding: response.headers.get("content-encoding"),
    text: await response.text(),
  };
}

describe("a body in pieces", () => {
  it.each([
    ["many pieces", () => [piece(3000, "a"), piece(3000, "b"), piece(1, "c")]],
    [
      "pieces that take their time",
      async function* () {
        yield piece(3000, "a");
        await nextTurn();
        yield piece(3000, "b");
        yield piece(1, "c");
      },
    ],
  ])("arrives as one, compressed or not: %s", async (_name, body: () => HttpBody) => {
    const { url } = await startTestServer({ routes: [route(body)] });
    const text = `${"a".repeat(3000)}${"b".repeat(3000)}c`;
    const plain = { length: null, encoding: null, text };
    expect(await ask(url, { "accept-encoding": "identity" })).toEqual(plain);
    const packed = { length: null, encoding: "gzip", text };
    expect(await ask(url, { "accept-encoding": "gzip" })).toEqual(packed);
  });

  it.each([
    ["no piece", [], "0", null, ""],
    ["one short piece", [piece(3)], "3", null, "xxx"],
    ["one long piece", [piece(2000)], expect.any(String), "gzip", "x".repeat(2000)],
    ["one large piece", [piece(40_000)], expect.any(String), "gzip", "x".repeat(40_000)],
  ])("tells its length when that is known: %s", async (_name, body, length, encoding, text) => {
    const { url } = await startTestServer({ routes: [route(() => body)] });
    expect(await ask(url, { "accept-encoding": "gzip" })).toEqual({ length, encoding, text });
  });

  it("is not made for a HEAD", async () => {
    let made = 0;
    let hasEnded = false;
    const pieces = function* () {
      try {
        for (; made < 1000; made++) yield piece(1000);
      } finally {
        hasEnded = true;
      }
    };
    const { url } = await startTestServer({ routes: [route(pieces)] });
    const response = await fetch(`${url}/answer`, { method: "HEAD" });
    expect([response.status, await response.text()]).toEqual([200, ""]);
    expect([made < 3, hasEnded]).toEqual([true, true]);
  });

  it("lets other work run between any two pieces that are not short", async () => {
    let turns = 0;
    const seen: number[] = [];
    const pieces = function* () {
      for (let i = 0; i < 20; i++) {
        seen.push(turns);
        yield piece(20_000);
      }
    };
    const { url } = await startTestServer({ routes: [route(pieces)] });
    let running = true;
    const count = () => {
      turns++;
      if (running) setImmediate(count);
    };
    setImmediate(count);
    await ask(url);
    running = false;
    for (let i = 1; i < seen.length; i++) expect(seen[i]).toBeGreaterThan(seen[i - 1] as number);
  });

  it("is made no faster than it is taken, and no longer than it is wanted", async () => {
    const facts: RequestFacts[] = [];
    const errors: unknown[] = [];
    let made = 0;
    let ended = () => undefined as void;
    const closed = new Promise<void>((resolve) => {
      ended = resolve;
    });
    const pieces = function* () {
      try {
        for (; made < 10_000; made++) yield piece(64 * 1024);
      } finally {
        ended();
      }
    };
    const { port } = await startTestServer({
      routes: [route(pieces)],
      onRequest: () => (fact) => void facts.push(fact),
      onError: (error) => void errors.push(error),
    });
    const wire = await openWire(port);
    wire.socket.pause();
    wire.write("GET /answer HTTP/1.1\r\nhost: x\r\n\r\n");
    // Until nothing moves any more: the buffers between the two are full.
    for (let before = -1, calm = 0; calm < 200; calm = before === made ? calm + 1 : 0) {
      before = made;
      await nextTurn();
    }
    expect(made).toBeLessThan(1000);
    wire.socket.destroy();
    await closed;
    await nextTurn();
    expect(made).toBeLessThan(1000);
    expect(facts).toMatchObject([{ status: 499 }]);
    expect(errors).toEqual([]);
  });

  it("cuts the connection when a piece cannot be made", async () => {
    const errors: unknown[] = [];
    const pieces = function* () {
      yield piece(10);
      yield piece(10);
      throw new Error("broken");
    };
    const { port } = await startTestServer({
      routes: [route(pieces)],
      onError: (error) => void errors.push(error),
    });
    const wire = await openWire(port);
    wire.write("GET /answer HTTP/1.1\r\nhost: x\r\n\r\n");
    expect(await wire.closed()).not.toContain("\r\n0\r\n");
    expect(errors).toMatchObject([{ message: "broken" }]);
  });
});
