import { afterEach, expect, it } from "@jest/globals";
import { mutate, type Random, seededRandom, testRuns, testSeed } from "@skald/testkit";
import { readBody } from "./body.js";
import type { DirectRequest } from "./direct.js";
import { endResponse } from "./end-response.js";
import type { RawHandler } from "./server.js";
import { openWire, startTestServer, stopTestServers } from "./testing/server.js";

afterEach(stopTestServers);

const maxBytes = 500;

/** A route, and all that came to it whole. */
function recorder() {
  const seen: string[] = [];
  let direct = 0;
  const note = (headers: Iterable<readonly [string, unknown]>, body: Uint8Array): string => {
    const sorted = [...headers].sort(([a], [b]) => (a < b ? -1 : 1));
    seen.push(JSON.stringify([sorted, Buffer.from(body).toString("latin1")]));
    return `number ${seen.length}`;
  };
  const usual: RawHandler = async (request, response) => {
    const body = await readBody(request, maxBytes);
    const answer = note(Object.entries(request.headers), body);
    endResponse(response, Buffer.from(answer));
  };
  const handler = Object.assign(usual, {
    direct: async ({ headers, body }: DirectRequest) => {
      direct++;
      return { status: 200, body: note(headers, body) };
    },
  });
  return { handler, take: () => seen.splice(0), direct: () => direct };
}

const lines = ["POST /push", "POST /push", "POST /push", "POST /push?a=b", "GET /push", "POST /x"];
const odd = [
  ["Expect: 100-continue"],
  ["Connection: close"],
  ["A: 1", "a: 2"],
  ["A : 1"],
  ["A: 1", " folded"],
  ["Transfer-Encoding: chunked"],
  ["Content-Length: 2"],
  ["Content-Length: 5"],
  ["Upgrade: websocket", "Connection: Upgrade"],
  ["X-Scope-OrgID: \u00e9"],
  ["Empty:"],
];

function requestOf(random: Random): string {
  const body = "x".repeat(random(8) === 0 ? 495 + random(10) : random(40));
  const headers = ["Host: a", `Content-Length: ${body.length}`, "X-Scope-OrgID:  t1\t"];
  if (random(3) === 0) headers.push(...odd[random(odd.length)]!);
  if (random(12) === 0) headers.splice(random(headers.length), 1);
  const version = random(20) === 0 ? "HTTP/1.0" : "HTTP/1.1";
  return `${lines[random(lines.length)]} ${version}\r\n${headers.join("\r\n")}\r\n\r\n${body}`;
}

/** Plain requests, that come at one go, and then any one in pieces. */
function connectionOf(random: Random): { readonly plain: number; readonly pieces: string[] } {
  const bytes = Buffer.from(requestOf(random), "latin1");
  const sent = random(3) === 0 ? Buffer.from(mutate(bytes, random)) : bytes;
  const pieces: string[] = [];
  for (let at = 0; at < sent.length; ) {
    const end = at + 1 + random(random(2) === 0 ? 20 : 600);
    pieces.push(sent.subarray(at, end).toString("latin1"));
    at = end;
  }
  return { plain: random(3), pieces };
}

/** Sends it, and waits until the server has closed. */
async function send(port: number, { plain, pieces }: ReturnType<typeof connectionOf>) {
  const wire = await openWire(port);
  const request = (body: number) =>
    `POST /push HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\n${body}`;
  wire.write(Array.from({ length: plain }, (_, i) => request(i)).join(""));
  if (plain > 0) await wire.until(`number ${plain}`);
  for (const piece of pieces) {
    wire.write(piece);
    await new Promise((resolve) => setImmediate(resolve));
  }
  wire.socket.end();
  await wire.closed();
}

it("whatever comes, what is served is what the usual server would serve", async () => {
  const one = recorder();
  const other = recorder();
  const take = { maxDirectBytes: maxBytes };
  const fast = await startTestServer({
    rawRoutes: new Map([["/push", Object.assign(one.handler, take)]]),
  });
  const slow = await startTestServer({
    rawRoutes: new Map([["/push", (...call) => other.handler(...call)]]),
  });
  const random = seededRandom(testSeed());
  for (let run = testRuns(400); run > 0; run--) {
    const sent = connectionOf(random);
    await Promise.all([send(fast.port, sent), send(slow.port, sent)]);
    expect({ sent, served: one.take() }).toEqual({ sent, served: other.take() });
  }
  expect(one.direct()).toBeGreaterThan(testRuns(400) / 2);
});
