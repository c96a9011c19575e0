import { setImmediate as nextTurn } from "node:timers/promises";
import { gunzipSync } from "node:zlib";
import { afterEach, describe, expect, it } from "@jest/globals";
import { internal, invalidArgument, limitReached, SkaldError } from "@skald/model";
import { acceptsEncoding } from "./answer.js";
import type { RawHandler } from "./http-server.js";
import type { RequestFacts } from "./observe.js";
import { type Route, textResponse } from "./route.js";
import { ask, echo, form, push } from "./testing/routes.js";
import { openWire, startTestServer, stopTestServers } from "./testing/server.js";

afterEach(stopTestServers);

describe("routes", () => {
  it("get the method, path, query string and body", async () => {
    const { url } = await startTestServer({ routes: [echo] });
    const { text } = await ask(`${url}/api/echo?a=1&b=%20x&a=2`, { method: "POST", body: "hello" });
    expect(JSON.parse(text)).toEqual({
      method: "POST",
      path: "/api/echo",
      params: [
        ["a", "1"],
        ["b", " x"],
        ["a", "2"],
      ],
      body: "hello",
    });
  });

  it("get the fields of a form before those of the query string, and then no body", async () => {
    const { url } = await startTestServer({ routes: [echo] });
    const init = { method: "POST", body: "a=form&c=%7Bx%7D+y", headers: form };
    const answer = JSON.parse((await ask(`${url}/api/echo?a=query`, init)).text);
    expect(answer).toMatchObject({
      params: [
        ["a", "form"],
        ["c", "{x} y"],
        ["a", "query"],
      ],
      body: "",
    });
  });

  it("get the decoded variables of their path", async () => {
    const route: Route = {
      methods: ["GET"],
      path: "/label/:name/values",
      handler: ({ variables }) => textResponse(200, JSON.stringify(variables)),
    };
    const { url } = await startTestServer({ routes: [route] });
    expect((await ask(`${url}/label/a%2Fb%20c/values`)).text).toBe('{"name":"a/b c"}');
  });

  it("are known by their prefix only when there is one", async () => {
    const rawRoutes = new Map([["/push", push]]);
    for (const pathPrefix of ["/logs", "/logs/", "logs", "//logs//"]) {
      const { url } = await startTestServer({ routes: [echo], rawRoutes, pathPrefix });
      expect((await ask(`${url}/logs/api/echo`)).status).toBe(200);
      expect((await ask(`${url}/logs/push`, { method: "POST", body: "x" })).text).toBe("pushed 1");
      expect((await ask(`${url}/api/echo`)).status).toBe(404);
    }
  });

  it("are there without a prefix when it is a slash", async () => {
    const { url } = await startTestServer({ routes: [echo], pathPrefix: "/" });
    expect((await ask(`${url}/api/echo`)).status).toBe(200);
  });

  it.each([
    ["two slashes", "GET", "//api//echo?a=//1", "/api/echo?a=//1"],
    ["two slashes before a raw route", "POST", "//push", "/push"],
    ["dots", "GET", "/x/../api/./echo", "/api/echo"],
    ["a slash at the end", "GET", "/api//echo/", "/api/echo/"],
    ["more dots than directories", "GET", "/../../api/echo", "/api/echo"],
    ["what a browser would take for a host", "GET", "//\\\\host/..//x", "/x"],
    ["a backslash", "GET", "//\\host", "/%5Chost"],
  ])("send a client with %s to the clean path", async (_name, method, path, clean) => {
    const { port } = await startTestServer({
      routes: [echo],
      rawRoutes: new Map([["/push", push]]),
    });
    const wire = await openWire(port);
    wire.write(`${method} ${path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n`);
    const answer = await wire.closed();
    expect(answer).toContain("HTTP/1.1 301 Moved Permanently\r\n");
    expect(answer.toLowerCase()).toContain(`\r\nlocation: ${clean.toLowerCase()}\r\n`);
  });

  it("may have a variable in a raw route, whose name is that of the metrics", async () => {
    const routes: string[] = [];
    const { url } = await startTestServer({
      rawRoutes: new Map([["/in/:name/push", push]]),
      onRequest: ({ route }) => {
        routes.push(route);
        return () => undefined;
      },
    });
    for (const path of ["/in/a/push", "/in/a/b/push", "/in//push"])
      await fetch(`${url}${path}`, { method: "POST", body: "x", redirect: "manual" });
    expect(routes).toEqual(["in_name_push", "other", "other"]);
  });

  it("keep dots that begin the name of a variable", async () => {
    const route: Route = {
      methods: ["GET"],
      path: "/label/:name",
      handler: ({ variables }) => textResponse(200, variables.name as string),
    };
    const { url } = await startTestServer({ routes: [route] });
    expect((await ask(`${url}/label/.x`)).text).toBe(".x");
  });

  it.each([
    ["GET", "/logs/api/echo", 200],
    ["GET", "/logs/API/ECHO", 404],
    ["GET", "/logs/api/Echo", 404],
    ["GET", "/LOGS/api/echo", 404],
    ["GET", "/logs/api/echo/", 404],
    ["GET", "/logs/api/echo//", 301],
    ["GET", "/logs/api/%65cho", 404],
    ["GET", "/logs/label/App/values", 200],
    ["GET", "/logs/Label/App/values", 404],
    ["GET", "/logs/label/App/values/", 404],
    ["GET", "/logs/PUSH", 404],
    ["POST", "/logs/push", 200],
    ["POST", "/logs/PUSH", 404],
    ["POST", "/logs/push/", 404],
    ["DELETE", "/logs/api/ECHO", 404],
  ])("answer %s %s with %i: letters and slashes count", async (method, path, status) => {
    const values: Route = {
      methods: ["GET"],
      path: "/label/:name/values",
      handler: () => textResponse(200, ""),
    };
    const { port } = await startTestServer({
      pathPrefix: "/logs",
      routes: [echo, values],
      rawRoutes: new Map([["/push", push]]),
    });
    const wire = await openWire(port);
    wire.write(`${method} ${path} HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\nx`);
    await wire.until("\r\n\r\n");
    expect(wire.received()).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
  });

  it("answer HEAD without a body", async () => {
    const { url } = await startTestServer({ routes: [echo] });
    const answer = await ask(`${url}/api/echo`, { method: "HEAD" });
    expect(answer).toMatchObject({ status: 200, text: "" });
    expect(Number(answer.headers.get("content-length"))).toBeGreaterThan(10);
  });

  it("refuse a form of more than a MiB with 413, however large bodies may be", async () => {
    const { url } = await startTestServer({ routes: [echo], maxBodyBytes: 10 * 1024 * 1024 });
    const body = `a=${"x".repeat(500_000)}&b=${"x".repeat(500_000)}`;
    const send = (text: string) =>
      ask(`${url}/api/echo`, { method: "POST", headers: form, body: text });
    expect((await send(body)).status).toBe(200);
    const answer = await send(`${body}&c=${"x".repeat(50_000)}`);
    expect([answer.status, answer.text]).toEqual([
      413,
      "request body too large: limit is 1048576 bytes",
    ]);
  });

  it("get long forms that end together in several turns of the event loop", async () => {
    let turn = 0;
    const turns = new Set<number>();
    const route: Route = {
      methods: ["POST"],
      path: "/form",
      handler: () => {
        turns.add(turn);
        return textResponse(200, "done");
      },
    };
    const { port } = await startTestServer({ routes: [route], maxBodyBytes: 2 ** 20 });
    const body = `a=${"%41".repeat(174_000)}&b=${"%41".repeat(174_000)}`;
    const head = `POST /form HTTP/1.1\r\nHost: a\r\nContent-Type: ${form["content-type"]}\r\nContent-Length: ${body.length}\r\n\r\n`;
    const wires = await Promise.all(Array.from({ length: 24 }, () => openWire(port)));
    for (const wire of wires) {
      await new Promise((sent) => wire.socket.write(head + body.slice(0, -1), sent));
    }
    // The server has read all of it.
    for (let i = 0; i < 500; i++) await nextTurn();
    const next = (): void => {
      turn++;
      if (wires.some(({ received }) => received() === "")) setImmediate(next);
    };
    setImmediate(next);
    for (const wire of wires) wire.write(body.slice(-1));
    await Promise.all(wires.map((wire) => wire.until("done")));
    expect(turns.size).toBeGreaterThan(3);
  });

  it("refuse a body beyond the limit with 413", async () => {
    const { url } = await startTestServer({ routes: [echo] });
    const answer = await ask(`${url}/api/echo`, { method: "POST", body: "x".repeat(1001) });
    expect(answer.status).toBe(413);
    expect(answer.text).toBe("request body too large: limit is 1000 bytes");
    expect(answer.headers.get("content-type")).toBe("text/plain; charset=utf-8");
    expect(answer.headers.get("x-content-type-options")).toBe("nosniff");
  });
});

