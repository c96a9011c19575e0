import { rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { getJson, nowNs, pushJson, queryLines, queryStreams } from "./testing/client.js";
import { makeFolder, removeFolders, startServer, type TestServer } from "./testing/server.js";

let server: TestServer;
const flags = ["-auth.enabled=true", "-store.max-query-length=0s"];

/** Similar names: they differ in case, by a prefix, or in characters that a wrong escape would merge. */
const tenants = [
  "a",
  "A",
  "aa",
  "a.b",
  "a-b",
  "a_b",
  "a'(b)*!",
  "..a",
  "b".repeat(151),
  "b".repeat(200),
  "b".repeat(201),
  "b".repeat(768),
];
const short = (tenant: string) => (tenant.length > 20 ? `${tenant[0]} * ${tenant.length}` : tenant);

beforeAll(async () => {
  server = await startServer(makeFolder(), flags);
  for (const tenant of tenants) {
    const labels = {
      app: "shared",
      owner: short(tenant),
      [`only_${tenants.indexOf(tenant)}`]: "x",
    };
    const values = [[nowNs(), `secret of ${short(tenant)}`]] as const;
    expect(await pushJson(server.url, labels, values, as(tenant))).toBe(204);
  }
});

afterAll(async () => {
  await server.kill("SIGTERM");
  await removeFolders();
});

function as(tenant: string): Record<string, string> {
  return { "x-scope-orgid": tenant };
}

async function status(path: string, headers: Record<string, string>, init: RequestInit = {}) {
  const response = await fetch(server.url + path, { ...init, headers });
  return { status: response.status, text: await response.text() };
}

/** Checks that the lines, streams and labels that a tenant sees are its own. */
async function expectOwnDataOnly(tenant: string): Promise<void> {
  const own = `secret of ${short(tenant)}`;
  const headers = as(tenant);
  // The store is listed by day for up to forty days, and by tenant for more.
  const days = { start: `${BigInt(nowNs()) - 60n * 86_400_000_000_000n}` };
  for (const query of ['{app="shared"}', '{app=~".+"}', '{app!="", owner=~".*"}']) {
    expect(await queryLines(server.url, query, {}, headers)).toEqual([own]);
    expect(await queryLines(server.url, query, days, headers)).toEqual([own]);
  }
  const owners = { data: [short(tenant)] };
  const api = "/loki/api/v1";
  expect(await getJson(server.url, `${api}/label/owner/values`, {}, headers)).toMatchObject(owners);
  expect(await getJson(server.url, "/api/prom/label/owner/values", {}, headers)).toMatchObject(
    owners,
  );
  const names = await getJson<{ data: string[] }>(server.url, `${api}/labels`, {}, headers);
  expect(names.data).toEqual(
    ["app", `only_${tenants.indexOf(tenant)}`, "owner", "service_name"].sort(),
  );
  const series = await getJson<{ data: { owner: string }[] }>(
    server.url,
    `${api}/series`,
    { "match[]": '{app=~".+"}' },
    headers,
  );
  expect(series.data.map(({ owner }) => owner)).toEqual([short(tenant)]);
  const count = await getJson<{ data: { result: { metric: object; value: [number, string] }[] } }>(
    server.url,
    `${api}/query`,
    { query: 'sum by (owner) (count_over_time({app="shared"}[1h]))' },
    headers,
  );
  expect(count.data.result.map(({ metric, value }) => [metric, value[1]])).toEqual([
    [{ owner: short(tenant) }, "1"],
  ]);
}

describe("a tenant", () => {
  it.each(tenants.map((tenant) => [short(tenant), tenant]))(
    "sees only its own data in memory: %s",
    (_name, tenant) => expectOwnDataOnly(tenant),
  );

  it("may carry metadata behind its name", async () => {
    const found = await queryLines(server.url, '{app="shared"}', {}, as("a:source=x/y"));
    expect(found).toEqual(["secret of a"]);
  });

  it("that never pushed sees nothing", async () => {
    expect(await queryLines(server.url, '{app=~".+"}', {}, as("nobody"))).toEqual([]);
    const names = await getJson<{ data?: string[] }>(
      server.url,
      "/loki/api/v1/labels",
      {},
      as("nobody"),
    );
    expect(names.data ?? []).toEqual([]);
  });

  it("cannot be chosen by a label or a parameter", async () => {
    const query = '{app="shared", __tenant_id__="A"}';
    expect(await queryLines(server.url, query, {}, as("a"))).toEqual([]);
    const found = await queryLines(
      server.url,
      '{app="shared"}',
      { "X-Scope-OrgID": "A", tenant: "A" },
      as("a"),
    );
    expect(found).toEqual(["secret of a"]);
  });
});

describe("several tenants, unless it is allowed", () => {
  it("cannot be queried together; one named twice can", async () => {
    const path = "/loki/api/v1/query_range?query={app=%22x%22}";
    expect(await status(path, as("a|b"))).toEqual({
      status: 400,
      text: "multiple org IDs present",
    });
    expect((await status(path, as("a|a"))).status).toBe(200);
  });
});

describe("after everything went to the store and the local disk was lost", () => {
  beforeAll(async () => {
    expect(await server.kill("SIGTERM")).toBe(0);
    for (const name of ["ingester", "wal"]) rmSync(join(server.folder, name), { recursive: true });
    const several = "-querier.multi-tenant-queries-enabled=true";
    server = await startServer(server.folder, [...flags, several]);
  });

  it.each(tenants.map((tenant) => [short(tenant), tenant]))(
    "a tenant sees only its own data: %s",
    (_name, tenant) => expectOwnDataOnly(tenant),
  );
});

describe("several tenants, as it is allowed now", () => {
  it("are queried together, each named", async () => {
    const streams = await queryStreams(server.url, '{app="shared"}', {}, as("aa|a"));
    const found = streams
      .map(({ stream, values }) => [stream.__tenant_id__, values[0]?.[1]])
      .sort();
    expect(found).toEqual([
      ["a", "secret of a"],
      ["aa", "secret of aa"],
    ]);
  });

  it("can be told apart by their label", async () => {
    const query = '{app="shared", __tenant_id__=~"a."}';
    expect(await queryLines(server.url, query, {}, as("aa|a|A"))).toEqual(["secret of aa"]);
    type Series = { data: readonly Record<string, string>[] };
    const path = "/loki/api/v1/series";
    const { data } = await getJson<Series>(server.url, path, { "match[]": query }, as("aa|a|A"));
    expect(data.map((labels) => labels.__tenant_id__)).toEqual(["aa"]);
  });

  it("keep a label of a stream that has the name of the tenant's under another name", async () => {
    const stream = { app: "own", __tenant_id__: "mine" };
    const body = JSON.stringify({ streams: [{ stream, values: [[nowNs(), "x"]] }] });
    const json = { "content-type": "application/json", ...as("a") };
    const pushed = await status("/loki/api/v1/push", json, { method: "POST", body });
    expect(pushed.status).toBe(204);
    const query = '{original___tenant_id__="mine"} | original___tenant_id__="mine"';
    expect(await queryLines(server.url, query, {}, as("aa|a"))).toEqual(["x"]);
    const { data } = await getJson<{ data: readonly object[] }>(
      server.url,
      "/loki/api/v1/series",
      { "match[]": '{original___tenant_id__="mine"}' },
      as("aa|a"),
    );
    expect(data).toMatchObject([
      { __tenant_id__: "a", original___tenant_id__: "mine", app: "own" },
    ]);
  });

  it("cannot push", async () => {
    const body = JSON.stringify({ streams: [{ stream: { app: "x" }, values: [[nowNs(), "x"]] }] });
    const init = { method: "POST", body };
    const headers = { "content-type": "application/json", ...as("a|aa") };
    expect(await status("/loki/api/v1/push", headers, init)).toEqual({
      status: 400,
      text: "multiple org IDs present\n",
    });
    expect((await status("/loki/api/v1/push", { ...headers, ...as("z|z") }, init)).status).toBe(
      204,
    );
    expect(await queryLines(server.url, '{app="x"}', {}, as("aa"))).toEqual([]);
  });
});

describe("a bad tenant header", () => {
  const paths = [
    "/loki/api/v1/query_range?query={app=%22shared%22}",
    "/loki/api/v1/query?query=count_over_time({app=%22shared%22}[1h])",
    "/loki/api/v1/labels",
    "/loki/api/v1/label/owner/values",
    "/loki/api/v1/series?match[]={app=%22shared%22}",
    "/api/prom/label",
  ];

  it.each([
    ["none", {}, 401, /^no org id\n$/],
    ["an empty one", as(""), 401, /^no org id\n$/],
    ["only bars", as("||"), 401, /^no org id\n$/],
    ["a path", as("../a"), 400, /unsupported character '\/'/],
    ["the directory above", as(".."), 400, /^tenant ID is '\.' or '\.\.'/],
    ["a space", as("a b"), 400, /unsupported character ' '/],
    ["two names with a comma", as("a,A"), 400, /unsupported character ','/],
    ["too long a one", as("b".repeat(769)), 400, /^tenant ID is too long: max 768/],
    ["a hundred thousand", as("|".repeat(100_000)), 401, /^no org id/],
    ["too many", as(Array.from({ length: 2000 }, (_, i) => `t${i}`).join("|")), 400, /^more than/],
  ])("%s is refused everywhere", async (_name, headers, code, text) => {
    for (const path of paths) {
      const answer = await status(path, headers);
      expect([path, answer.status]).toEqual([path, code]);
      expect(answer.text).toMatch(text);
      expect(answer.text).not.toContain("secret");
    }
    const push = await status(
      "/loki/api/v1/push",
      { "content-type": "application/json", ...headers },
      { method: "POST", body: '{"streams":[]}' },
    );
    expect(push.status).toBe(code);
    expect(push.text).toMatch(text);
    expect(push.text).toMatch(/\n$/);
  });

  it("does no harm where no tenant is needed", async () => {
    for (const path of ["/ready", "/metrics", "/services", "/config", "/log_level"])
      expect((await status(path, as("../a"))).status).toBe(200);
  });
});
