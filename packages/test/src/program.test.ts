import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { S3Server } from "@skald/testkit";
import { nowNs, pushJson, queryLines } from "./testing/client.js";
import {
  binSkald,
  filesBelow,
  makeFolder,
  removeFolders,
  runProgram,
  startServer,
  type TestServer,
} from "./testing/server.js";

afterAll(removeFolders);

/** A program that exits at once needs only one thread. */
const oneThread = "-server.worker-threads=1";

const goodConfig = `
common: {path_prefix: ./d}
schema_config:
  configs: [{from: 2024-01-01, store: tsdb, object_store: filesystem, schema: v13, index: {period: 24h}}]
storage_config: {aws: {secret_access_key: hush-hush}}
`;

describe("flags that print and exit", () => {
  it.each([
    ["-version", /^skald, version \d+\.\d+\.\d+/],
    ["-list-targets", /^all +everything in one process$/m],
    ["-verify-config", /config is valid/],
  ])("%s: code 0 and the text on stdout", async (flag, want) => {
    const folder = makeFolder();
    const { code, stdout, stderr } = await runProgram(binSkald, [flag], { cwd: folder });
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout).toMatch(want);
    expect(readdirSync(folder)).toEqual([]);
  });

  it("-help is there as a whole behind a pipe", async () => {
    const { stdout } = await runProgram(binSkald, ["-help"]);
    expect(stdout).toMatch(/^Usage: skald \[flags\]/);
    expect(stdout.length).toBeGreaterThan(20_000);
    expect(stdout).toContain("-server.http-listen-port");
    expect(stdout).toMatch(/\n$/);
  });

  it("-print-config masks secrets", async () => {
    const folder = makeFolder();
    writeFileSync(join(folder, "c.yaml"), goodConfig);
    const flags = ["-config.file=c.yaml", "-print-config"];
    const { code, stdout } = await runProgram(binSkald, flags, { cwd: folder });
    expect(code).toBe(0);
    expect(stdout).toMatch(/^auth_enabled: true$/m);
    expect(stdout).toContain("********");
    expect(stdout).not.toContain("hush-hush");
  });
});

