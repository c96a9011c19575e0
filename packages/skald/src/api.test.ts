import { request } from "node:http";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { type Endpoint, everyTarget, wholeApi } from "./index.js";
import { startProcess, type TestProcess } from "./testing/start-process.js";

const api = wholeApi();
/** Those that end the process come last. */
const inOrder = [...api].sort(
  (a, b) => Number(a.docs?.ends ?? false) - Number(b.docs?.ends ?? false),
);

let server: TestProcess;

beforeAll(async () => {
  server = await startProcess([
    ...[everyTarget, "-server.profiles-enabled", "-pattern-ingester.enabled", "-auth.enabled"],
  ]);
});

afterAll(async () => {
  await server.stop();
});

it("says of each endpoint what is to be known about it", () => {
  expect(api.filter(({ docs }) => docs === undefined)).toEqual([]);
});

it("names each variable of a path, and each parameter once", () => {
  for (const { paths, docs } of api) {
    const names = (docs?.params ?? []).map(({ name }) => name);
    expect(new Set(names).size).toBe(names.length);
    for (const path of paths)
      for (const [, name] of path.matchAll(/:(\w+)/g)) expect(names).toContain(name);
  }
});

it("has each published name under that of the reference, too", () => {
  const all = new Set(api.flatMap(({ paths }) => paths));
  const other = (path: string) =>
    path
      .replace(/^\/service\//, "/loki/")
      .replace(/^\/compat\//, "/prometheus/")
      .replace(/^\/api\/legacy\//, "/api/prom/");
  for (const path of all) expect(all).toContain(other(path));
});

it("serves the published names alone if told so", async () => {
  const strict = await startProcess(["-server.reference-paths-enabled=false"]);
  const ask = async (path: string) => (await fetch(`${strict.url}${path}`)).status;
  const paths = [
    "/service/api/v1/labels",
    "/loki/api/v1/labels",
    "/api/prom/label",
    "/debug/pprof/heap",
  ];
  expect(await Promise.all(paths.map(ask))).toEqual([200, 404, 404, 404]);
  await strict.stop();
});

describe("a page of another origin", () => {
  /** Those whose GET changes something. */
  const actions = ["/flush", "/ingester/shutdown", "/ingester/flush_shutdown"];
  const changes = api.flatMap(({ methods, paths }) =>
    paths.flatMap((path) =>
      methods
        .filter((method) => method !== "GET" || actions.includes(path))
        .map((method) => [method, path] as const),
    ),
  );

  it.each(changes)("may not have a browser send %s %s", async (method, path) => {
    const headers = { "sec-fetch-site": "cross-site", "x-scope-orgid": "t" };
    const response = await fetch(`${server.url}${path}`, { method, headers });
    expect([response.status, await response.text()]).toEqual([
      403,
      'a page of "another site" may not do this; allow it with ui.allowed_origins\n',
    ]);
  });

  it("may not open a tail", async () => {
    const url = `${server.url}/loki/api/v1/tail?query={a="b"}`;
    const headers = { origin: "http://evil.example", connection: "upgrade", upgrade: "websocket" };
    const status = await new Promise((resolve) => {
      request(url, { headers }, (response) => resolve(response.statusCode)).end();
    });
    expect(status).toBe(403);
  });
});

describe("examples", () => {
  const cases = inOrder.flatMap((endpoint) =>
    endpoint.paths
      // Only once can a process be ended.
      .slice(0, endpoint.docs?.ends ? 1 : undefined)
      .map((path) => [`${methodOf(endpoint)} ${path}`, endpoint, path] as const),
  );
  const ending = cases.filter(([, { docs }]) => docs?.ends);
  const others = cases.filter(([, { docs }]) => !docs?.ends);

  it.each(others)("%s", async (_name, endpoint, path) => {
    expect(await ask(endpoint, path)).toEqual(wanted(endpoint));
  });

  it.each(ending)("%s", async (_name, endpoint, path) => {
    const before = server;
    server = await startProcess(["-auth.enabled"]);
    expect(await ask(endpoint, path)).toEqual(wanted(endpoint));
    await server.stop();
    server = before;
  });
});

function methodOf({ methods, docs }: Endpoint): string {
  return docs?.example.method ?? (methods[0] as string);
}

function wanted({ docs }: Endpoint) {
  return {
    status: docs?.example.status,
    text: expect.stringContaining(docs?.example.contains ?? ""),
  };
}

/** Sends the example of an endpoint to one of its names. */
async function ask(endpoint: Endpoint, path: string): Promise<{ status: number; text: string }> {
  const { example } = endpoint.docs as NonNullable<Endpoint["docs"]>;
  const { params = {}, variables = {}, headers = {}, body } = example;
  const filled = path.replace(/:(\w+)/g, (_, name: string) => variables[name] ?? name);
  const response = await fetch(`${server.url}${filled}?${new URLSearchParams(params)}`, {
    method: methodOf(endpoint),
    headers: { ...headers, "x-scope-orgid": "shop" },
    redirect: "manual",
    ...(body === undefined ? {} : { body: body.replaceAll("$NOW", `${Date.now()}000000`) }),
  });
  return { status: response.status, text: await response.text() };
}
