import { fileURLToPath } from "node:url";
import {
  Client,
  credentials,
  type GrpcObject,
  loadPackageDefinition,
  type ServiceClientConstructor,
} from "@grpc/grpc-js";
import { loadSync } from "@grpc/proto-loader";
import { afterAll, beforeAll, expect, it } from "@jest/globals";
import { Cluster } from "./testing/cluster.js";

// What any gRPC client can do with proto/ alone: nothing of Skald is imported but the cluster of the tests.

const folder = fileURLToPath(new URL("../../../proto", import.meta.url));
const schema = loadPackageDefinition(loadSync("services.proto", { includeDirs: [folder] }));
const counts = {
  ...{ ingester: 2, distributor: 1, querier: 1, "query-frontend": 1 },
  ...{ "query-scheduler": 1, "index-gateway": 1, compactor: 1, ruler: 1 },
};
let cluster: Cluster;
const ports = new Map<string, number>();
const clients: Client[] = [];

beforeAll(async () => {
  cluster = await Cluster.start({ counts });
  for (const address of cluster.services) {
    const config = await (await fetch(`${address}/config`)).text();
    const [, target = ""] = /^target:\s*(?:- *)?"?([\w-]+)/m.exec(config) ?? [];
    const [, port] = /grpc_listen_port: (\d+)/.exec(config) ?? [];
    ports.set(target, Number(port));
  }
}, 240_000);

afterAll(async () => {
  for (const client of clients) client.close();
  await cluster?.stop();
}, 60_000);

type Calls = Readonly<
  Record<
    string,
    (request: object, done: (error: unknown, answer: object) => void) => AsyncIterable<object>
  >
>;

function clientOf(target: string, service: string): Calls {
  const { v1 } = schema.skald as GrpcObject as { v1: Record<string, ServiceClientConstructor> };
  const made = new v1[service]!(`127.0.0.1:${ports.get(target)}`, credentials.createInsecure());
  clients.push(made);
  return made as unknown as Calls;
}

/** The one answer of a stream of parts. */
async function wholeOf(parts: AsyncIterable<object>): Promise<Record<string, unknown>> {
  for await (const part of parts) {
    const { whole } = part as { readonly whole?: Record<string, unknown> };
    if (whole !== undefined) return whole;
  }
  throw new Error("there is no answer");
}

function textsOf(texts: readonly string[]) {
  let end = 0;
  const ends = texts.map((text) => (end += Buffer.byteLength(text)));
  return { bytes: Buffer.from(texts.join("")), ends };
}

it("asks for the health", async () => {
  const client = new Client(`127.0.0.1:${ports.get("ingester")}`, credentials.createInsecure());
  clients.push(client);
  const same = (bytes: Buffer) => bytes;
  const path = "/grpc.health.v1.Health/Check";
  const answer = await new Promise<Buffer>((resolve, reject) =>
    client.makeUnaryRequest(path, same, same, Buffer.alloc(0), (error, found) =>
      error === null ? resolve(found as Buffer) : reject(error),
    ),
  );
  expect([...answer]).toEqual([0x08, 1]);
});

it("pushes a line, and finds it", async () => {
  const line = "a line of a plain client";
  const ns = BigInt(Date.now()) * 1_000_000n;
  const ingester = clientOf("ingester", "Ingester");
  const outcome = await new Promise((resolve, reject) =>
    ingester.Push!(
      {
        tenant: "plain",
        labels: {
          texts: textsOf(["app", "shop"]),
          ...{ nameEnds: [1], names: [0], lists: [0], values: [1] },
        },
        texts: textsOf(['{app="shop"}']),
        ...{ ordinals: [0], rowStarts: [0], rowEnds: [1] },
        seconds: [Number(ns / 1_000_000_000n)],
        nanos: [Number(ns % 1_000_000_000n)],
        ...{ lineStart: [0], lineLength: [line.length], metaStart: [0, 0] },
        ...{ metaNames: {}, levels: Buffer.from([0]), bytes: Buffer.from(line) },
      },
      (error, answer) => (error === null ? resolve(answer) : reject(error)),
    ),
  );
  expect(outcome).toEqual({});
  const answer = await wholeOf(
    clientOf("querier", "Querier").Query!(
      {
        tenants: ["plain"],
        plan: {
          log: {
            log: { matchers: [{ name: "app", op: "=", value: "shop" }] },
            fromNs: String(ns - 60_000_000_000n),
            toNs: String(ns + 60_000_000_000n),
            ...{ limit: 10, direction: "backward", nowNs: String(ns) },
          },
        },
        limits: { maxBytesRead: 0, maxMemoryBytes: 1e9 },
      },
      () => undefined,
    ),
  );
  const { streams } = answer.result as { streams: { rowCount: object; lines: { bytes: Buffer } } };
  expect([String(streams.rowCount), String(streams.lines.bytes)]).toEqual(["1", line]);
}, 60_000);
