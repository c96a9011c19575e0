import { connect } from "node:http2";
import { afterEach, describe, expect, it } from "@jest/globals";
import { WebSocket } from "ws";
import { AllowedOrigins, originOf } from "./allowed-origins.js";
import { echo, push } from "./http/testing/routes.js";
import { openWire, startTestServer, stopTestServers } from "./http/testing/server.js";

afterEach(stopTestServers);

const evil = "http://evil.example";
const origins = new AllowedOrigins(["https://grafana.example", "HTTP://Logs.example:8080/"]);
const refused = (check: () => void): boolean => {
  try {
    check();
    return false;
  } catch (error) {
    expect(error).toMatchObject({ status: 403 });
    return true;
  }
};

describe("a WebSocket", () => {
  it.each<[string, Record<string, string>, boolean]>([
    ["no browser", { host: "skald:3100" }, false],
    ["a page of the server", { host: "skald:3100", origin: "http://skald:3100" }, false],
    ["capital letters", { host: "Skald:3100", origin: "http://skald:3100" }, false],
    ["an address", { host: "[::1]:3100", origin: "http://[::1]:3100" }, false],
    ["a usual port", { host: "skald", origin: "https://skald" }, false],
    ["a usual port that is said", { host: "skald:443", origin: "https://skald" }, false],
    ["TLS that a proxy took off", { host: "skald:8443", origin: "https://skald:8443" }, false],
    [
      "the name of a proxy",
      { host: "10.0.0.1:3100", origin: "https://logs.example", "x-forwarded-host": "logs.example" },
      false,
    ],
    [
      "the names of two proxies",
      { host: "10.0.0.1", origin: "https://a", "x-forwarded-host": "a, b:3100" },
      false,
    ],
    ["an allowed page", { host: "skald", origin: "https://grafana.example" }, false],
    ["an allowed page with a port", { host: "skald", origin: "http://logs.example:8080" }, false],
    ["another page", { host: "skald:3100", origin: evil }, true],
    ["another port", { host: "localhost:3100", origin: "http://localhost:8080" }, true],
    ["another port of an allowed page", { host: "a", origin: "https://grafana.example:1" }, true],
    ["a longer name", { host: "skald", origin: "http://skald.evil.example" }, true],
    ["a file", { host: "skald", origin: "null" }, true],
    ["no origin at all", { host: "skald", origin: "skald" }, true],
    ["no host", { origin: evil }, true],
  ])("of %s", (_name, headers, isRefused) => {
    expect(refused(() => origins.checkSocket(headers))).toBe(isRefused);
  });
});

describe("a change", () => {
  it.each<[string, Record<string, string>, boolean]>([
    ["no browser", { host: "skald" }, false],
    ["a page of the server", { host: "a", "sec-fetch-site": "same-origin" }, false],
    ["the line of addresses", { host: "a", "sec-fetch-site": "none" }, false],
    [
      "a page of the server behind a proxy that hides its name",
      { host: "b", "sec-fetch-site": "same-origin", origin: "https://a" },
      false,
    ],
    ["another page", { host: "a", "sec-fetch-site": "cross-site" }, true],
    ["another port", { host: "a", "sec-fetch-site": "same-site", origin: "http://a:1" }, true],
    [
      "an allowed page",
      { host: "a", "sec-fetch-site": "cross-site", origin: "https://grafana.example" },
      false,
    ],
    ["a page of the server over plain HTTP", { host: "a:1", origin: "http://a:1" }, false],
    ["another page over plain HTTP", { host: "a:1", origin: evil }, true],
  ])("by %s", (_name, headers, isRefused) => {
    expect(refused(() => origins.checkChange(headers))).toBe(isRefused);
  });
});

it.each([
  ["https://a", "https://a"],
  ["HTTP://A:80/", "http://a"],
  ["https://a:8443", "https://a:8443"],
  ["https://a/b", undefined],
  ["https://u@a", undefined],
  ["ws://a", undefined],
  ["*", undefined],
  ["a:80", undefined],
])("%s as an origin is %s", (text, want) => {
  expect(originOf(text)).toBe(want);
});

describe("a server", () => {
  const start = () =>
    startTestServer({
      routes: [echo, { ...echo, path: "/api/end", isAction: true }],
      rawRoutes: new Map([["/push", push]]),
      socketRoutes: [
        { path: "/socket", open: () => async (socket) => socket.send(Buffer.from("x")) },
      ],
      allowedOrigins: ["https://grafana.example"],
    });
  const text =
    'a page of \\"http:\\/\\/evil.example\\" may not do this; allow it with ui.allowed_origins';
  const foreign = `Origin: ${evil}\r\nSec-Fetch-Site: cross-site\r\n`;
  const allowed = "Origin: https://grafana.example\r\nSec-Fetch-Site: cross-site\r\n";
  const body = "Content-Length: 1\r\n\r\nx";

  it.each([
    ["a read", "GET /api/echo", foreign, 200],
    ["a change", "POST /api/echo", foreign, 403],
    ["a GET that changes something", "GET /api/end", foreign, 403],
    ["a HEAD of that", "HEAD /api/end", foreign, 403],
    ["a push", "POST /push", foreign, 403],
    ["a push of an agent", "POST /push", "", 200],
    ["a push of an allowed page", "POST /push", allowed, 200],
    ["a change by an allowed page", "POST /api/echo", allowed, 200],
    ["a change by a client that is no browser", "POST /api/echo", "", 200],
  ])("answers %s", async (_name, line, headers, status) => {
    const { port } = await start();
    const wire = await openWire(port);
    const isPost = line.startsWith("POST");
    const end = isPost ? body : "\r\n";
    wire.write(`${line} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n${headers}${end}`);
    const answer = await wire.closed();
    expect(answer).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
    if (status === 403 && !line.startsWith("HEAD")) expect(answer).toMatch(new RegExp(text));
  });

  it("asks the same over HTTP/2", async () => {
    const { url } = await start();
    const client = connect(url);
    const stream = client.request({ ":method": "POST", ":path": "/push", origin: evil });
    const headers = await new Promise<Record<string, unknown>>((resolve) => {
      stream.once("response", resolve);
      stream.end("x");
    });
    expect(headers[":status"]).toBe(403);
    client.destroy();
  });

  it.each([
    ["its own pages", undefined, "x"],
    ["allowed pages", "https://grafana.example", "x"],
    ["no others", evil, "Unexpected server response: 403"],
  ])("opens WebSockets for %s", async (_name, origin, want) => {
    const { url } = await start();
    const client = new WebSocket(`${url}/socket`, { origin: origin ?? url });
    const found = await new Promise((resolve) => {
      client.once("message", (data) => resolve(String(data)));
      client.once("error", (error) => resolve(error.message));
    });
    expect(found).toBe(want);
    client.terminate();
  });
});
