import type { Ingester, PushRefusal, PushRequest } from "@skald/contracts";
import { type Batch, type Clock, levelInMetadata, levelNames } from "@skald/model";
import { defaultLimits } from "@skald/runtime/config";
import { Metrics } from "@skald/runtime/metrics";
import type { PushLimits } from "../config.js";
import { Distributor, type DistributorOptions, type IncomingPush } from "../distributor.js";
import { createDistributorMetrics } from "../metrics.js";
import type { PushResponse } from "../push-response.js";

/** 2026-11-20T10:00:00Z */
export const testNowMs = 1_795_168_800_000;
export const testNowNs = BigInt(testNowMs) * 1_000_000n;

/** An ingester that keeps what it is given, and refuses what it is told to. */
export interface FakeIngester extends Pick<Ingester, "push"> {
  readonly pushes: PushRequest[];
  refusals: PushRefusal[];
  failure: Error | undefined;
}

export interface Harness {
  readonly distributor: Distributor;
  readonly ingester: FakeIngester;
  readonly clock: { ms: number } & Clock;
  limits: PushLimits;
  /** Pushes JSON of the v1 form unless told otherwise. */
  push(body: unknown, request?: Partial<IncomingPush>): Promise<PushResponse>;
  /** All rows stored so far. */
  stored(): StoredRow[];
  /** All metrics as they are scraped. */
  text(): Promise<string>;
  /** Value of a counter, summed over what the labels leave open. */
  counter(name: string, labels?: Record<string, string>): Promise<number>;
}

export interface StoredRow {
  readonly stream: string;
  readonly ns: bigint;
  readonly line: string;
  readonly metadata: Readonly<Record<string, string>>;
}

export function makeHarness(
  limits: Partial<PushLimits> = {},
  options: Partial<DistributorOptions> = {},
): Harness {
  const clock = { ms: testNowMs, nowMs: () => clock.ms };
  const ingester = makeIngester();
  const metrics = new Metrics();
  const harness = { limits: { ...defaultLimits, ...limits } };
  const distributor = new Distributor({
    ingester,
    ingesterName: "all",
    limitsOf: () => harness.limits,
    metrics: createDistributorMetrics(metrics),
    clock,
    maxDecompressedBytes: 64 * 1024 * 1024,
    ...options,
  });
  return Object.assign(harness, {
    distributor,
    ingester,
    clock,
    push: (body: unknown, request: Partial<IncomingPush> = {}) =>
      distributor.push("t1", {
        contentType: "application/json",
        contentEncoding: undefined,
        style: "v1",
        body: body instanceof Uint8Array ? body : Buffer.from(JSON.stringify(body)),
        ...request,
      }),
    stored: () => ingester.pushes.flatMap((push) => rowsOf(push.batch)),
    text: async () => (await metrics.read()).text,
    counter: (name: string, labels: Record<string, string> = {}) => sumOf(metrics, name, labels),
  });
}

/** A JSON push of one stream; times are ns as text, or ms relative to now. */
export function jsonPush(
  stream: Record<string, unknown>,
  values: readonly (readonly [number | string, ...unknown[]])[],
): { streams: unknown[] } {
  return {
    streams: [
      {
        stream,
        values: values.map(([time, ...rest]) => [
          typeof time === "string" ? time : String(testNowNs + BigInt(Math.round(time * 1e6))),
          ...rest,
        ]),
      },
    ],
  };
}

function makeIngester(): FakeIngester {
  const fake: FakeIngester = {
    pushes: [],
    refusals: [],
    failure: undefined,
    push: (request) => {
      if (fake.failure !== undefined) return Promise.reject(fake.failure);
      fake.pushes.push(request);
      return Promise.resolve({ refusals: fake.refusals });
    },
  };
  return fake;
}

/** The rows of a batch, with a level code spelled out as the metadata that readers see. */
export function rowsOf(batch: Batch): StoredRow[] {
  const bytes = Buffer.from(batch.bytes);
  return batch.streams.flatMap(({ text, rowStart, rowEnd }) =>
    Array.from({ length: rowEnd - rowStart }, (_, i) => {
      const row = rowStart + i;
      const code = batch.levels[row]!;
      const level = code === levelInMetadata ? undefined : levelNames[code];
      const metadata: Record<string, string> = {};
      for (let pair = batch.metaStart[row]!; pair < batch.metaStart[row + 1]!; pair++) {
        const start = batch.metaValueStart[pair]!;
        const name = batch.metaNames[batch.metaName[pair]!]!;
        metadata[name] = bytes.toString("utf8", start, start + batch.metaValueLength[pair]!);
      }
      const start = batch.lineStart[row]!;
      return {
        stream: text,
        ns: BigInt(batch.seconds[row]!) * 1_000_000_000n + BigInt(batch.nanos[row]!),
        line: bytes.toString("utf8", start, start + batch.lineLength[row]!),
        metadata: level ? { ...metadata, detected_level: level } : metadata,
      };
    }),
  );
}

async function sumOf(
  metrics: Metrics,
  name: string,
  labels: Record<string, string>,
): Promise<number> {
  const { text } = await metrics.read();
  const wanted = Object.entries(labels).map(([key, value]) => `${key}="${value}"`);
  return text
    .split("\n")
    .filter((line) => line.startsWith(`${name}{`) && wanted.every((pair) => line.includes(pair)))
    .reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(" "))), 0);
}
