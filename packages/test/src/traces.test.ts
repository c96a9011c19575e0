import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { Cluster } from "./testing/cluster.js";
import { type CollectedSpan, Collector } from "./testing/collector.js";
import {
  makeFolder,
  removeFolders,
  type StartOptions,
  startServer,
  type TestServer,
  waitFor,
} from "./testing/server.js";

const callerId = "00f067aa0ba902b7";
const tenant = "traced";
let collector: Collector;

beforeAll(async () => {
  collector = await Collector.start();
});

afterAll(async () => {
  await removeFolders();
  await collector.stop();
});

/** The environment of a process that sends its spans at once. */
function sendingTo(endpoint: string): Record<string, string> {
  return { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, OTEL_BSP_SCHEDULE_DELAY: "50" };
}

/** A request of a client that has begun the trace. */
function traced(traceId: string, flags = "01") {
  return {
    "x-scope-orgid": tenant,
    "content-type": "application/json",
    traceparent: `00-${traceId}-${callerId}-${flags}`,
    tracestate: "vendor=1",
  };
}

function push(url: string, headers: Record<string, string>): Promise<Response> {
  const values = [[`${Date.now()}000000`, "hello"]];
  const body = JSON.stringify({ streams: [{ stream: { app: "a" }, values }] });
  return fetch(`${url}/loki/api/v1/push`, { method: "POST", headers, body });
}

function query(url: string, headers: Record<string, string>): Promise<Response> {
  const asked = new URLSearchParams({ query: '{app="a"} |= "hello"', limit: "10" });
  return fetch(`${url}/loki/api/v1/query_range?${asked}`, { headers });
}

/** The spans of a trace once all of some names are there. */
async function spansWith(traceId: string, names: readonly string[]): Promise<CollectedSpan[]> {
  const found = () => [...new Set(collector.of(traceId).map(({ name }) => name))];
  await waitFor(() => names.every((name) => found().includes(name)), 30_000).catch(() => undefined);
  expect(found()).toEqual(expect.arrayContaining([...names]));
  return collector.of(traceId);
}

/** Spans whose parent is none of the trace: but for the first there are none once all have come. */
function orphansOf(spans: readonly CollectedSpan[]): CollectedSpan[] {
  const known = new Set([callerId, ...spans.map(({ spanId }) => spanId)]);
  return spans.filter(({ parentId }) => !known.has(parentId));
}

const pushRoute = "POST /loki/api/v1/push";
const queryRoute = "GET /loki/api/v1/query_range";

describe("in a cluster", () => {
  let cluster: Cluster;

  beforeAll(async () => {
    cluster = await Cluster.start({}, { TRACING: "true", ...sendingTo(collector.url) });
  }, 120_000);

  afterAll(() => cluster?.stop(), 60_000);

  it("a push is one trace through all that take part in it", async () => {
    const id = "4bf92f3577b34da6a3ce929d0e0e4701";
    const answer = await push(cluster.gateway, traced(id));
    expect(answer.status).toBe(204);
    const call = "skald.v1.Ingester/Push";
    const spans = await spansWith(id, [pushRoute, call]);
    const services = new Set(spans.map(({ service }) => service));
    expect([...services].sort()).toEqual(["skald-distributor", "skald-ingester"]);
    expect(spans.find(({ name }) => name === pushRoute)?.parentId).toBe(callerId);
    await waitFor(() => orphansOf(collector.of(id)).length === 0, 30_000);
  }, 60_000);

  it("a query is one trace through all that take part in it", async () => {
    const id = "4bf92f3577b34da6a3ce929d0e0e4702";
    const answer = await query(cluster.gateway, traced(id));
    expect(answer.status).toBe(200);
    expect(answer.headers.get("traceresponse")).toMatch(new RegExp(`^00-${id}-[0-9a-f]{16}-01$`));
    const names = [
      queryRoute,
      "query",
      "skald.v1.Scheduler/Run",
      "scheduled query",
      "skald.v1.Ingester/Scan",
      "job scan_log",
    ];
    await spansWith(id, names);
    await waitFor(() => orphansOf(collector.of(id)).length === 0, 30_000);
    // Each sends its spans at times of its own.
    const services = ["query-frontend", "query-scheduler", "querier", "ingester"];
    await waitFor(() => {
      const heard = new Set(collector.of(id).map(({ service }) => service));
      return services.every((one) => heard.has(`skald-${one}`));
    }, 30_000);
    const spans = collector.of(id);
    expect(new Set(spans.map(({ state }) => state))).toEqual(new Set(["vendor=1"]));
    const route = spans.find(({ name }) => name === queryRoute);
    expect([route?.parentId, route?.attributes.tenant]).toEqual([callerId, tenant]);
    const { attributes } = spans.find(({ name }) => name === "query") as CollectedSpan;
    expect(attributes["skald.bytes_scanned"]).toBeGreaterThan(0);
    expect(attributes["skald.splits"]).toBeGreaterThan(0);
    expect(attributes["skald.queue_seconds"]).toBeGreaterThanOrEqual(0);
  }, 60_000);
});

