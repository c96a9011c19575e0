import { once } from "node:events";
import { type ClientHttp2Session, connect, constants } from "node:http2";
import { mock } from "node:test";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { rapidResets } from "@skald/testkit";
import { WebSocket } from "ws";
import type { CutReason } from "./connection-guard.js";
import { ConnectionStarts } from "./http/connection-starts.js";
import { ask, echo, push } from "./http/testing/routes.js";
import { openWire, startTestServer, stopTestServers } from "./http/testing/server.js";
import { RequestTurns } from "./request-turns.js";

const cuts: [CutReason, string?][] = [];
const onCut = (reason: CutReason, error?: unknown) => {
  cuts.push(error instanceof Error ? [reason, error.message] : [reason]);
};
let isFaulty = true;

beforeEach(() => {
  cuts.length = 0;
  isFaulty = true;
});

afterEach(async () => {
  await stopTestServers();
});

/** Fails in an event of a connection, behind everything that answers failures. */
const onEnd = () => {
  if (isFaulty) throw new Error("a fault");
};
const socket = { path: "/socket", open: () => async () => undefined };

async function start() {
  return startTestServer({
    routes: [echo],
    rawRoutes: new Map([["/push", push]]),
    socketRoutes: [socket],
    onRequest: () => onEnd,
    onCut,
  });
}

describe("a fault in a handler of a connection", () => {
  const body = "Host: a\r\nContent-Length: 1\r\n\r\nx";
  it.each([
    ["a request", "GET /api/echo HTTP/1.1\r\nHost: a\r\n\r\n"],
    ["a request for nothing", "GET /none HTTP/1.1\r\nHost: a\r\n\r\n"],
    ["a redirect", "GET //none HTTP/1.1\r\nHost: a\r\n\r\n"],
    ["a push", `POST /push HTTP/1.1\r\n${body}`],
    ["a push by way of node:http", `POST /push HTTP/1.1\r\nX-A: \t\r\n${body}`],
    [
      "a WebSocket that is refused",
      "GET /socket HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
    ],
  ])("cuts that of %s, and no other", async (_name, text) => {
    const { port, url } = await start();
    const [faulty, other] = await Promise.all([openWire(port), openWire(port)]);
    faulty.write(text);
    await faulty.closed();
    expect(cuts).toEqual([["fault", "a fault"]]);
    isFaulty = false;
    other.write("GET /api/echo HTTP/1.1\r\nHost: a\r\n\r\n");
    await other.until("200 OK");
    expect((await ask(`${url}/api/echo`)).status).toBe(200);
  });

  it("cuts that of a WebSocket", async () => {
    const { url } = await start();
    const client = new WebSocket(`${url.replace("http", "ws")}/socket`);
    await new Promise((resolve) => client.once("close", resolve));
    expect(cuts).toEqual([["fault", "a fault"]]);
  });

  it("cuts a request of HTTP/2", async () => {
    const { url } = await start();
    const client = connect(url);
    const stream = client.request({ ":path": "/api/echo" });
    stream.on("error", () => undefined);
    stream.resume();
    await new Promise((resolve) => stream.once("close", resolve));
    expect(cuts).toEqual([["fault", "a fault"]]);
    isFaulty = false;
    expect(await statusOf(client)).toBe(200);
    client.destroy();
  });
});

/** The end of the frame that says why: ENHANCE_YOUR_CALM. */
const goaway = `\0\0\0${String.fromCharCode(constants.NGHTTP2_ENHANCE_YOUR_CALM)}`;

