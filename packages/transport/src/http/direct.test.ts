import { afterEach, describe, expect, it } from "@jest/globals";
import { SkaldError } from "@skald/model";
import { readBody } from "./body.js";
import type { DirectHandler } from "./direct.js";
import { endResponse } from "./end-response.js";
import { readPlainHead } from "./plain-head.js";
import type { RequestFacts } from "./router.js";
import type { FailedRequest, RawHandler } from "./server.js";
import { makeGate, openWire, startTestServer, stopTestServers } from "./testing/server.js";

afterEach(stopTestServers);

/** Says which way a request went. */
function pushWith(direct: DirectHandler): ReadonlyMap<string, RawHandler> {
  const usual: RawHandler = async (request, response) => {
    const body = await readBody(request, 1000);
    endResponse(response, Buffer.from(`usual ${body.length}`));
  };
  return new Map([["/push", Object.assign(usual, { direct, maxDirectBytes: 500 })]]);
}

const says: DirectHandler = async ({ headers, body }) => ({
  status: 200,
  headers: { "content-type": "text/plain" },
  body: `direct ${body.length} ${headers.get("x-scope-orgid") ?? ""}`,
});

function request(body: string, headers: readonly string[] = [], line = "POST /push HTTP/1.1") {
  const length = `Content-Length: ${body.length}`;
  return `${[line, "Host: a", length, ...headers].join("\r\n")}\r\n\r\n${body}`;
}