describe("in one process", () => {
  /** Notes at its end how many of the modules that send spans it has loaded. */
  const noted = `
    import { registerHooks } from "node:module";
    let count = 0;
    registerHooks({
      load(url, context, next) {
        if (/otlp-sink|@opentelemetry.(sdk|exporter|otlp)/.test(url)) count++;
        return next(url, context);
      },
    });
    process.on("exit", () => console.log("loaded", count));`;
  const nodeFlags = ["--import", `data:text/javascript,${encodeURIComponent(noted)}`];

  function start(flags: readonly string[], options: StartOptions): Promise<TestServer> {
    return startServer(makeFolder(), ["-auth.enabled=true", ...flags], options);
  }

  function loadedBy(server: TestServer): number {
    return Number(/^loaded (\d+)$/m.exec(server.log())?.[1]);
  }

  it("nothing is loaded, said or sent where they are off", async () => {
    const id = "4bf92f3577b34da6a3ce929d0e0e4711";
    const server = await start([], { nodeFlags, env: sendingTo(collector.url) });
    expect((await push(server.url, traced(id))).status).toBe(204);
    expect((await query(server.url, traced(id))).headers.get("traceresponse")).toBeNull();
    expect(await server.kill("SIGTERM")).toBe(0);
    expect(loadedBy(server)).toBe(0);
    expect(collector.of(id)).toEqual([]);
  }, 60_000);

  it("a flush and an upload are traces of their own", async () => {
    const id = "4bf92f3577b34da6a3ce929d0e0e4712";
    const server = await start(["-tracing.enabled"], { nodeFlags, env: sendingTo(collector.url) });
    await push(server.url, traced(id));
    await query(server.url, traced(id));
    await fetch(`${server.url}/flush`, { method: "POST" });
    await fetch(`${server.url}/loki/api/v1/label/app/values`, { headers: traced(id) });
    expect(await server.kill("SIGTERM")).toBe(0);
    expect(loadedBy(server)).toBeGreaterThan(0);
    const own = collector.spans.filter(({ service }) => service === "skald-all");
    for (const name of ["flush", "upload"]) {
      const found = own.find((span) => span.name === name);
      expect([found?.parentId, found?.attributes.tenant]).toEqual(["", tenant]);
    }
    const spans = collector.of(id);
    expect(orphansOf(spans)).toEqual([]);
    expect(spans.map(({ name }) => name)).toEqual(
      expect.arrayContaining([pushRoute, queryRoute, "GET /loki/api/v1/label/:name/values"]),
    );
    expect(spans.every(({ name }) => !name.includes("app"))).toBe(true);
  }, 60_000);

  it("a trace that its caller does not keep is passed on and not kept", async () => {
    const id = "4bf92f3577b34da6a3ce929d0e0e4713";
    const server = await start(["-tracing.enabled"], { env: sendingTo(collector.url) });
    const answer = await query(server.url, traced(id, "00"));
    expect(answer.headers.get("traceresponse")).toMatch(new RegExp(`^00-${id}-[0-9a-f]{16}-00$`));
    expect(await server.kill("SIGTERM")).toBe(0);
    expect(collector.of(id)).toEqual([]);
  }, 60_000);

  it("a collector that is away holds nobody up", async () => {
    const gone = await Collector.start();
    const env = { ...sendingTo(gone.url), OTEL_BSP_MAX_QUEUE_SIZE: "16" };
    await gone.stop();
    const server = await start(["-tracing.enabled"], { env });
    const id = "4bf92f3577b34da6a3ce929d0e0e4714";
    const answers = await Promise.all(
      Array.from({ length: 100 }, () => push(server.url, traced(id))),
    );
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([204]));
    expect((await query(server.url, traced(id))).status).toBe(200);
    expect(await server.kill("SIGTERM")).toBe(0);
  }, 60_000);
});
