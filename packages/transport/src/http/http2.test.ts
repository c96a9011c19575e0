import { once } from "node:events";
import {
  type ClientHttp2Session,
  connect,
  constants,
  type IncomingHttpHeaders,
  type SecureClientSessionOptions,
} from "node:http2";
import { type AddressInfo, createConnection, createServer, type Socket } from "node:net";
import { text } from "node:stream/consumers";
import { mock } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { afterEach, describe, expect, it } from "@jest/globals";
import { rapidResets, TestAuthority } from "@skald/testkit";
import { RequestTurns } from "../request-turns.js";
import { endResponse } from "./answer.js";
import { readBody } from "./body.js";
import type { RawHandler } from "./http-server.js";
import { readAhead } from "./http2.js";
import type { RequestFacts } from "./observe.js";
import { type HttpRequest, jsonResponse, type Route, textResponse } from "./route.js";
import { makeGate, openWire, startTestServer, stopTestServers } from "./testing/server.js";

const clients: ClientHttp2Session[] = [];

afterEach(async () => {
  for (const client of clients.splice(0)) client.destroy();
  await stopTestServers();
});

const push: RawHandler = async (request, response) => {
  const body = await readBody(request, 1000);
  endResponse(
    response,
    Buffer.from(`pushed ${body.length} for ${request.headers["x-scope-orgid"]}`),
  );
};
const big = "0123456789".repeat(100_000);
const routes: Route[] = [
  {
    methods: ["GET", "POST"],
    path: "/echo",
    handler: ({ method, headers, params, body }) =>
      jsonResponse(200, {
        method,
        host: headers.host,
        params: [...params],
        body: Buffer.from(body).toString(),
      }),
  },
  { methods: ["GET"], path: "/big", handler: () => textResponse(200, big) },
];
const rawRoutes = new Map([["/push", push]]);

async function open(
  url: string,
  options?: SecureClientSessionOptions,
): Promise<ClientHttp2Session> {
  const client = connect(url, options);
  clients.push(client);
  client.on("error", () => undefined);
  await new Promise((resolve, reject) => {
    client.once("connect", resolve);
    client.once("error", reject);
  });
  return client;
}

/** Resolves with the answer; rejects when the stream is cut. */
function ask(
  client: ClientHttp2Session,
  path: string,
  { body, ...headers }: Readonly<Record<string, string>> = {},
): Promise<{ status: number; headers: IncomingHttpHeaders; text: string }> {
  return new Promise((resolve, reject) => {
    const stream = client.request({ ":path": path, ...headers }, { endStream: body === undefined });
    let answered: IncomingHttpHeaders = {};
    let text = "";
    stream.on("response", (found) => {
      answered = found;
    });
    stream.on("data", (chunk) => {
      text += chunk;
    });
    stream.on("error", reject);
    stream.on("end", () => {
      if (answered[":status"] === undefined) reject(new Error("cut"));
      else resolve({ status: Number(answered[":status"]), headers: answered, text });
    });
    if (body !== undefined) stream.end(body);
  });
}

describe("a connection that waits to be served", () => {
  /** Both ends of a connection. */
  async function pair(): Promise<{ client: Socket; socket: Socket; close: () => void }> {
    const server = createServer({ allowHalfOpen: true }).listen(0, "127.0.0.1");
    await once(server, "listening");
    const client = createConnection((server.address() as AddressInfo).port, "127.0.0.1");
    const [socket] = (await once(server, "connection")) as [Socket];
    socket.pause();
    const close = () => {
      client.destroy();
      server.close();
    };
    return { client, socket, close };
  }

  it("gives back what was read ahead, and no more is read", async () => {
    const { client, socket, close } = await pair();
    client.write("one ");
    const end = readAhead(socket);
    await once(socket, "data");
    client.write("two ");
    await once(socket, "data");
    end();
    client.end("three");
    expect([socket.isPaused(), socket.destroyed]).toEqual([true, false]);
    expect(await text(socket)).toBe("one two three");
    close();
  });

  it("keeps little of what is sent", async () => {
    const { client, socket, close } = await pair();
    readAhead(socket);
    client.write(Buffer.alloc(4 * 1024 + 1));
    while (socket.bytesRead <= 4 * 1024) await nextTurn();
    expect(socket.isPaused()).toBe(true);
    close();
  });

  it("is closed when its client has left, whatever it sent before", async () => {
    const { client, socket, close } = await pair();
    readAhead(socket);
    client.end("PRI * HTTP/2.0");
    await once(socket, "close");
    close();
  });
});

