import { type ClientHttp2Stream, connect } from "node:http2";
import { createServer } from "node:net";
import { gzipSync } from "node:zlib";
import { Metadata } from "@grpc/grpc-js";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { OTLPLogExporter } from "@opentelemetry/exporter-logs-otlp-grpc";
import { resourceFromAttributes } from "@opentelemetry/resources";
import { LoggerProvider, type ReadableLogRecord } from "@opentelemetry/sdk-logs";
import { freePort } from "@skald/testkit";
import { startProcess, type TestProcess } from "../testing/start-process.js";

const exportPath = "/opentelemetry.proto.collector.logs.v1.LogsService/Export";
let served: TestProcess;

beforeAll(async () => {
  served = await startProcess([
    "-auth.enabled",
    `-server.otlp-grpc-listen-port=${await freePort()}`,
    "-distributor.max-line-size=1KB",
    "-distributor.max-recv-msg-size=1MB",
  ]);
});
afterAll(() => served.stop());

/** Log records as the SDK makes them. */
function recordsOf(service: string, lines: readonly string[]): ReadableLogRecord[] {
  const kept: ReadableLogRecord[] = [];
  const provider = new LoggerProvider({
    resource: resourceFromAttributes({ "service.name": service }),
    processors: [
      {
        onEmit: (record) => void kept.push(record),
        forceFlush: async () => undefined,
        shutdown: async () => undefined,
      },
    ],
  });
  const log = provider.getLogger("test");
  for (const body of lines) log.emit({ body, severityText: "WARN", severityNumber: 13 });
  return kept;
}

interface Outcome {
  readonly code: number;
  readonly error?: Error & { readonly code?: number; readonly metadata?: Metadata };
}

/** Exports lines by the exporter of OpenTelemetry as a tenant. */
async function exportLines(
  port: number,
  lines: readonly string[],
  { tenant = "", service = "shop", isPacked = false } = {},
): Promise<Outcome> {
  const metadata = new Metadata();
  if (tenant !== "") metadata.set("x-scope-orgid", tenant);
  const exporter = new OTLPLogExporter({
    url: `http://127.0.0.1:${port}`,
    metadata,
    timeoutMillis: 5_000,
    ...(isPacked ? { compression: "gzip" as never } : {}),
  });
  const outcome = await new Promise<Outcome>((resolve) =>
    exporter.export(recordsOf(service, lines), (result) => resolve(result as Outcome)),
  );
  await exporter.shutdown();
  return outcome;
}

async function linesOf(tenant: string, query: string): Promise<string[]> {
  const url = `${served.url}/loki/api/v1/query_range?query=${encodeURIComponent(query)}`;
  const answer = await fetch(url, { headers: { "x-scope-orgid": tenant } });
  const { data } = (await answer.json()) as {
    data: { result: { values: [string, string][] }[] };
  };
  return data.result.flatMap(({ values }) => values.map(([, line]) => line)).sort();
}

describe("the exporter of OpenTelemetry", () => {
  it.each([
    ["plain", false],
    ["gzip", true],
  ])("exports lines of its tenant, %s", async (service, isPacked) => {
    const lines = Array.from({ length: 500 }, (_, i) => `line ${i} of ${service}`);
    const port = served.grpcPort;
    expect(await exportLines(port, lines, { tenant: "t1", service, isPacked })).toEqual({
      code: 0,
    });
    const found = await linesOf("t1", `{service_name="${service}"} | severity_text = "WARN"`);
    expect(found.length).toBe(100);
    expect(await linesOf("t2", `{service_name="${service}"}`)).toEqual([]);
  });

  it("learns that a tenant is missing, or is none", async () => {
    const none = await exportLines(served.grpcPort, ["x"]);
    expect([none.code, none.error?.code, none.error?.message]).toEqual([
      ...[1, 16, expect.stringContaining("no org id")],
    ]);
    const bad = await exportLines(served.grpcPort, ["x"], { tenant: "a/b" });
    expect([bad.error?.code, bad.error?.message]).toEqual([
      ...[3, expect.stringContaining("unsupported character '/'")],
    ]);
  });

  it("learns which lines were refused; the others are stored", async () => {
    const lines = ["short", "x".repeat(2000)];
    const { error } = await exportLines(served.grpcPort, lines, { tenant: "t3" });
    expect([error?.code, error?.message]).toEqual([
      ...[3, expect.stringContaining("max entry size '1024' bytes exceeded")],
    ]);
    expect(await linesOf("t3", '{service_name="shop"}')).toEqual(["short"]);
  });

  it("learns when the rate of its tenant is used up, and when to send again", async () => {
    const burst = ["-distributor.ingestion-burst-size-mb=0.01"];
    const limited = await startProcess([...burst, "-distributor.ingestion-rate-limit-mb=0.01"]);
    try {
      const lines = Array.from({ length: 8 }, (_, i) => `${i} ${"x".repeat(1000)}`);
      expect(await exportLines(limited.grpcPort, lines)).toEqual({ code: 0 });
      const { error } = await exportLines(limited.grpcPort, lines);
      expect([error?.code, error?.message]).toEqual([
        ...[8, expect.stringContaining("ingestion rate limit exceeded")],
      ]);
      const [details] = error?.metadata?.get("grpc-status-details-bin") ?? [];
      expect(String(details)).toContain("google.rpc.RetryInfo");
      const metrics = await (await fetch(`${limited.url}/metrics`)).text();
      const refused = `method="gRPC",route="${exportPath}",status_code="429",ws="false"`;
      expect(metrics).toContain(`loki_request_duration_seconds_count{${refused}} 1`);
    } finally {
      await limited.stop();
    }
  });
});

