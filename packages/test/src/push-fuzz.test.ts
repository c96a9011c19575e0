import { deflateRawSync, gzipSync, zstdCompressSync } from "node:zlib";
import { afterAll, beforeAll, expect, it } from "@jest/globals";
import {
  makePushBody,
  mutate,
  type Random,
  seededRandom,
  testRuns,
  testSeed,
} from "@skald/testkit";
import { pushJson, queryStreams } from "./testing/client.js";
import {
  makeFolder,
  peakMemoryBytes,
  removeFolders,
  startServer,
  type TestServer,
} from "./testing/server.js";

const MiB = 1024 * 1024;
const requests = testRuns(1500);
const requestsAtOnce = 8;

let server: TestServer;

beforeAll(async () => {
  const rates = [
    "-distributor.ingestion-rate-limit-mb=1000",
    "-distributor.ingestion-burst-size-mb=1000",
  ];
  server = await startServer(makeFolder(), [...rates, "-ingester.max-global-streams-per-user=0"]);
});

afterAll(async () => {
  await server.kill("SIGTERM");
  await removeFolders();
});

interface Form {
  readonly path: string;
  readonly type: string;
  readonly body: Buffer;
}

function formsOf(now: string): Form[] {
  const json = "application/json";
  const protobuf = "application/x-protobuf";
  const values = [
    [now, "a line", { trace: "1" }],
    [now, 'level=info "quoted" \u00fc'],
  ];
  const record = {
    timeUnixNano: now,
    severityNumber: 9,
    body: {
      kvlistValue: { values: [{ key: "k", value: { arrayValue: { values: [{ intValue: 1 }] } } }] },
    },
    attributes: [{ key: "a.b", value: { doubleValue: 1.5 } }],
    traceId: "5b8efff798038103d269b633813fc60c",
  };
  const resource = { attributes: [{ key: "service.name", value: { stringValue: "shop" } }] };
  const otlp = { resourceLogs: [{ resource, scopeLogs: [{ logRecords: [record, record] }] }] };
  const legacy = [{ labels: '{app="a"}', entries: [{ ts: new Date().toISOString(), line: "x" }] }];
  return [
    {
      path: "/loki/api/v1/push",
      type: json,
      body: jsonOf({ streams: [{ stream: { app: "a" }, values }] }),
    },
    { path: "/api/prom/push", type: json, body: jsonOf({ streams: legacy }) },
    { path: "/loki/api/v1/push", type: protobuf, body: protobufPush(now) },
    { path: "/otlp/v1/logs", type: json, body: jsonOf(otlp) },
    { path: "/otlp/v1/logs", type: protobuf, body: otlpMessage(now) },
  ];
}

function jsonOf(value: unknown): Buffer {
  return Buffer.from(JSON.stringify(value));
}

/** A protobuf field with a length below 128. */
function field(number: number, ...parts: readonly (Buffer | string)[]): Buffer {
  const content = Buffer.concat(parts.map((part) => Buffer.from(part as string)));
  return Buffer.concat([Buffer.of((number << 3) | 2, content.length), content]);
}

function protobufPush(now: string): Buffer {
  const row = { ns: BigInt(now), line: "a line", metadata: [["k", "v"]] as const };
  return Buffer.from(makePushBody([{ labels: '{app="a"}', rows: [row, row] }]));
}

function otlpMessage(now: string): Buffer {
  const time = Buffer.alloc(9, 0x09);
  time.writeBigUInt64LE(BigInt(now), 1);
  const attribute = (number: number, key: string, value: string) =>
    field(number, field(1, key), field(2, field(1, value)));
  const record = field(2, time, field(5, field(1, "a line")), attribute(6, "k", "v"));
  return field(1, field(1, attribute(1, "service.name", "shop")), field(2, record));
}

const encoders: Readonly<Record<string, (body: Uint8Array) => Uint8Array>> = {
  "": (body) => body,
  gzip: (body) => gzipSync(body),
  deflate: (body) => deflateRawSync(body),
  zstd: (body) => zstdCompressSync(body),
  lz4: (body) => body,
};

/** A request whose body was damaged before or after its encoding, and which sometimes has wrong headers. */
function faulty(form: Form, random: Random): RequestInit {
  const encodings = Object.keys(encoders);
  const encoding = encodings[random(encodings.length)] as string;
  const encode = encoders[encoding] as (body: Uint8Array) => Uint8Array;
  const isInside = random(2) === 0;
  const inner = isInside ? mutate(form.body, random) : form.body;
  const body = isInside ? encode(inner) : mutate(encode(inner), random);
  const stated = random(10) === 0 ? encodings[random(encodings.length)] : encoding;
  const types = ["application/json", "application/x-protobuf", "text/plain; x", "é", ""];
  const type = random(10) === 0 ? (types[random(types.length)] as string) : form.type;
  const headers: Record<string, string> = { "content-type": type };
  if (stated !== undefined && stated !== "") headers["content-encoding"] = stated;
  return { method: "POST", headers, body: Buffer.from(body) };
}

it("no push that is damaged is answered with a fault of the server", async () => {
  const random = seededRandom(testSeed());
  const forms = formsOf(`${BigInt(Date.now()) * 1_000_000n}`);
  const before = peakMemoryBytes(server);
  const statuses = new Map<number, number>();
  let left = requests;
  const send = async () => {
    while (left-- > 0) {
      const form = forms[random(forms.length)] as Form;
      const response = await fetch(`${server.url}${form.path}`, faulty(form, random));
      const text = await response.text();
      statuses.set(response.status, (statuses.get(response.status) ?? 0) + 1);
      expect(text).not.toMatch(/\.js:\d|node:internal|\/dist\//);
      if (response.status >= 500)
        throw new Error(`${form.path} answered ${response.status}: ${text}`);
    }
  };
  await Promise.all(Array.from({ length: requestsAtOnce }, send));
  const known = [204, 400, 413, 422];
  expect([...statuses.keys()].filter((status) => !known.includes(status))).toEqual([]);
  expect(statuses.get(204)).toBeGreaterThan(0);
  expect(statuses.get(400)).toBeGreaterThan(0);
  expect(peakMemoryBytes(server) - before).toBeLessThan(512 * MiB);
  const now = `${BigInt(Date.now()) * 1_000_000n}`;
  expect(await pushJson(server.url, { app: "good" }, [[now, "still here"]])).toBe(204);
  expect((await queryStreams(server.url, '{app="good"}'))[0]?.values).toEqual([
    [now, "still here"],
  ]);
});