describe("HTTP/2", () => {
  it("is spoken with who begins with it, beside HTTP/1", async () => {
    const { url } = await startTestServer({ routes, rawRoutes });
    const client = await open(url);
    const answers = await Promise.all([
      ask(client, "/echo?a=%20b"),
      ask(client, "/echo", { ":method": "POST", body: "hello" }),
      ask(client, "/push", { ":method": "POST", "x-scope-orgid": "t", body: "abc" }),
      ask(client, "/none"),
      ask(client, "/echo", { ":method": "DELETE" }),
      ask(client, "/push", { ":method": "POST", body: "x".repeat(1001) }),
      ask(client, "/echo", { ":method": "HEAD" }),
      ask(client, "//echo"),
    ]);
    const host = new URL(url).host;
    expect(answers.map(({ status, text }) => [status, text])).toEqual([
      [200, `${JSON.stringify({ method: "GET", host, params: [["a", " b"]], body: "" })}\n`],
      [200, `${JSON.stringify({ method: "POST", host, params: [], body: "hello" })}\n`],
      [200, "pushed 3 for t"],
      [404, "404 page not found\n"],
      [405, ""],
      [413, "request body too large: limit is 1000 bytes\n"],
      [200, ""],
      [301, ""],
    ]);
    expect(answers[7]?.headers.location).toBe("/echo");
    expect((await fetch(`${url}/echo`)).status).toBe(200);
  });

  it("takes a body that is larger than what a client may send ahead", async () => {
    const count: RawHandler = async (request, response) => {
      const body = await readBody(request, 1_000_000);
      endResponse(response, Buffer.from(`${body.length} bytes`));
    };
    const { url } = await startTestServer({ routes, rawRoutes: new Map([["/count", count]]) });
    const client = await open(url);
    const body = "x".repeat(700_000);
    expect((await ask(client, "/count", { ":method": "POST", body })).text).toBe("700000 bytes");
  });

  it("is spoken over TLS with who asks for it", async () => {
    const authority = new TestAuthority("authority");
    const { cert, key } = authority.issue("server");
    const tls = {
      cert: { text: cert },
      key: { text: key },
      clientAuth: "",
      minVersion: "",
      cipherSuites: [],
    };
    const { port } = await startTestServer({ routes, rawRoutes, tls });
    const client = await open(`https://127.0.0.1:${port}`, { ca: authority.cert });
    expect(client.alpnProtocol).toBe("h2");
    expect((await ask(client, "/push", { ":method": "POST", body: "abc" })).status).toBe(200);
  });

  it("carries answers larger than a window, many at a time", async () => {
    const { url } = await startTestServer({ routes });
    const client = await open(url);
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => ask(client, "/big", { "accept-encoding": "identity" })),
    );
    expect(answers.every(({ text }) => text === big)).toBe(true);
  });

  it("is known by its whole preface only, in how many pieces that may come", async () => {
    const { port } = await startTestServer({ routes });
    const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    const settings = "\0\0\0\x04\0\0\0\0\0";
    const wire = await openWire(port);
    wire.socket.setNoDelay();
    for (const char of preface) {
      wire.write(char);
      await new Promise((resolve) => setImmediate(resolve));
    }
    wire.write(settings);
    await wire.until("\x04\0\0\0\0");
    const other = await openWire(port);
    other.write("PRX * HTTP/1.1\r\n\r\n");
    expect(await other.closed()).toMatch(/^HTTP\/1\.1 400 /);
    const post = await openWire(port);
    post.write("P");
    await new Promise((resolve) => setImmediate(resolve));
    post.write("OST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi");
    expect(await post.closed()).toContain('"body":"hi"');
  });

  it("tells a handler when its client leaves", async () => {
    const facts: RequestFacts[] = [];
    const gate = makeGate();
    let aborted: Promise<void> = Promise.resolve();
    const wait: Route = {
      methods: ["GET"],
      path: "/wait",
      handler: ({ signal }: HttpRequest) => {
        aborted = new Promise((resolve) => {
          signal.addEventListener("abort", () => resolve(), { once: true });
        });
        return gate.wait();
      },
    };
    const { url } = await startTestServer({
      routes: [wait, ...routes],
      onRequest: () => (fact) => facts.push(fact),
    });
    const client = await open(url);
    const stream = client.request({ ":path": "/wait" });
    await gate.entered;
    stream.close(constants.NGHTTP2_CANCEL);
    await aborted;
    gate.open();
    expect((await ask(client, "/echo")).status).toBe(200);
    expect(facts[0]).toMatchObject({ route: "wait", status: 499 });
  });

  it("ends with its last answer when the server stops", async () => {
    const gate = makeGate();
    const wait: Route = { methods: ["GET"], path: "/wait", handler: gate.wait };
    const { server, url } = await startTestServer({ routes: [wait], gracefulShutdownMs: 60_000 });
    const client = await open(url);
    const idle = await open(url);
    const answer = ask(client, "/wait");
    await gate.entered;
    const gone = new Promise((resolve) => idle.once("close", resolve));
    const stopped = server.stop();
    await gone;
    gate.open();
    expect(await answer).toMatchObject({ status: 200, text: "done" });
    await stopped;
  });

  it("is cut when it does not end within the grace", async () => {
    const gate = makeGate();
    const wait: Route = { methods: ["GET"], path: "/wait", handler: gate.wait };
    const { server, url } = await startTestServer({ routes: [wait], gracefulShutdownMs: 50 });
    const client = await open(url);
    const failed = expect(ask(client, "/wait")).rejects.toThrow();
    await gate.entered;
    await server.stop();
    await failed;
    gate.open();
  });
});

