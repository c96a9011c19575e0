import { readdirSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { testRuns } from "@skald/testkit";
import {
  nowNs,
  openWire,
  pushJson,
  queryLines,
  queryNumber,
  readMetric,
} from "./testing/client.js";
import {
  filesBelow,
  makeFolder,
  removeFolders,
  spawnServer,
  startServer,
  type TestServer,
  urlOf,
  waitFor,
} from "./testing/server.js";

afterAll(removeFolders);

const wide = ["-validation.max-entries-limit=10000000"];

describe("SIGTERM", () => {
  const folder = makeFolder();
  let server: TestServer;
  // Each test stops the process and starts the next one.
  beforeAll(async () => {
    server = await startServer(folder, wide);
  });
  afterAll(() => server.kill("SIGTERM"));
  const restart = async () => {
    server = await startServer(folder, wide);
  };

  it("flushes everything into the store, ends with 0, and the next start replays nothing", async () => {
    const lines = Array.from({ length: 500 }, (_, i) => `line ${i}`);
    for (const app of ["a", "b"]) {
      const values = lines.map((line, i) => [nowNs(i), `${app} ${line}`] as const);
      expect(await pushJson(server.url, { app }, values)).toBe(204);
    }
    expect(await server.kill("SIGTERM")).toBe(0);
    expect(server.log()).toMatch(/"reason":"SIGTERM","msg":"stopping"/);
    expect(server.log()).toMatch(/"msg":"stopped"\}\n$/);
    const stored = filesBelow(join(folder, "chunks"), ".parquet");
    expect(stored.length).toBeGreaterThan(0);
    for (const file of stored)
      expect(file).toMatch(/tenant=fake\/date=\d{4}-\d\d-\d\d\/[^/]+\.parquet$/);

    await restart();
    expect(await readMetric(server.url, "loki_ingester_wal_recovered_entries_total")).toBe(0);
    expect(await readMetric(server.url, "loki_ingester_memory_chunks")).toBe(0);
    for (const app of ["a", "b"]) {
      const found = await queryLines(server.url, `{app="${app}"}`);
      expect(found).toEqual(lines.map((line) => `${app} ${line}`));
    }
    expect(await queryNumber(server.url, "sum(count_over_time({app=~`a|b`}[1h]))")).toBe(1000);
  });

  it("under load loses nothing that was acknowledged, however often it happens", async () => {
    const acknowledged = new Set<string>();
    let next = 0;
    for (let round = 0; round < testRuns(1); round++) {
      const { url } = server;
      let acks = 0;
      const statuses = new Set<number>();
      const push = async (connection: number) => {
        for (;;) {
          const values = Array.from({ length: 20 }, (_, i) => {
            return [nowNs(i), `round ${round} line ${next++}`] as const;
          });
          const labels = { app: "load", connection: `${connection}` };
          const status = await pushJson(url, labels, values).catch(() => 0);
          if (status === 0) return;
          statuses.add(status);
          if (status !== 204) continue;
          for (const [, line] of values) acknowledged.add(line);
          acks++;
        }
      };
      const pushers = Promise.all([0, 1, 2, 3].map(push));
      await waitFor(() => acks > 50);
      expect(await server.kill("SIGTERM")).toBe(0);
      await pushers;
      // The process answered every request that it took, and refused none.
      expect([...statuses]).toEqual([204]);
      await restart();
    }
    const found = await queryLines(server.url, '{app="load"}', { limit: "10000000" });
    expect(new Set(found).size).toBe(found.length);
    const there = new Set(found);
    expect([...acknowledged].filter((line) => !there.has(line))).toEqual([]);
    expect(acknowledged.size).toBeGreaterThan(1000);
  });

  it("waits for a request that runs, and takes no new ones", async () => {
    const body = JSON.stringify({
      streams: [{ stream: { app: "slow" }, values: [[nowNs(), "in the middle"]] }],
    });
    const wire = await openWire(server.port);
    await wire.send(
      `POST /loki/api/v1/push HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body.slice(0, 10)}`,
    );
    // The server has the request when it has answered a later one.
    await fetch(`${server.url}/ready`);
    const ended = server.kill("SIGTERM");
    await waitFor(
      async () =>
        !(await fetch(`${server.url}/ready`).then(
          () => true,
          () => false,
        )),
    );
    await wire.send(body.slice(10));
    expect(await wire.closed()).toMatch(/^HTTP\/1\.1 204 [\s\S]*connection: close/i);
    expect(await ended).toBe(0);
    await restart();
    expect(await queryLines(server.url, '{app="slow"}')).toEqual(["in the middle"]);
  });
});

