import { afterEach, expect, it } from "@jest/globals";
import { SkaldError } from "@skald/model";
import { WebSocket } from "ws";
import { startTestServer, stopTestServers } from "./testing/server.js";
import type { SocketRoute } from "./websocket.js";

afterEach(stopTestServers);

/** Says which tenant it was opened for. */
const whose: SocketRoute = {
  path: "/tail",
  open: ({ headers }) => {
    const tenant = String(headers["x-scope-orgid"]);
    return async (socket) => void (await socket.send(Buffer.from(tenant)));
  },
};

const encoded = (tenant: string) => `skald.tenant.${Buffer.from(tenant).toString("base64url")}`;

it.each([
  ["a subprotocol", [encoded("shop/ü")], {}, "shop/ü"],
  ["one of several", ["other", encoded("a")], {}, "a"],
  ["the header, which wins", [encoded("a")], { "x-scope-orgid": "b" }, "b"],
  ["nothing", [], {}, "undefined"],
  ["no such subprotocol", ["skald.tenant."], {}, "undefined"],
])("takes the tenant of a WebSocket from %s", async (_, protocols, headers, want) => {
  const { url } = await startTestServer({ socketRoutes: [whose] });
  const client = new WebSocket(`${url.replace("http", "ws")}/tail`, protocols, { headers });
  const text = await new Promise<string>((resolve, reject) => {
    client.once("message", (data) => resolve(String(data)));
    client.once("error", reject);
  });
  expect(text).toBe(want);
  // The first that is asked for is echoed, or a browser would end the connection.
  expect(client.protocol).toBe(protocols[0] ?? "");
  client.terminate();
});

it("ends a WebSocket whose sender may not open it any more, and no other", async () => {
  const open: SocketRoute = {
    path: "/tail",
    open: () => (socket) =>
      new Promise((resolve) => socket.signal.addEventListener("abort", () => resolve())),
  };
  let refused: string | undefined;
  let error = new SkaldError("rate_limited", "too many passwords");
  const { server, url } = await startTestServer({
    socketRoutes: [open],
    authorize: async ({ authorization }, path) => {
      if (path === "/tail" && authorization === refused) throw error;
    },
  });
  const connect = async (authorization: string) => {
    const client = new WebSocket(`${url.replace("http", "ws")}/tail`, {
      headers: { authorization },
    });
    await new Promise((resolve) => client.once("open", resolve));
    return client;
  };
  const [a, b] = [await connect("a"), await connect("b")];
  const closed = new Promise((resolve) =>
    a.once("close", (code, reason) => resolve([code, String(reason)])),
  );
  refused = "a";
  await server.authorizeAgain();
  error = new SkaldError("unauthenticated", "user a may not do this", { status: 403 });
  await server.authorizeAgain();
  expect(await closed).toEqual([1008, "user a may not do this"]);
  expect(b.readyState).toBe(WebSocket.OPEN);
  b.terminate();
});