describe("a client of HTTP/2 that resets its requests", () => {
  it("may do so with five hundred", async () => {
    isFaulty = false;
    const { url } = await start();
    const client = connect(url);
    for (let i = 0; i < 500; i++) {
      // As many as may run at a time.
      if (i % 100 === 0) expect(await statusOf(client)).toBe(200);
      const stream = client.request({ ":path": "/api/echo" });
      stream.on("error", () => undefined);
      stream.close(constants.NGHTTP2_CANCEL);
      if (i % 100 === 99) await once(stream, "close");
    }
    expect(await statusOf(client)).toBe(200);
    client.destroy();
    expect(cuts).toEqual([]);
  });

  it("is cut when these are more, and hears why", async () => {
    isFaulty = false;
    const { port, url } = await start();
    const sent = rapidResets(580, { ":path": "/api/echo" });
    const answers = await Promise.all([1, 2, 3].map(() => sendOnceGreeted(port, sent)));
    for (const answer of answers) expect(answer).toContain(goaway);
    expect(cuts).toEqual(Array(3).fill(["resets"]));
    expect((await ask(`${url}/api/echo`)).status).toBe(200);
  });

  it("is cut before one begins when it sends them ahead of all that it could hear", async () => {
    isFaulty = false;
    const run = mock.method(RequestTurns.prototype, "run");
    const { port } = await start();
    const [few, many] = [249, 251].map((n) => rapidResets(n, { ":path": "/api/echo" }));
    await sendUntilClosed(port, many as Buffer);
    expect([cuts, run.mock.callCount()]).toEqual([[["resets"]], 0]);
    const patient = await openWire(port);
    patient.socket.write(few as Buffer);
    await patient.until("\0");
    patient.socket.destroy();
    expect(run.mock.callCount()).toBe(249);
    run.mock.restore();
  });
});

describe("a client that sends many requests ahead", () => {
  it("may do so with some hundreds, and is cut when these are too many", async () => {
    isFaulty = false;
    const { port, url } = await start();
    const get = "GET /api/echo HTTP/1.1\r\nHost: a\r\n\r\n";
    const patient = await openWire(port);
    patient.write(`${get.repeat(300)}${get.replace("echo", "echo?last=1")}`);
    await patient.until("last");
    patient.socket.destroy();
    expect(cuts).toEqual([]);
    await sendUntilClosed(port, Buffer.from(get.repeat(20_000)));
    expect(cuts).toEqual([["ahead"]]);
    expect((await ask(`${url}/api/echo`)).status).toBe(200);
  });

  it("is forgotten with all that it sent when its connection is closed", async () => {
    isFaulty = false;
    const drop = mock.method(RequestTurns.prototype, "drop");
    const { port } = await start();
    await sendUntilClosed(
      port,
      Buffer.from("GET /api/echo HTTP/1.1\r\nHost: a\r\n\r\n".repeat(20_000)),
    );
    await sendOnceGreeted(port, rapidResets(20_000, { ":path": "/api/echo" }));
    await stopTestServers();
    const dropped = drop.mock.calls.map(
      ({ arguments: [connection] }) => connection.constructor.name,
    );
    drop.mock.restore();
    expect(dropped).toEqual(expect.arrayContaining(["Socket", "ServerHttp2Session"]));
  });
});

describe("a connection that begins to speak HTTP/2", () => {
  it("does so in its turn, before its requests have theirs", async () => {
    isFaulty = false;
    const turns = [ConnectionStarts, RequestTurns].map(({ prototype }) =>
      mock.method(prototype, "run"),
    );
    const { url } = await start();
    const client = connect(url);
    expect(await statusOf(client)).toBe(200);
    client.destroy();
    const begun = turns.map(({ mock: { calls } }) =>
      calls.map(({ arguments: [connection] }) => connection.constructor.name),
    );
    for (const turn of turns) turn.mock.restore();
    expect(begun).toEqual([["Socket"], ["ServerHttp2Session"]]);
  });

  it("is cut when too many wait for that, while those of HTTP/1 are served", async () => {
    isFaulty = false;
    const { port, url } = await start();
    const waiting = mock.method(ConnectionStarts.prototype, "run", () => false);
    expect(await sendUntilClosed(port, rapidResets(1, { ":path": "/api/echo" }))).toBe("");
    expect((await ask(`${url}/api/echo`)).status).toBe(200);
    waiting.mock.restore();
  });
});

function statusOf(client: ClientHttp2Session): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const stream = client.request({ ":path": "/api/echo" });
    stream.once("response", (headers) => resolve(headers[":status"]));
    stream.once("error", reject);
  });
}

/** Resolves with all that came. */
async function sendUntilClosed(port: number, bytes: Buffer): Promise<string> {
  const wire = await openWire(port);
  wire.socket.write(bytes);
  return wire.closed();
}

/** As `sendUntilClosed`, but the requests are sent when the server has answered the greeting. */
async function sendOnceGreeted(port: number, bytes: Buffer): Promise<string> {
  const wire = await openWire(port);
  const greeting = rapidResets(0, {});
  wire.socket.write(greeting);
  await wire.until("\0");
  wire.socket.write(bytes.subarray(greeting.length));
  return wire.closed();
}