describe("what cannot run", () => {
  it.each([
    ["an unknown flag", ["-server.http-listen-prt=1"], {}, /server\.http-listen-port/],
    ["a bad file", ["-config.file=c.yaml", "-verify-config"], { "c.yaml": "servr: {}" }, /server/],
  ])("%s: code 1 and the reason on stderr", async (_name, flags, files, want) => {
    const folder = makeFolder();
    for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
    const { code, stdout, stderr } = await runProgram(binSkald, flags, { cwd: folder });
    expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
    expect(stderr).toMatch(want);
    expect(stderr).not.toMatch(/\n +at /);
    expect(existsSync(join(folder, "data"))).toBe(false);
  });

  it("a data folder that cannot be made: code 1 and the reason in the log", async () => {
    const folder = makeFolder();
    writeFileSync(join(folder, "file"), "");
    const flags = ["-common.path-prefix=file", "-server.http-listen-port=0", oneThread];
    const { code, stderr } = await runProgram(binSkald, flags, { cwd: folder });
    expect(code).toBe(1);
    expect(stderr).toMatch(/"msg":"could not start: .*file/);
  });
});

describe("a running process", () => {
  let server: TestServer;
  beforeAll(async () => {
    server = await startServer(makeFolder());
  });
  afterAll(async () => {
    await server.kill("SIGTERM");
  });

  const get = async (path: string, init: RequestInit = {}) => {
    const response = await fetch(server.url + path, init);
    return { status: response.status, headers: response.headers, text: await response.text() };
  };

  it("refuses to share its port, with code 1", async () => {
    const flags = [
      `-server.http-listen-port=${server.port}`,
      "-server.http-listen-address=127.0.0.1",
      oneThread,
    ];
    const folder = makeFolder();
    const { code, stderr } = await runProgram(binSkald, flags, { cwd: folder });
    expect(code).toBe(1);
    expect(stderr).toMatch(/could not start: listen EADDRINUSE/);
  });

  it("is ready, and names its services", async () => {
    expect(await get("/ready")).toMatchObject({ status: 200, text: "ready\n" });
    const { text } = await get("/services");
    expect(text.trim().split("\n").sort()).toEqual([
      "call-taker => Running",
      "catalog-client => Running",
      "compactor => Running",
      "compactor-ring => Running",
      "deletion => Running",
      "distributor => Running",
      "index-gateway => Running",
      "index-gateway-ring => Running",
      "ingester => Running",
      "ingesters => Running",
      "known-deletes => Running",
      "pattern-ingester => Running",
      "pattern-ingesters => Running",
      "peers => Running",
      "querier => Running",
      "query-frontend => Running",
      "query-scheduler => Running",
      "ruler => Running",
      "ruler-ring => Running",
      "runtime-config => Running",
      "scheduler-ring => Running",
      "server => Running",
      "store => Running",
      "worker-pool => Running",
    ]);
  });

  it("shows its configuration", async () => {
    const diffs = await get("/config?mode=diffs");
    expect(diffs.text).toMatch(/^ {2}http_listen_port: 0$/m);
    expect((await get("/config?mode=defaults")).text).toMatch(/^ {2}http_listen_port: 3100$/m);
    expect((await get("/config?mode=all")).status).toBe(400);
  });

  it("takes its log level by a form or the query string", async () => {
    const set = (init: RequestInit, query = "") =>
      get(`/log_level${query}`, { method: "POST", ...init });
    const form = new URLSearchParams({ log_level: "debug" });
    expect((await set({ body: form })).text).toContain("Log level set to debug");
    expect((await get("/log_level")).text).toContain("Current log level is debug");
    expect((await set({}, "?log_level=info")).status).toBe(200);
    expect((await set({}, "?log_level=loud")).status).toBe(400);
    expect((await get("/log_level", { method: "PUT" })).status).toBe(405);
  });

  it("counts requests under the names that dashboards know", async () => {
    expect(await pushJson(server.url, { app: "m" }, [[`${Date.now()}000000`, "x"]])).toBe(204);
    await get("/service/api/v1/query_range?query={app=%22m%22}");
    await get("/loki/api/v1/label/app/values");
    await get("/no/such/path");
    const { text } = await get("/metrics");
    for (const labels of [
      'method="POST",route="loki_api_v1_push",status_code="204",ws="false"',
      'method="GET",route="loki_api_v1_query_range",status_code="200",ws="false"',
      'method="GET",route="loki_api_v1_label_name_values",status_code="200",ws="false"',
      'method="GET",route="other",status_code="404",ws="false"',
    ])
      expect(text).toContain(`loki_request_duration_seconds_count{${labels}} 1`);
    expect(text).toMatch(/^loki_build_info\{version="3\.[^\n]*\} 1$/m);
    expect(text).toMatch(/^loki_distributor_lines_received_total\{tenant="fake",[^}]*\} 1$/m);
    expect(text).toMatch(/^loki_ingester_memory_streams\{tenant="fake"\} 1$/m);
    const open = await get("/metrics", { headers: { accept: "application/openmetrics-text" } });
    expect(open.text).toMatch(/# EOF\n$/);
  });

  it("takes everybody for one tenant, whatever the header says", async () => {
    const as = (tenant: string) => ({ "x-scope-orgid": tenant });
    const labels = { app: "one" };
    expect(await pushJson(server.url, labels, [[nowNs(), "one"]], as("a"))).toBe(204);
    expect(await pushJson(server.url, labels, [[nowNs(1), "two"]], as("a|b"))).toBe(204);
    expect(await queryLines(server.url, '{app="one"}', {}, as("../c"))).toEqual(["one", "two"]);
  });

  it("compresses what is worth it", async () => {
    const { headers } = await get("/config", { headers: { "accept-encoding": "gzip" } });
    expect(headers.get("content-encoding")).toBe("gzip");
  });

  it("flushes on demand", async () => {
    expect((await get("/flush", { method: "POST" })).status).toBe(204);
    expect((await get("/metrics")).text).toMatch(/^loki_ingester_memory_chunks 0$/m);
  });
});

it("inspect and verify read what a process has left, and find what is damaged", async () => {
  const folder = makeFolder();
  const server = await startServer(folder);
  for (const app of ["a", "b"]) {
    expect(await pushJson(server.url, { app }, [[nowNs(), `of ${app}`]])).toBe(204);
  }
  expect(await flush(server.url)).toBe(204);
  expect(await pushJson(server.url, { app: "a" }, [[nowNs(), "in the log"]])).toBe(204);
  await server.kill("SIGKILL");

  const whole = await runProgram(binSkald, ["verify", folder]);
  expect(whole).toMatchObject({ code: 0, stdout: expect.stringContaining("nothing is damaged") });
  expect(whole.stderr).toMatch(/^100 %, (\d+) of \1 files/m);
  const segment = join(folder, filesBelow(folder, ".parquet")[0] as string);
  const log = join(folder, filesBelow(folder, ".wal").at(-1) as string);
  const inspected = await runProgram(binSkald, ["inspect", segment, log]);
  expect(inspected).toMatchObject({ code: 0, stderr: "" });
  expect(inspected.stdout).toMatch(/: segment\n {2}tenant +fake\n/);
  expect(inspected.stdout).toMatch(/: write-ahead log\n/);

  const bytes = readFileSync(segment);
  bytes[10]! ^= 1;
  writeFileSync(segment, bytes);
  const { code, stdout } = await runProgram(binSkald, ["verify", folder]);
  expect(code).toBe(1);
  expect(stdout).toMatch(/^damaged: .*\.parquet: column timestamp, page of block 0 at byte/);
});

it("verify reads a bucket by the flags of the server", async () => {
  const bucket = new S3Server();
  const endpoint = await bucket.open();
  const flags = [
    `-s3.endpoint=${endpoint}`,
    "-s3.force-path-style",
    `-s3.access-key-id=${bucket.accessKeyId}`,
    "-s3.secret-access-key=secret",
    "-s3.max-retries=1",
  ];
  const server = await startServer(makeFolder(), [...flags, `-s3.buckets=${bucket.bucket}`]);
  expect(await pushJson(server.url, { app: "a" }, [[nowNs(), "line"]])).toBe(204);
  expect(await flush(server.url)).toBe(204);
  expect(await server.kill("SIGTERM")).toBe(0);
  const url = `s3://${bucket.bucket}`;
  const { code, stdout } = await runProgram(binSkald, ["verify", url, "-json", ...flags]);
  expect(code).toBe(0);
  expect(JSON.parse(stdout)).toMatchObject({ damage: [], checked: { segment: 1 } });
  await bucket.close();
  const away = await runProgram(binSkald, ["verify", url, ...flags]);
  expect(away).toMatchObject({ code: 2, stdout: "" });
});

async function flush(url: string): Promise<number> {
  return (await fetch(`${url}/flush`, { method: "POST" })).status;
}