describe("/ingester/shutdown", () => {
  const shutDown = async ({ url }: TestServer, query: string) =>
    (await fetch(`${url}/ingester/shutdown?${query}`, { method: "POST" })).status;

  it("uploads everything, and ends the process behind its answer", async () => {
    const folder = makeFolder();
    const server = await startServer(folder);
    expect(await pushJson(server.url, { app: "a" }, [[nowNs(), "line"]])).toBe(204);
    expect(await shutDown(server, "")).toBe(204);
    await waitFor(() => server.process.exitCode !== null);
    expect(server.process.exitCode).toBe(0);
    expect(filesBelow(join(folder, "chunks"), ".parquet")).toHaveLength(1);
  });

  it("leaves the process there if asked to, which is not ready and takes no pushes then", async () => {
    const folder = makeFolder();
    const server = await startServer(folder);
    expect(await pushJson(server.url, { app: "a" }, [[nowNs(), "line"]])).toBe(204);
    expect(await shutDown(server, "terminate=false&flush=false")).toBe(204);
    expect(filesBelow(join(folder, "chunks"), ".parquet")).toEqual([]);
    expect(await shutDown(server, "")).toBe(503);
    const ready = await fetch(`${server.url}/ready`);
    expect([ready.status, await ready.text()]).toEqual([
      503,
      expect.stringContaining("Some services are not Running"),
    ]);
    expect(await pushJson(server.url, { app: "a" }, [[nowNs(), "late"]])).toBe(503);
    expect(await server.kill("SIGTERM")).toBe(0);
    const again = await startServer(folder);
    expect(await queryLines(again.url, '{app="a"}')).toEqual(["line"]);
    await again.kill("SIGTERM");
  });
});

describe("while the log is replayed", () => {
  const flags = ["-ingester.flush-on-shutdown=false", ...wide];
  const streams = 20;
  const linesPerStream = 4000;
  let folder: string;
  beforeAll(async () => {
    folder = makeFolder();
    const server = await startServer(folder, flags);
    for (let i = 0; i < streams; i++) {
      const values = Array.from({ length: linesPerStream }, (_, j) => {
        return [nowNs(j), `${j} ${"x".repeat(100)}`] as const;
      });
      expect(await pushJson(server.url, { app: "a", i: `${i}` }, values)).toBe(204);
    }
    await server.kill("SIGKILL");
  });

  it.each(["starting skald", "listening"])("SIGTERM after %j ends it with 0", async (text) => {
    const started = spawnServer(folder, flags);
    await waitFor(() => started.log().includes(text));
    expect(await started.kill("SIGTERM")).toBe(0);
    expect(started.log()).not.toMatch(/"level":"error"/);
    expect(readdirSync(join(folder, "wal")).length).toBeGreaterThan(0);
  });

  it("/ready says what is starting, pushes and queries get 503; then all is there, and stays in the log", async () => {
    const started = spawnServer(folder, flags);
    const url = await urlOf(started);
    const seen = new Map<string, number>();
    await waitFor(async () => {
      const ready = await fetch(`${url}/ready`);
      const text = await ready.text();
      seen.set(text, ready.status);
      if (ready.status === 200) return true;
      const [status, query] = await Promise.all([
        pushJson(url, { app: "b" }, [[nowNs(), "early"]]),
        fetch(`${url}/loki/api/v1/query_range?query={app="a"}`),
      ]);
      // The process may have become ready in the meantime.
      expect([503, 204]).toContain(status);
      expect([503, 200]).toContain(query.status);
      return false;
    });
    expect(seen.get("ready\n")).toBe(200);
    // There are no such answers when the process was ready before the first request.
    const early = [...seen].filter(([, status]) => status === 503).map(([text]) => text);
    // Modules that do not need each other start together.
    for (const text of early)
      expect(text).toMatch(/^Some services are not Running:\n[\s\S]*Starting: [1-9]\n/);
    await waitFor(() => /"msg":"replayed the write-ahead log"/.test(started.log()));
    const count = await queryNumber(url, 'sum(count_over_time({app="a"}[1h]))');
    expect(count).toBe(streams * linesPerStream);
    const replayed = await readMetric(url, "loki_ingester_wal_recovered_entries_total");
    expect(replayed).toBe(streams * linesPerStream);
    // Flush on shutdown is off, so that the log keeps its rows.
    expect(await started.kill("SIGINT")).toBe(0);
    expect(filesBelow(join(folder, "chunks"), ".parquet")).toEqual([]);
    expect(readdirSync(join(folder, "wal")).length).toBeGreaterThan(0);
  });
});