describe("a small push", () => {
  it("is answered without the usual server, and so is the next one of its connection", async () => {
    const facts: RequestFacts[] = [];
    const onRequest = () => (fact: RequestFacts) => facts.push(fact);
    const { port } = await startTestServer({ rawRoutes: pushWith(says), onRequest });
    const wire = await openWire(port);
    wire.write(request("abc", ["X-Scope-OrgID:  t1 "]));
    await wire.until("direct 3 t1");
    expect(wire.received().replace(/Date: .* GMT/, "Date: D")).toBe(
      "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 11\r\nDate: D\r\nConnection: keep-alive\r\nKeep-Alive: timeout=60\r\n\r\ndirect 3 t1",
    );
    wire.write(request("abcd", ["Connection: Keep-Alive"]));
    await wire.until("direct 4");
    expect(facts).toEqual([
      {
        method: "POST",
        route: "push",
        status: 200,
        durationMs: expect.any(Number),
        requestBytes: 3,
        responseBytes: 11,
      },
      {
        method: "POST",
        route: "push",
        status: 200,
        durationMs: expect.any(Number),
        requestBytes: 4,
        responseBytes: 9,
      },
    ]);
  });

  it("may come in pieces, and several ahead of their answers", async () => {
    const gate = makeGate();
    let served = 0;
    const direct: DirectHandler = async (push) => {
      if (served++ === 0) await gate.wait();
      return says(push);
    };
    const { port } = await startTestServer({ rawRoutes: pushWith(direct) });
    const wire = await openWire(port);
    const text = request("abcdef");
    wire.write(text.slice(0, -3));
    await new Promise((resolve) => setImmediate(resolve));
    wire.write(
      text.slice(-3) + request("1") + request("22") + request("", [], "GET /none HTTP/1.1"),
    );
    await gate.entered;
    expect(wire.received()).toBe("");
    gate.open();
    await wire.until("404");
    const answers = [...wire.received().matchAll(/direct \d|HTTP\/1.1 404/g)].map(
      ([found]) => found,
    );
    expect(answers).toEqual(["direct 6", "direct 1", "direct 2", "HTTP/1.1 404"]);
  });

  it.each<[string, string]>([
    ["with a query string", request("abc", [], "POST /push?a=b HTTP/1.1")],
    ["with a header twice", request("abc", ["A: 1", "a: 2"])],
    ["that wants to be asked on", request("abc", ["Expect: 100-continue"])],
    ["that ends its connection", request("abc", ["Connection: close"])],
    [
      "in chunks",
      "POST /push HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
    ],
    ["that is large", request("x".repeat(501))],
    ["with a wide space in a value", request("abc", ["A: \u00a0"])],
    ["in many pieces", request("x".repeat(400))],
  ])("%s goes the usual way", async (name, text) => {
    const { port } = await startTestServer({ rawRoutes: pushWith(says) });
    const wire = await openWire(port);
    wire.write(request("before"));
    await wire.until("direct 6");
    if (name !== "in many pieces") wire.write(text);
    else
      for (let at = 0; at < text.length; at += 40) {
        wire.write(text.slice(at, at + 40));
        await new Promise((resolve) => setImmediate(resolve));
      }
    await wire.until("usual");
    if (name === "that ends its connection") return;
    wire.write(request("after"));
    await wire.until("usual 5");
  });

  it.each<[string, string, string]>([
    ["without a host", "POST /push HTTP/1.1\r\nContent-Length: 1\r\n\r\na", "400 Bad Request"],
    ["with space before a colon", request("a", ["A : 1"]), "400 Bad Request"],
    [
      "with a length that is none",
      request("a", []).replace("Length: 1", "Length: 1x"),
      "400 Bad Request",
    ],
    ["with a folded header", request("a", ["A: 1", " 2"]), "400 Bad Request"],
    ["of an old version", request("a", [], "POST /push HTTP/1.0"), "usual 1"],
  ])("%s is for the usual server to judge", async (_, text, want) => {
    const { port } = await startTestServer({ rawRoutes: pushWith(says) });
    const wire = await openWire(port);
    wire.write(text);
    await wire.until(want);
  });

  it("whose handler throws is answered as those of the usual way", async () => {
    const failures: unknown[] = [];
    const errors = [
      new SkaldError("rate_limited", "slow down", { retryAfterSeconds: 7 }),
      new Error("secret"),
    ];
    const direct: DirectHandler = () => Promise.reject(errors.shift());
    const onError = (error: unknown, { method, url }: FailedRequest) =>
      failures.push([error, method, url]);
    const { port } = await startTestServer({ rawRoutes: pushWith(direct), onError });
    const wire = await openWire(port);
    wire.write(request("a"));
    await wire.until("slow down\n");
    expect(wire.received()).toMatch(/^HTTP\/1.1 429 [\s\S]*retry-after: 7\r\n/);
    wire.write(request("b"));
    await wire.until("HTTP/1.1 500 Internal Server Error");
    expect(wire.received()).not.toContain("secret");
    expect(failures).toEqual([[new Error("secret"), "POST", "/push"]]);
  });

  it("is answered after its client has sent all that it will", async () => {
    const gate = makeGate();
    const direct: DirectHandler = async (push) => {
      await gate.wait();
      return says(push);
    };
    const { port } = await startTestServer({ rawRoutes: pushWith(direct) });
    const wire = await openWire(port);
    wire.write(request("abc"));
    wire.socket.end();
    await gate.entered;
    await new Promise((resolve) => setImmediate(resolve));
    gate.open();
    expect(await wire.closed()).toContain("direct 3");
  });

  it("counts as 499 when its client leaves, midway or before the answer", async () => {
    const gate = makeGate();
    const statuses: number[] = [];
    let told: () => void = () => undefined;
    const both = new Promise<void>((resolve) => {
      told = resolve;
    });
    const onRequest =
      () =>
      ({ status }: RequestFacts) => {
        if (statuses.push(status) === 2) told();
      };
    const direct: DirectHandler = async (push) => {
      await gate.wait();
      return says(push);
    };
    const { port } = await startTestServer({ rawRoutes: pushWith(direct), onRequest });
    const [half, whole] = [await openWire(port), await openWire(port)];
    half.write(request("abc").slice(0, -1));
    whole.write(request("abc"));
    await gate.entered;
    half.socket.destroy();
    const left = new Promise((resolve) => whole.socket.once("close", resolve));
    whole.socket.resetAndDestroy();
    await left;
    while (statuses.length === 0) await new Promise((resolve) => setImmediate(resolve));
    gate.open();
    await both;
    expect(statuses).toEqual([499, 499]);
  });

  it("ends its connection when the server stops", async () => {
    const gate = makeGate();
    const direct: DirectHandler = async (push) => {
      await gate.wait();
      return says(push);
    };
    const options = { rawRoutes: pushWith(direct), gracefulShutdownMs: 60_000 };
    const { port, server } = await startTestServer(options);
    const [busy, idle] = [await openWire(port), await openWire(port)];
    busy.write(request("abc"));
    await gate.entered;
    const stopped = server.stop();
    await idle.closed();
    gate.open();
    expect(await busy.closed()).toMatch(/Connection: close\r\n\r\ndirect 3/);
    await stopped;
  });
});

describe("readPlainHead", () => {
  it("knows where head and body are", () => {
    const bytes = Buffer.from(request("abc", ["X-A: \t1\u00e9 "]), "latin1");
    const head = readPlainHead(bytes);
    expect(head).toMatchObject({ path: "/push", bodyBytes: 3, headBytes: bytes.length - 3 });
    expect(head?.headers.get("x-a")).toBe("1\u00e9");
  });

  it("leaves alone what is not all there", () => {
    expect(readPlainHead(Buffer.from("POST /push HTTP/1.1\r\nHost: a\r\n"))).toBeUndefined();
  });
});