/** A call with a frame as it is given; resolves with its status and text. */
async function callWith(
  port: number,
  frame: Uint8Array,
  headers: Record<string, string> = {},
): Promise<[string, string]> {
  const session = connect(`http://127.0.0.1:${port}`);
  session.on("error", () => undefined);
  const given = { "content-type": "application/grpc", te: "trailers", "x-scope-orgid": "hostile" };
  const stream = session.request({
    ...{ ":method": "POST", ":path": exportPath, ...given, ...headers },
  });
  try {
    return await statusOf(stream, frame);
  } finally {
    session.destroy();
  }
}

function statusOf(stream: ClientHttp2Stream, frame: Uint8Array): Promise<[string, string]> {
  return new Promise((resolve) => {
    const heads: Record<string, unknown> = {};
    stream.on("error", () => undefined);
    stream.on("response", (found) => Object.assign(heads, found));
    stream.on("trailers", (found) => Object.assign(heads, found));
    stream.resume();
    stream.once("close", () => {
      const text = decodeURIComponent(String(heads["grpc-message"] ?? ""));
      resolve([String(heads["grpc-status"]), text]);
    });
    stream.end(frame);
  });
}

function frameOf(message: Uint8Array, flag = 0): Buffer {
  const head = Buffer.alloc(5);
  head[0] = flag;
  head.writeUInt32BE(message.length, 1);
  return Buffer.concat([head, message]);
}

describe("the port of OTLP over gRPC", () => {
  it("takes the same calls on a port for nothing else", async () => {
    expect(served.otlpPort).not.toBe(served.grpcPort);
    const outcome = await exportLines(served.otlpPort, ["by the other door"], { tenant: "t4" });
    expect(outcome).toEqual({ code: 0 });
    expect(await linesOf("t4", '{service_name="shop"}')).toEqual(["by the other door"]);
  });

  it.each([
    "/skald.v1.Ingester/Push",
    "/skald.v1.Distributor/PushBatch",
    "/skald.v1.Querier/Run",
    "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
  ])("does not serve %s", async (path) => {
    for (const port of [served.grpcPort, served.otlpPort]) {
      const [status] = await callWith(port, frameOf(Buffer.alloc(0)), { ":path": path });
      expect(status).toBe("12");
    }
  });

  it.each([
    ["noise", frameOf(Buffer.alloc(10_000, 0xff)), {}, "3", /./],
    ["noise as gzip", frameOf(Buffer.alloc(100, 7), 1), { "grpc-encoding": "gzip" }, "3", /gzip/],
    [
      "a bomb",
      frameOf(gzipSync(Buffer.alloc(100_000_000)), 1),
      { "grpc-encoding": "gzip" },
      ...["3", /inflates to more than 33554432 bytes/],
    ],
    [
      "a message over the limit",
      frameOf(Buffer.alloc(2_000_000)),
      {},
      "3",
      /limit is 1048581 bytes/,
    ],
    ["half a frame", frameOf(Buffer.alloc(100)).subarray(0, 50), {}, "3", /100 bytes, and 45 came/],
    ["no records", frameOf(Buffer.alloc(0)), {}, "0", /^$/],
    ["a JSON text", frameOf(Buffer.from("{}")), {}, "3", /./],
  ] as const)("answers %s, and lives on", async (_, frame, headers, status, text) => {
    const [found, shown] = await callWith(served.grpcPort, frame, headers);
    expect([found, shown]).toEqual([status, expect.stringMatching(text)]);
    expect(await exportLines(served.grpcPort, ["ok"], { tenant: "t5" })).toEqual({ code: 0 });
    expect(served.errors).toEqual([]);
  });

  it("does not keep a process from starting when another has it, and says so", async () => {
    const taken = createServer();
    await new Promise<void>((resolve) => taken.listen(0, "127.0.0.1", resolve));
    const { port } = taken.address() as { port: number };
    const address = "-server.grpc-listen-address=127.0.0.1";
    const other = await startProcess([address, `-server.grpc-listen-port=${port}`]);
    try {
      const answer = await fetch(`${other.url}/ready?verbose=true`);
      expect([answer.status, await answer.text()]).toEqual([
        ...[200, expect.stringContaining(`port ${port} is in use`)],
      ]);
    } finally {
      await other.stop();
      taken.close();
    }
  });
});
