import { spawn } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { DuckDBInstance } from "@duckdb/node-api";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { needs } from "@skald/testkit/needs";
import {
  getJson,
  nowNs,
  pushJson,
  type QueryAnswer,
  queryNumber,
  queryStreams,
} from "./testing/client.js";
import {
  makeFolder,
  removeFolders,
  startServer,
  type TestServer,
  waitFor,
} from "./testing/server.js";

const lineCount = 1000;
const systemLog = new URL("../testdata/dpkg-log.txt", import.meta.url);

let server: TestServer;
let file: string;
let lines: string[];

beforeAll(async () => {
  const folder = makeFolder();
  server = await startServer(folder, ["-frontend.support-parquet-encoding"]);
  // A real system wrote this log. A number makes each line unique.
  const found = readFileSync(systemLog, "utf8").trim().split("\n");
  lines = Array.from({ length: lineCount }, (_, i) => `${found[i % found.length]} #${i}`);
  file = join(folder, "system.log");
  writeFileSync(file, lines.join("\n"));
});

afterAll(async () => {
  await server.kill("SIGTERM");
  await removeFolders();
});

describe("a system log through real clients", () => {
  it.each([
    ["pino", "pino", [], (line: string) => (JSON.parse(line) as { msg: string }).msg],
    ["winston-protobuf", "winston", ["protobuf"], (line: string) => line],
    ["winston-json", "winston", ["json"], (line: string) => line],
  ] as const)("%s", async (app, client, args, textOf) => {
    await runClient(client, [server.url, file, ...args]);
    await waitFor(
      async () =>
        (await queryNumber(server.url, `sum(count_over_time({app="${app}"}[1h]))`)) >= lines.length,
    );
    const streams = await queryStreams(server.url, `{app="${app}"}`, { direction: "forward" });
    const rows = streams
      .flatMap(({ values }) => [...values])
      .sort((a, b) => (a[0] < b[0] ? -1 : a[0] > b[0] ? 1 : 0));
    expect(rows.map(([, line]) => textOf(line)).sort()).toEqual([...lines].sort());
    for (const { stream, values } of streams) {
      expect(stream).toMatchObject({ app, service_name: app });
      const times = values.map(([time]) => BigInt(time));
      expect(times).toEqual([...times].sort((a, b) => (a < b ? -1 : a > b ? 1 : 0)));
    }
  });

  it.each(["json", "protobuf"])("OpenTelemetry in %s", async (form) => {
    await runClient("otel", [server.url, file, form]);
    const streams = await queryStreams(server.url, `{service_name="otel-${form}"}`);
    const rows = streams.flatMap(({ stream, values }) =>
      values.map(([, line]) => ({ stream, line })),
    );
    expect(rows.map(({ line }) => line).sort()).toEqual([...lines].sort());
    for (const { stream, line } of rows) {
      expect(stream).toEqual({
        service_name: `otel-${form}`,
        k8s_pod_name: "pod-1",
        host_name: "box",
        scope_name: "lines",
        scope_version: "1.2",
        severity_number: "13",
        severity_text: "WARN",
        detected_level: "warn",
        line_number: line.slice(line.lastIndexOf("#") + 1),
        observed_timestamp: expect.stringMatching(/^\d{19}$/),
      });
    }
    const labels = await getJson<{ data: object[] }>(server.url, "/loki/api/v1/series", {
      "match[]": `{service_name="otel-${form}"}`,
    });
    expect(labels.data).toEqual([{ service_name: `otel-${form}`, k8s_pod_name: "pod-1" }]);
  });

  needs("curl")("curl, as the README has it", async () => {
    const body = `{"streams":[{"stream":{"app":"web"},"values":[["${BigInt(Date.now()) * 1_000_000n}","hello level=info"]]}]}`;
    await run("curl", [
      "-sf",
      "-H",
      "Content-Type: application/json",
      `${server.url}/loki/api/v1/push`,
      "--data",
      body,
    ]);
    const query = [
      "-sfG",
      `${server.url}/loki/api/v1/query_range`,
      "--data-urlencode",
      'query={app="web"} |= "hello"',
    ];
    const answer = JSON.parse(await run("curl", query)) as QueryAnswer;
    expect(answer.data.result).toMatchObject([
      {
        stream: { app: "web", service_name: "web", detected_level: "info" },
        values: [[expect.any(String), "hello level=info"]],
      },
    ]);
  });

  it("lists what was pushed", async () => {
    expect(await pushJson(server.url, { app: "web" }, [[nowNs(), "listed"]])).toBe(204);
    const values = await getJson<{ data: string[] }>(server.url, "/loki/api/v1/label/app/values");
    expect(values.data).toEqual(["pino", "web", "winston-json", "winston-protobuf"]);
    const series = await getJson<{ data: object[] }>(server.url, "/loki/api/v1/series", {
      "match[]": '{app="web"}',
    });
    expect(series.data).toEqual([{ app: "web", service_name: "web" }]);
  });

  it.each([
    ['{app="winston-json"}', "sum(strlen(line))::BIGINT, count(DISTINCT line)"],
    ['sum by (app) (count_over_time({app=~"winston.*"}[1h]))', "sum(value)::BIGINT, count(*)"],
  ])("is answered in Parquet that DuckDB reads: %s", async (query, columns) => {
    const params = new URLSearchParams({ query, limit: String(lineCount), step: "3600" });
    const headers = { accept: "application/vnd.apache.parquet" };
    const answer = await fetch(`${server.url}/loki/api/v1/query_range?${params}`, { headers });
    expect(answer.headers.get("content-type")).toBe("application/vnd.apache.parquet");
    const path = join(server.folder, "answer.parquet");
    writeFileSync(path, new Uint8Array(await answer.arrayBuffer()));
    const db = await (await DuckDBInstance.create(":memory:")).connect();
    const rows = await db.runAndReadAll(`SELECT ${columns} FROM read_parquet('${path}')`);
    const [[total, count]] = rows.getRows() as [[bigint, bigint]];
    const bytes = lines.reduce((sum, line) => sum + Buffer.byteLength(line), 0);
    const isLog = query.startsWith("{");
    expect(Number(total)).toBe(isLog ? bytes : 2 * lineCount);
    expect(Number(count)).toBe(isLog ? lineCount : 2);
  });

  it("can be read by DuckDB from the store, with the same counts, times and lines", async () => {
    const flushed = await fetch(`${server.url}/flush`, { method: "POST" });
    expect(flushed.status).toBe(204);
    const files = join(server.folder, "chunks", "tenant=*", "date=*", "*.parquet");
    const db = await (await DuckDBInstance.create(":memory:")).connect();
    const select = async (sql: string) => (await db.runAndReadAll(sql)).getRows();
    const from = `FROM read_parquet('${files}', union_by_name=true)`;
    const [[count, min, max]] = (await select(
      `SELECT count(*), epoch_us(min(timestamp)), epoch_us(max(timestamp)) ${from} WHERE labels.app = 'winston-json'`,
    )) as [[bigint, bigint, bigint]];
    const streams = await queryStreams(server.url, '{app="winston-json"}', {
      direction: "forward",
    });
    const values = streams
      .flatMap((stream) => [...stream.values])
      .sort((a, b) => (a[0] < b[0] ? -1 : 1));
    expect(Number(count)).toBe(
      await queryNumber(server.url, 'sum(count_over_time({app="winston-json"}[1h]))'),
    );
    expect([min, max]).toEqual([
      BigInt(values[0]?.[0] ?? 0) / 1000n,
      BigInt(values.at(-1)?.[0] ?? 0) / 1000n,
    ]);
    const [[sample]] = (await select(
      `SELECT line ${from} WHERE labels.app = 'winston-json' AND line LIKE '%#77'`,
    )) as [[string]];
    expect(sample).toBe(lines[77]);
  });
});