describe("refused requests", () => {
  it.each([
    ["a method that a route lacks", "DELETE", "/api/echo", "GET, POST"],
    ["OPTIONS", "OPTIONS", "/api/echo", "GET, POST"],
    ["a method that a raw route lacks", "GET", "/push", "POST"],
  ])("get 405 without a body: %s", async (_name, method, path, allow) => {
    const { url } = await startTestServer({
      routes: [echo],
      rawRoutes: new Map([["/push", push]]),
    });
    const answer = await ask(url + path, { method });
    expect(answer).toMatchObject({ status: 405, text: "" });
    expect(answer.headers.get("allow")).toBe(allow);
  });

  it.each(["/", "/api", "/api/echo/more", "/push/more"])("get 404: %s", async (path) => {
    const { url } = await startTestServer({
      routes: [echo],
      rawRoutes: new Map([["/push", push]]),
    });
    for (const method of ["GET", "POST", "PUT"]) {
      const answer = await ask(url + path, { method });
      expect([answer.status, answer.text]).toEqual([404, "404 page not found\n"]);
    }
  });

  it("get 400 for a path that cannot be decoded, and nothing of our stack", async () => {
    const route: Route = { ...echo, path: "/label/:name" };
    const { url } = await startTestServer({ routes: [route] });
    const answer = await ask(`${url}/label/%E0%A4%A`);
    expect([answer.status, answer.text]).toEqual([400, "the path cannot be decoded"]);
  });

  it("get the status and text of an error, and of one that nobody foresaw nothing but 500", async () => {
    const failures: unknown[] = [];
    const fail = (path: string, error: unknown): Route => ({
      methods: ["GET"],
      path,
      handler: () => {
        throw error;
      },
    });
    const routes = [
      fail("/bad", invalidArgument("bad step")),
      fail("/who", new SkaldError("unauthenticated", "no org id")),
      fail("/bug", new TypeError("x is undefined")),
      fail("/odd", "just text"),
      fail("/own", internal("/data/x.parquet is corrupt")),
      fail("/left", Object.assign(new Error("aborted"), { name: "AbortError" })),
    ];
    const { url } = await startTestServer({ routes, onError: (error) => failures.push(error) });
    const answers = await Promise.all(
      ["/bad", "/who", "/bug", "/odd", "/own", "/left"].map((p) => ask(url + p)),
    );
    expect(answers.map(({ status, text }) => [status, text])).toEqual([
      [400, "bad step"],
      [401, "no org id\n"],
      [500, "internal server error"],
      [500, "internal server error"],
      [500, "internal server error"],
      [499, "the request was cancelled by the client"],
    ]);
    expect(failures.map(String).sort()).toEqual([
      "SkaldError: /data/x.parquet is corrupt",
      "TypeError: x is undefined",
      "just text",
    ]);
  });

  it("lose their connection when the answer cannot be written", async () => {
    const failures: unknown[] = [];
    const route: Route = {
      methods: ["GET"],
      path: "/x",
      handler: () => ({ status: 200, headers: { "x-bad": "a\nb" } }),
    };
    const { url } = await startTestServer({ routes: [route], onError: (e) => failures.push(e) });
    await expect(ask(`${url}/x`)).rejects.toThrow("fetch failed");
    expect(failures).toHaveLength(1);
  });
});

