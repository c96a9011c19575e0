import { afterEach, expect, it } from "@jest/globals";
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