needs("syslog-ng")("syslog-ng pushes a thousand lines", async () => {
  const sent = Array.from({ length: lineCount }, (_, i) => `level=warn msg=message id=${i}`);
  const folder = makeFolder();
  const config = join(folder, "syslog-ng.conf");
  writeFileSync(config, syslogNgConfig(server.url));
  const files = ["persist-file", "control", "pidfile"].map(
    (key) => `--${key}=${join(folder, key)}`,
  );
  const agent = spawn("syslog-ng", ["-F", "--no-caps", "-f", config, ...files], {
    stdio: ["pipe", "ignore", "inherit"],
  });
  const gone = new Promise((resolve) => agent.once("close", resolve));
  try {
    agent.stdin.write(`${sent.join("\n")}\n`);
    await waitFor(
      async () =>
        (await queryNumber(server.url, 'sum(count_over_time({app="syslog-ng"}[1h]))')) >=
        sent.length,
    );
  } finally {
    agent.kill("SIGTERM");
    await gone;
  }
  const streams = await queryStreams(server.url, '{app="syslog-ng"}');
  expect(streams.map(({ stream }) => stream)).toEqual([
    { app: "syslog-ng", service_name: "syslog-ng", agent: "syslog-ng", detected_level: "warn" },
  ]);
  expect(streams[0]?.values.map(([, line]) => line).sort()).toEqual([...sent].sort());
});

function runClient(client: string, args: readonly string[]): Promise<string> {
  const path = fileURLToPath(new URL("testing/log-client.js", import.meta.url));
  return run(process.execPath, [path, client, ...args]);
}

/** Runs a program until it exits; resolves with its output, and rejects with its errors when it fails. */
function run(command: string, args: readonly string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { stdio: ["ignore", "pipe", "pipe"] });
    let out = "";
    let errors = "";
    child.stdout.on("data", (chunk: Buffer) => {
      out += chunk.toString();
    });
    child.stderr.on("data", (chunk: Buffer) => {
      errors += chunk.toString();
    });
    child.once("error", reject);
    child.once("exit", (code) =>
      code === 0 ? resolve(out) : reject(new Error(`${command} ended with ${code}: ${errors}`)),
    );
  });
}

/** A configuration that takes lines from standard input and pushes them as JSON, 100 at a time. */
function syslogNgConfig(url: string): string {
  const stream = '{\\"stream\\":{\\"app\\":\\"syslog-ng\\"},\\"values\\":';
  return `@version: 3.38
source lines { stdin(flags(no-parse)); };
destination push {
  http(
    url("${url}/loki/api/v1/push") method("POST") headers("Content-Type: application/json")
    batch-lines(100) batch-timeout(100)
    body-prefix("{\\"streams\\":[") delimiter(",") body-suffix("]}")
    body("${stream}[[\\"\${R_UNIXTIME}000000000\\",\\"$MSG\\",{\\"agent\\":\\"syslog-ng\\"}]]}")
  );
};
log { source(lines); destination(push); flags(flow-control); };
`;
}