describe("a client that sends no more, and reads", () => {
  it.each([
    ["a push", "POST /push", "Content-Length: 3\r\n\r\nabc", "pushed 3"],
    ["a query", "GET /echo", "\r\n", '"method":"GET"'],
  ])("gets the answer to %s", async (_name, line, rest, want) => {
    const { port } = await startTestServer({ routes, rawRoutes });
    const wire = await openWire(port);
    wire.socket.end(`${line} HTTP/1.1\r\nHost: a\r\n${rest}`);
    expect(await wire.closed()).toContain(want);
  });

  it.each(["1.0", "1.1"])("gets an answer that takes its time, by HTTP/%s", async (version) => {
    const gate = makeGate();
    const wait: Route = { methods: ["GET"], path: "/wait", handler: gate.wait };
    const { port } = await startTestServer({ routes: [wait] });
    const wire = await openWire(port);
    wire.socket.end(`GET /wait HTTP/${version}\r\nHost: a\r\n\r\n`);
    await gate.entered;
    if (version === "1.1") await wire.until("102 Processing");
    gate.open();
    expect(await wire.closed()).toMatch(/HTTP\/1\.1 200 OK[\s\S]*done$/);
  });

  it.each(["1.0", "1.1"])("is told from one that is gone, by HTTP/%s", async (version) => {
    const gate = makeGate();
    let aborted: Promise<void> = Promise.resolve();
    const wait: Route = {
      methods: ["GET"],
      path: "/wait",
      handler: ({ signal }: HttpRequest) => {
        aborted = new Promise((resolve) => {
          signal.addEventListener("abort", () => resolve(), { once: true });
        });
        return gate.wait();
      },
    };
    const { port } = await startTestServer({ routes: [wait] });
    const wire = await openWire(port);
    wire.write(`GET /wait HTTP/${version}\r\nHost: a\r\n\r\n`);
    await gate.entered;
    wire.socket.destroy();
    await aborted;
    gate.open();
  });
});

describe("requests without a tenant", () => {
  it("have the turn of their path, by HTTP/1 and HTTP/2", async () => {
    const run = mock.method(RequestTurns.prototype, "run");
    const { url } = await startTestServer({ routes });
    await ask(await open(url), "/ready");
    await (await fetch(`${url}/loki/api/v1/push`)).text();
    expect(run.mock.calls.map(({ arguments: [, , turn] }) => turn)).toEqual(["/ready", "/loki"]);
    run.mock.restore();
  });
});

describe("a client of HTTP/2 that goes without a word", () => {
  it.each(["end", "destroy"] as const)("is noticed by the %s of its connection", async (how) => {
    const drop = mock.method(RequestTurns.prototype, "drop");
    const { port } = await startTestServer({ routes, idleTimeoutMs: 0, readTimeoutMs: 0 });
    const wire = await openWire(port);
    wire.socket.write(rapidResets(0, {}));
    // The server's settings: it has begun.
    await new Promise((resolve) => wire.socket.once("data", resolve));
    wire.socket[how]();
    await wire.closed();
    const gone = () =>
      drop.mock.calls.some(({ arguments: [one] }) => one.constructor.name === "ServerHttp2Session");
    while (!gone()) await new Promise((resolve) => setImmediate(resolve));
    drop.mock.restore();
  });
});