describe("errors", () => {
  const position = { offset: 4, line: 1, column: 5 };
  const fail = (error: Error): Route => ({
    methods: ["GET"],
    path: "/fail",
    handler: () => Promise.reject(error),
  });

  it.each([
    [undefined, false],
    ["*/*", false],
    ["text/plain", false],
    ["application/json, text/plain, */*", false],
    ["application/jsonx", false],
    ["application/json", true],
    [" Application/JSON ; charset=utf-8", true],
  ])("are JSON for Accept: %s is %s", async (accept, isJson) => {
    const error = invalidArgument("no such thing", { detail: { position, hint: "a\n ^" } });
    const { url } = await startTestServer({ routes: [fail(error)] });
    const headers = accept === undefined ? {} : { accept };
    const response = await fetch(`${url}/fail`, { headers });
    const want = { status: "error", error: "no such thing", position, hint: "a\n ^" };
    expect(response.status).toBe(400);
    expect(response.headers.get("content-type")).toContain(
      isJson ? "application/json" : "text/plain",
    );
    const text = await response.text();
    expect(isJson ? JSON.parse(text) : text).toEqual(isJson ? want : "no such thing");
  });

  it("name the limit that was reached, and nothing of a fault", async () => {
    const headers = { accept: "application/json" };
    const limited = fail(limitReached("max_query_length", "too long"));
    const fault = { ...fail(new Error("secret")), path: "/fault" };
    const { url } = await startTestServer({ routes: [limited, fault] });
    expect(await (await fetch(`${url}/fail`, { headers })).json()).toEqual({
      ...{ status: "error", error: "too long", limit: "max_query_length" },
    });
    const broken = await fetch(`${url}/fault`, { headers });
    expect([broken.status, await broken.text()]).toEqual([
      500,
      expect.not.stringContaining("secret"),
    ]);
  });
});

