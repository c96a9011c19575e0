import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import {
  makeFolder,
  removeFolders,
  type StartOptions,
  startServer,
  type TestServer,
} from "./testing/server.js";
import {
  Collector,
  orphansOf,
  pushRoute,
  pushTraced,
  queryRoute,
  queryTraced,
  sendingTo,
  traced,
  tracedTenant,
} from "./testing/traces.js";

let collector: Collector;

beforeAll(async () => {
  collector = await Collector.start();
});

afterAll(async () => {
  await removeFolders();
  await collector.stop();
});

describe("in one process", () => {
  /** A preload that writes at exit how many modules that send spans were loaded. */
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
    expect((await pushTraced(server.url, traced(id))).status).toBe(204);
    expect((await queryTraced(server.url, traced(id))).headers.get("traceresponse")).toBeNull();
    expect(await server.kill("SIGTERM")).toBe(0);
    expect(loadedBy(server)).toBe(0);
    expect(collector.of(id)).toEqual([]);
  }, 60_000);

  it("a flush and an upload are traces of their own; one that its caller does not keep is passed on and not kept", async () => {
    const id = "4bf92f3577b34da6a3ce929d0e0e4712";
    const server = await start(["-tracing.enabled"], { nodeFlags, env: sendingTo(collector.url) });
    await pushTraced(server.url, traced(id));
    await queryTraced(server.url, traced(id));
    const others = "4bf92f3577b34da6a3ce929d0e0e4713";
    const passedOn = (await queryTraced(server.url, traced(others, "00"))).headers.get(
      "traceresponse",
    );
    expect(passedOn).toMatch(new RegExp(`^00-${others}-[0-9a-f]{16}-00$`));
    await fetch(`${server.url}/flush`, { method: "POST" });
    await fetch(`${server.url}/loki/api/v1/label/app/values`, { headers: traced(id) });
    expect(await server.kill("SIGTERM")).toBe(0);
    expect(loadedBy(server)).toBeGreaterThan(0);
    expect(collector.of(others)).toEqual([]);
    const own = collector.spans.filter(({ service }) => service === "skald-all");
    for (const name of ["flush", "upload"]) {
      const found = own.find((span) => span.name === name);
      expect([found?.parentId, found?.attributes.tenant]).toEqual(["", tracedTenant]);
    }
    const spans = collector.of(id);
    expect(orphansOf(spans)).toEqual([]);
    expect(spans.map(({ name }) => name)).toEqual(
      expect.arrayContaining([pushRoute, queryRoute, "GET /loki/api/v1/label/:name/values"]),
    );
    expect(spans.every(({ name }) => !name.includes("app"))).toBe(true);
  }, 60_000);

  it("a collector that is away holds nobody up", async () => {
    const gone = await Collector.start();
    const env = { ...sendingTo(gone.url), OTEL_BSP_MAX_QUEUE_SIZE: "16" };
    await gone.stop();
    const server = await start(["-tracing.enabled"], { env });
    const id = "4bf92f3577b34da6a3ce929d0e0e4714";
    const answers = await Promise.all(
      Array.from({ length: 100 }, () => pushTraced(server.url, traced(id))),
    );
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([204]));
    expect((await queryTraced(server.url, traced(id))).status).toBe(200);
    expect(await server.kill("SIGTERM")).toBe(0);
  }, 60_000);
});
