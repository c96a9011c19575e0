import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { afterEach, expect, it } from "@jest/globals";
import { makeLabels } from "@skald/model";
import { createLogger } from "@skald/runtime/log";
import { Metrics } from "@skald/runtime/metrics";
import type { Alert } from "../evaluate/alerting-rule.js";
import { Alertmanagers } from "./alertmanagers.js";

const servers: Server[] = [];

afterEach(() => {
  for (const server of servers.splice(0)) server.close();
});

/** A server that takes alerts; gives its port, the paths that were posted to, and the bodies. */
async function listen(): Promise<{ port: number; posted: string[]; bodies: string[] }> {
  const posted: string[] = [];
  const bodies: string[] = [];
  const server = createServer(async (request, response) => {
    posted.push(request.url ?? "");
    bodies.push(await text(request));
    response.end();
  });
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { port: (server.address() as AddressInfo).port, posted, bodies };
}

const alert: Alert = {
  ...{ labels: makeLabels([["alertname", "A"]]), annotations: makeLabels([]) },
  ...{ state: "firing", value: 1, activeAtMs: 0, firedAtMs: 0, validUntilMs: 0 },
  ...{ resolvedAtMs: undefined, keptSinceMs: undefined, lastSentMs: undefined },
};

function makeAlertmanagers(
  resolve: (name: string) => Promise<{ name: string; port: number }[]>,
  links = { externalUrl: "", datasourceUid: "" },
) {
  const lines: string[] = [];
  const managers = new Alertmanagers({
    options: {
      urls: ["http://_http._tcp.am.example/base"],
      discovers: true,
      refreshMs: 5,
      capacity: 10,
      connection: { headers: {}, timeoutMs: 5000, credentials: {} },
      relabel: (labels) => labels,
      externalLabels: {},
      ...links,
    },
    log: createLogger({ target: { write: (line) => lines.push(line) } }),
    metrics: new Metrics(),
    resolve: async (name) =>
      (await resolve(name)).map((one) => ({ ...one, priority: 0, weight: 0 })),
  });
  return { managers, lines };
}

it("sends to each Alertmanager that the SRV record of a name has, as it has them now", async () => {
  const [first, second] = [await listen(), await listen()];
  const asked: string[] = [];
  let ports = [first.port];
  const { managers } = makeAlertmanagers(async (name) => {
    asked.push(name);
    return ports.map((port) => ({ name: "127.0.0.1", port }));
  });
  await managers.start();
  while (first.posted.length === 0) {
    managers.send("vector(1)", [alert]);
    await new Promise((resolve) => setImmediate(resolve));
  }
  expect(second.posted).toEqual([]);
  ports = [second.port];
  while (second.posted.length === 0) {
    managers.send("vector(1)", [alert]);
    await new Promise((resolve) => setImmediate(resolve));
  }
  await managers.stop();
  expect(new Set([...asked])).toEqual(new Set(["_http._tcp.am.example"]));
  expect(new Set([...first.posted, ...second.posted])).toEqual(new Set(["/base/api/v2/alerts"]));
});

it.each([
  ["", { type: "loki" }],
  ["abc", { type: "loki", uid: "abc" }],
])("links alerts to Explore with the data source %j", async (datasourceUid, datasource) => {
  const { port, bodies } = await listen();
  const resolve = async () => [{ name: "127.0.0.1", port }];
  const { managers } = makeAlertmanagers(resolve, {
    ...{ externalUrl: "http://grafana.example/", datasourceUid },
  });
  await managers.start();
  while (bodies.length === 0) {
    managers.send("vector(1) > 0", [alert]);
    await new Promise((next) => setImmediate(next));
  }
  await managers.stop();
  const [{ generatorURL }] = JSON.parse(bodies[0] ?? "") as [{ generatorURL: string }];
  const url = new URL(generatorURL);
  expect(`${url.origin}${url.pathname}`).toBe("http://grafana.example/explore");
  expect(JSON.parse(url.searchParams.get("left") ?? "")).toEqual({
    queries: [{ expr: "vector(1) > 0", queryType: "range", datasource }],
  });
});

it("keeps those it knows while the name cannot be looked up", async () => {
  const { port, posted } = await listen();
  let asked = 0;
  const { managers, lines } = makeAlertmanagers(async () => {
    if (asked++ > 0) throw new Error("no such name");
    return [{ name: "127.0.0.1", port }];
  });
  await managers.start();
  while (asked < 3) await new Promise((resolve) => setImmediate(resolve));
  while (posted.length === 0) {
    managers.send("vector(1)", [alert]);
    await new Promise((resolve) => setImmediate(resolve));
  }
  await managers.stop();
  expect(lines.join("")).toContain("alertmanagers cannot be looked up; those known stay");
});
