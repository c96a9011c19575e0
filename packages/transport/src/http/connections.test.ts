import { afterEach, describe, expect, it } from "@jest/globals";
import type { RequestFacts } from "./observe.js";
import { type HttpRequest, type Route, textResponse } from "./route.js";
import { ask, echo, push } from "./testing/routes.js";
import { makeGate, openWire, startTestServer, stopTestServers } from "./testing/server.js";

afterEach(stopTestServers);

describe("a client that leaves", () => {
  it("aborts the signal of its request, which is counted as 499", async () => {
    const facts: RequestFacts[] = [];
    const gate = makeGate();
    let aborted: Promise<void> = Promise.resolve();
    const wait: Route = {
      methods: ["GET"],
      path: "/wait",
      handler: (request: HttpRequest) => {
        aborted = new Promise((resolve) => {
          request.signal.addEventListener("abort", () => resolve(), { once: true });
        });
        return gate.wait();
      },
    };
    const { port, url } = await startTestServer({
      routes: [wait, echo],
      onRequest: () => (fact) => facts.push(fact),
    });
    const wire = await openWire(port);
    wire.write("GET /wait HTTP/1.1\r\nHost: a\r\n\r\n");
    await gate.entered;
    wire.socket.destroy();
    await aborted;
    gate.open();
    expect((await ask(`${url}/api/echo`)).status).toBe(200);
    expect(facts[0]).toMatchObject({ method: "GET", route: "wait", status: 499 });
  });

  it("midway through a body does no harm, and is no fault of ours", async () => {
    const failures: unknown[] = [];
    const facts: RequestFacts[] = [];
    let seen: () => void = () => undefined;
    const counted = new Promise<void>((resolve) => {
      seen = resolve;
    });
    const { port } = await startTestServer({
      routes: [echo],
      rawRoutes: new Map([["/push", push]]),
      onError: (error) => failures.push(error),
      onRequest: () => (fact) => {
        facts.push(fact);
        if (facts.length === 2) seen();
      },
    });
    for (const path of ["/api/echo", "/push"]) {
      const wire = await openWire(port);
      wire.write(`POST ${path} HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhalf`);
      wire.socket.end();
    }
    await counted;
    expect(failures).toEqual([]);
    expect(facts.map(({ status }) => status)).toEqual([499, 499]);
  });

  it("does not abort the signal when it got its answer", async () => {
    const signals: AbortSignal[] = [];
    const route: Route = {
      ...echo,
      handler: ({ signal }) => {
        signals.push(signal);
        return textResponse(200, "x");
      },
    };
    const { port } = await startTestServer({ routes: [route] });
    const wire = await openWire(port);
    wire.write("GET /api/echo HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    await wire.closed();
    expect(signals.map(({ aborted }) => aborted)).toEqual([false]);
  });
});

describe("stopping", () => {
  it("lets running requests finish, refuses new connections, and ends idle ones", async () => {
    const gate = makeGate();
    const routes: Route[] = [{ methods: ["GET"], path: "/wait", handler: gate.wait }];
    const { server, port, url } = await startTestServer({ routes, gracefulShutdownMs: 60_000 });
    const silent = await openWire(port);
    const idle = await openWire(port);
    idle.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    await idle.until("404 page not found");
    const busy = await openWire(port);
    busy.write("GET /wait HTTP/1.1\r\nHost: a\r\n\r\n");
    await gate.entered;
    const stopped = server.stop();
    await Promise.all([silent.closed(), idle.closed()]);
    await expect(fetch(url)).rejects.toThrow();
    gate.open();
    expect(await busy.closed()).toMatch(/^HTTP\/1\.1 200 OK[\s\S]*connection: close[\s\S]*done$/i);
    await stopped;
  });

  it("cuts requests that do not end within the grace", async () => {
    const gate = makeGate();
    const routes: Route[] = [{ methods: ["GET"], path: "/wait", handler: gate.wait }];
    const { server, port } = await startTestServer({ routes, gracefulShutdownMs: 50 });
    const wire = await openWire(port);
    wire.write("GET /wait HTTP/1.1\r\nHost: a\r\n\r\n");
    await gate.entered;
    await server.stop();
    expect(await wire.closed()).toBe("");
    gate.open();
  });
});

describe("limits of a connection", () => {
  it("a head of almost a megabyte is taken, a longer one is 431", async () => {
    const { port } = await startTestServer({ routes: [echo] });
    const head = (bytes: number) =>
      `GET /api/echo HTTP/1.1\r\nHost: a\r\nConnection: close\r\nX-Scope-OrgID: ${"t".repeat(bytes)}\r\n\r\n`;
    const good = await openWire(port);
    good.write(head(1_000_000));
    expect(await good.closed()).toMatch(/^HTTP\/1\.1 200 /);
    const bad = await openWire(port);
    bad.write(head(1_100_000));
    expect(await bad.closed()).toMatch(/^HTTP\/1\.1 431 /);
  });

  it.each([
    ["no HTTP at all", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"],
    ["another protocol", "SSH-2.0-OpenSSH_9.2\r\n"],
    ["a bad length", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: many\r\n\r\n"],
    [
      "two lengths",
      "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
    ],
  ])("%s is 400", async (_name, text) => {
    const { port, url } = await startTestServer({ routes: [echo] });
    const wire = await openWire(port);
    wire.write(text);
    expect(await wire.closed()).toMatch(/^HTTP\/1\.1 400 /);
    expect((await ask(`${url}/api/echo`)).status).toBe(200);
  });

  it.each([
    ["head", "POST /push HTTP/1.1\r\nHost: a\r\n"],
    ["body", "POST /push HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhalf"],
  ])("a %s that never ends is cut by the read timeout", async (_name, text) => {
    const { port } = await startTestServer({
      rawRoutes: new Map([["/push", push]]),
      readTimeoutMs: 200,
    });
    const wire = await openWire(port);
    wire.write(text);
    expect(await wire.closed()).toMatch(/^(?:HTTP\/1\.1 408 |$)/);
  });

  it("an answer that nobody takes is given up", async () => {
    const big = Buffer.alloc(64 * 1024 * 1024, "x");
    const routes: Route[] = [
      { methods: ["GET"], path: "/big", handler: () => ({ status: 200, body: big }) },
    ];
    const facts: RequestFacts[] = [];
    let seen: () => void = () => undefined;
    const given = new Promise<void>((resolve) => {
      seen = resolve;
    });
    const { port } = await startTestServer({
      routes,
      writeTimeoutMs: 100,
      onRequest: () => (fact) => {
        facts.push(fact);
        seen();
      },
    });
    const wire = await openWire(port);
    wire.socket.pause();
    wire.write("GET /big HTTP/1.1\r\nHost: a\r\n\r\n");
    await given;
    expect(facts[0]).toMatchObject({ route: "big", status: 499 });
    wire.socket.destroy();
  });

  it("a handler may take longer than the write timeout, an idle connection may not", async () => {
    const gate = makeGate();
    const routes: Route[] = [{ methods: ["GET"], path: "/wait", handler: gate.wait }];
    const { port } = await startTestServer({ routes, writeTimeoutMs: 50, idleTimeoutMs: 50 });
    const busy = await openWire(port);
    busy.write("GET /wait HTTP/1.1\r\nHost: a\r\n\r\n");
    await gate.entered;
    const idle = await openWire(port);
    expect(await idle.closed()).toBe("");
    gate.open();
    await busy.until("done");
    expect(await busy.closed()).toMatch(/done$/);
  });

  it("connections beyond their limit are dropped", async () => {
    const { port } = await startTestServer({ routes: [echo], maxConnections: 1 });
    const first = await openWire(port);
    const second = await openWire(port);
    expect(await second.closed()).toBe("");
    first.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    await first.until("404");
    first.socket.destroy();
  });
});