describe("raw routes", () => {
  it("get POSTs of exactly their path, with or without a query string", async () => {
    const { url } = await startTestServer({ rawRoutes: new Map([["/push", push]]) });
    const init = { method: "POST", body: "abc" };
    expect((await ask(`${url}/push?x=1`, init)).text).toBe("pushed 3");
    expect((await ask(`${url}/push`, init)).text).toBe("pushed 3");
  });

  it("answer what they throw, with a line feed", async () => {
    const failures: unknown[] = [];
    const failing = new Map<string, RawHandler>([
      ["/bad", () => Promise.reject(invalidArgument("multiple org IDs present"))],
      ["/who", () => Promise.reject(new SkaldError("unauthenticated", "no org id"))],
      ["/bug", () => Promise.reject(new Error("broken"))],
      ["/own", () => Promise.reject(internal("/data/x.wal is corrupt"))],
    ]);
    const { url } = await startTestServer({
      rawRoutes: failing,
      onError: (error) => failures.push(error),
    });
    const post = (path: string) => ask(url + path, { method: "POST", body: "x" });
    const answers = await Promise.all(["/bad", "/who", "/bug", "/own"].map(post));
    expect(answers.map(({ status, text }) => [status, text])).toEqual([
      [400, "multiple org IDs present\n"],
      [401, "no org id\n"],
      [500, "internal server error\n"],
      [500, "internal server error\n"],
    ]);
    expect(failures.map(String)).toEqual(["Error: broken", "SkaldError: /data/x.wal is corrupt"]);
  });

  it("that fail midway end the connection", async () => {
    const broken: RawHandler = async (_request, response) => {
      response.write("half");
      throw new Error("broken");
    };
    const { url } = await startTestServer({ rawRoutes: new Map([["/push", broken]]) });
    await expect(ask(`${url}/push`, { method: "POST" })).rejects.toThrow();
  });
});

