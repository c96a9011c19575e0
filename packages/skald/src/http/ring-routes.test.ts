import { beforeAll, expect, it } from "@jest/globals";
import { Lifecycler, MemoryRingStore, Ring } from "@skald/ring";
import { silentLogger } from "@skald/runtime/log";
import type { HttpRequest } from "@skald/transport";
import { ringRoutes } from "./ring-routes.js";

const store = new MemoryRingStore();
const log = silentLogger();
const options = { store, name: "ring", replicas: 1, heartbeatTimeoutMs: 60_000, pollMs: 5000, log };
const ring = new Ring(options);
const routes = ringRoutes({ path: "/ring", title: "A <ring>", ring });

beforeAll(async () => {
  for (const id of ["a", "b<i>"]) {
    const own = new Ring(options);
    const member = { store, ring: own, id, address: "10.0.0.1:9095", zone: "z", heartbeatMs: 0 };
    const lifecycler = new Lifecycler({ ...member, tokens: 4, settleMs: 0, log });
    await lifecycler.start();
    await lifecycler.join(new AbortController().signal);
  }
  await ring.refresh();
});

function ask(method: string, params = "", accept = "") {
  const route = routes.find((one) => one.methods.includes(method));
  const request: HttpRequest = {
    ...{ method, path: "/ring", variables: {}, headers: { accept } },
    params: new URLSearchParams(params),
    body: new Uint8Array(0),
    signal: new AbortController().signal,
  };
  return route?.handler(request);
}

it("shows a page that a person can read", async () => {
  const page = await ask("GET");
  expect(page?.headers?.["content-type"]).toBe("text/html; charset=utf-8");
  const html = String(page?.body);
  for (const text of [
    "A &lt;ring&gt;",
    "ACTIVE",
    "10.0.0.1:9095",
    "b&lt;i&gt;",
    "0s ago",
    "50.00%",
  ])
    expect(html).toContain(text);
  expect(html).toContain('<button name="forget" value="a" type="submit">');
  expect(html).not.toContain("<i>");
  expect(html).not.toContain('class="tokens"');
  expect(String((await ask("GET", "tokens=true"))?.body)).toContain('class="tokens"');
});

it("answers JSON to those who accept it", async () => {
  const page = await ask("GET", "", "application/json");
  expect(page?.headers?.["content-type"]).toBe("application/json");
  const { shards, now } = JSON.parse(String(page?.body));
  expect(now).toMatch(/^\d{4}-\d\d-\d\dT.*Z$/);
  expect(shards).toHaveLength(2);
  expect(shards[0]).toEqual({
    id: "a",
    state: "ACTIVE",
    address: "10.0.0.1:9095",
    timestamp: expect.stringMatching(/Z$/),
    registered_timestamp: expect.stringMatching(/Z$/),
    read_only: false,
    read_only_updated_timestamp: "0001-01-01T00:00:00Z",
    zone: "z",
    tokens: expect.any(Array),
  });
  expect(shards[0].tokens).toHaveLength(4);
});

it("forgets by POST, and answers the same for an unknown name", async () => {
  for (const id of ["b<i>", "nobody"]) {
    const answer = await ask("POST", `forget=${encodeURIComponent(id)}`);
    expect([answer?.status, answer?.headers?.location]).toEqual([302, "#"]);
  }
  expect(ring.view.instances.map(({ id }) => id)).toEqual(["a"]);
  expect((await store.read("ring")).has("nobody")).toBe(false);
});
