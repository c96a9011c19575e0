import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { expect, it } from "@jest/globals";
import { WebSocketServer } from "ws";
import { Client } from "./client.js";
import { tail } from "./tail.js";

it("says each time that a tail without lines was cut, and begins again with the shortest pause", async () => {
  const server = new WebSocketServer({ port: 0, host: "127.0.0.1" });
  await once(server, "listening");
  server.on("connection", (socket) => {
    socket.ping();
    socket.once("pong", () => socket.terminate());
  });
  const stop = new AbortController();
  const notes: string[] = [];
  const onNote = (text: string) => {
    notes.push(text);
    if (notes.length === 3) stop.abort();
  };
  const addr = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const connection = { addr, headers: {}, tls: undefined, proxy: undefined };
  const retries = { retries: 0, minBackoffMs: 0, maxBackoffMs: 0 };
  const client = new Client({ ...connection, ...retries }, stop.signal);
  const query = { query: "{}", fromNs: 0n, limit: 0, batch: 10, delaySeconds: 0, onNote };
  for await (const page of tail(client, query)) throw new Error(JSON.stringify(page));
  server.close();
  expect(notes).toEqual(Array(3).fill("the connection was lost; connecting again"));
});