describe("compression", () => {
  const long = "0123456789".repeat(1000);
  const routes: Route[] = [
    { methods: ["GET"], path: "/long", handler: () => textResponse(200, long) },
    { methods: ["GET"], path: "/short", handler: () => textResponse(200, "short") },
  ];

  async function get(path: string, encoding: string, compressResponses = true) {
    const { port } = await startTestServer({ routes, compressResponses });
    const wire = await openWire(port);
    wire.write(
      `GET ${path} HTTP/1.1\r\nHost: a\r\nAccept-Encoding: ${encoding}\r\nConnection: close\r\n\r\n`,
    );
    const text = await wire.closed();
    const at = text.indexOf("\r\n\r\n");
    return {
      head: text.slice(0, at).toLowerCase(),
      body: Buffer.from(text.slice(at + 4), "latin1"),
    };
  }

  it("is done for who asks for it", async () => {
    const { head, body } = await get("/long", "deflate, gzip");
    expect(head).toContain("content-encoding: gzip");
    expect(head).toContain("vary: accept-encoding");
    expect(head).toContain(`content-length: ${body.length}`);
    expect(gunzipSync(body).toString()).toBe(long);
  });

  it.each([
    ["who does not ask", "/long", "identity", true],
    ["who refuses it", "/long", "gzip;q=0, identity", true],
    ["short answers", "/short", "gzip", true],
    ["anybody when it is switched off", "/long", "gzip", false],
  ])("is not done for %s", async (_name, path, encoding, compressResponses) => {
    const { head, body } = await get(path, encoding, compressResponses);
    expect(head).not.toContain("content-encoding");
    expect(body.toString()).toBe(path === "/long" ? long : "short");
  });

  it.each([
    ["gzip", true],
    ["GZIP;q=0.5", true],
    ["br, *", true],
    ["*;q=0", false],
    ["gzip;q=0.0, *", false],
    ["x-gzip2", false],
    ["", false],
    [undefined, false],
  ])("Accept-Encoding %j: %s", (header, want) => {
    expect(acceptsEncoding(header, "gzip")).toBe(want);
  });
});

describe("what observers are told", () => {
  it("how large request and answer were, as they were sent", async () => {
    const facts: RequestFacts[] = [];
    const pieces = [Buffer.from("one"), Buffer.from("three")];
    const routes: Route[] = [
      { methods: ["GET", "POST"], path: "/short", handler: () => textResponse(200, "short") },
      { methods: ["GET"], path: "/pieces", handler: () => ({ status: 200, body: pieces }) },
      { methods: ["GET"], path: "/none", handler: () => ({ status: 204 }) },
    ];
    const { port } = await startTestServer({ routes, onRequest: () => (fact) => facts.push(fact) });
    const wire = await openWire(port);
    for (const [line, rest] of [
      ["POST /short", "Content-Length: 5\r\n\r\nhello"],
      ["GET /short", "\r\n"],
      ["HEAD /short", "\r\n"],
      ["GET /none", "\r\n"],
      ["GET /pieces", "Connection: close\r\n\r\n"],
    ])
      wire.write(`${line} HTTP/1.1\r\nHost: a\r\n${rest}`);
    await wire.closed();
    expect(facts.map(({ requestBytes, responseBytes }) => [requestBytes, responseBytes])).toEqual([
      [5, 5],
      [undefined, 5],
      [undefined, 0],
      [undefined, 0],
      [undefined, 8],
    ]);
  });

  it("names the route, whatever the answer", async () => {
    const facts: RequestFacts[] = [];
    const values: Route = { ...echo, path: "/loki/api/v1/label/:name/values" };
    const named: Route = { ...echo, path: "/x", name: "its_name" };
    const { url } = await startTestServer({
      routes: [values, named],
      rawRoutes: new Map([["/loki/api/v1/push", push]]),
      pathPrefix: "/p",
      onRequest: () => (fact) => facts.push(fact),
    });
    const paths = [
      ["GET", "/p/loki/api/v1/label/a/values"],
      ["DELETE", "/p/loki/api/v1/label/a/values"],
      ["POST", "/p/x"],
      ["POST", "/p/loki/api/v1/push"],
      ["GET", "/p/loki/api/v1/push"],
      ["GET", "/nowhere"],
    ] as const;
    for (const [method, path] of paths) {
      const body = method === "POST" ? { body: "x" } : {};
      await ask(url + path, { method, ...body });
    }
    await stopTestServers();
    expect(facts.map(({ method, route, status }) => [method, route, status])).toEqual([
      ["GET", "loki_api_v1_label_name_values", 200],
      ["DELETE", "loki_api_v1_label_name_values", 405],
      ["POST", "its_name", 200],
      ["POST", "loki_api_v1_push", 200],
      ["GET", "loki_api_v1_push", 405],
      ["GET", "other", 404],
    ]);
    expect(facts.every(({ durationMs }) => durationMs >= 0)).toBe(true);
  });
});

describe("starting", () => {
  it("fails when the port is taken", async () => {
    const { port } = await startTestServer({});
    await expect(startTestServer({ port })).rejects.toThrow("EADDRINUSE");
  });
});
