import { describe, expect, it } from "@jest/globals";
import type { PartTaker } from "@skald/contracts";
import { decodePush, decodeRaw } from "@skald/contracts/codec";
import { type GrpcConnection, remoteIngester } from "@skald/rpc";
import { makePushBody } from "@skald/testkit";
import type { IncomingPush } from "./distributor.js";
import { makeHarness, rowsOf, type StoredRow, testNowNs } from "./testing/harness.js";
import { makeReplicas } from "./testing/replicas.js";

const hourNs = 3_600_000_000_000n;

/** Streams of a push: rows of one are too old, another has no labels in protobuf, the others differ in what they have. */
const streams = Array.from({ length: 40 }, (_, i) => ({
  app: `app-${i}`,
  rows: Array.from({ length: 1 + (i % 4) }, (_, row) => ({
    ns: testNowNs - (i % 5 === 0 && row % 2 === 0 ? 24n * 400n * hourNs : BigInt(row)),
    line: i % 3 === 0 ? `level=error line ${row} grün` : `line ${row} of ${i}`,
    metadata: row % 2 === 0 ? { "trace.id": `t${i}`, a: `${row}` } : {},
  })),
}));

const forms: Readonly<Record<string, () => Partial<IncomingPush> & { body: Uint8Array }>> = {
  protobuf: () => ({
    contentType: "application/x-protobuf",
    body: makePushBody(
      streams.map(({ app, rows }, i) => ({
        labels: i % 7 === 1 ? "{}" : `{app="${app}"}`,
        rows: rows.map(({ metadata, ...row }) => ({ ...row, metadata: Object.entries(metadata) })),
      })),
    ),
  }),
  json: () => ({
    body: Buffer.from(
      JSON.stringify({
        streams: streams.map(({ app, rows }) => ({
          stream: { app },
          values: rows.map(({ ns, line, metadata }) => [String(ns), line, metadata]),
        })),
      }),
    ),
  }),
  otlp: () => ({
    style: "otlp",
    body: Buffer.from(
      JSON.stringify({
        resourceLogs: streams.map(({ app, rows }) => ({
          resource: { attributes: [{ key: "service.name", value: { stringValue: app } }] },
          scopeLogs: [
            {
              logRecords: rows.map(({ ns, line, metadata }) => ({
                timeUnixNano: String(ns),
                body: { stringValue: line },
                attributes: Object.entries(metadata).map(([key, stringValue]) => ({
                  ...{ key, value: { stringValue } },
                })),
              })),
            },
          ],
        })),
      }),
    ),
  }),
};

/** Ingesters of a ring that are called through messages, and what they got. */
function remoteReplicas(count: number) {
  const rows: StoredRow[] = [];
  const bodies: boolean[] = [];
  const call = async (_: unknown, message: Uint8Array) => {
    bodies.push(decodeRaw("PushRequest", message).metaStart.length === 0);
    rows.push(...rowsOf(decodePush(message).batch));
    return { refusals: [] };
  };
  const taker: PartTaker = remoteIngester({ address: "", call } as unknown as GrpcConnection);
  const { replicator } = makeReplicas(count, { ingesterOf: () => taker });
  return { replicator, rows, bodies };
}

describe.each([3, 7])("a push to a ring of %i, three copies", (count) => {
  it.each(Object.keys(forms))("in the form of %s", async (form) => {
    const { body, ...request } = forms[form]!();
    const options = { otlpIndexLabels: ["service.name"] };
    const alone = makeHarness({}, options);
    const answer = await alone.push(body, request);
    const { replicator, rows, bodies } = remoteReplicas(count);
    const ring = makeHarness({}, { ...options, ingester: replicator });
    const held: Promise<unknown>[] = [];
    const hold = (until: Promise<unknown>) => void held.push(until);
    expect(await ring.push(body, { ...request, hold })).toEqual(answer);
    await Promise.all(held);
    expect(answer).toMatchObject({ status: 400 });
    const stored = alone.stored().map(textOf);
    expect(stored.length).toBeGreaterThan(40);
    expect(rows.map(textOf).sort()).toEqual([...stored, ...stored, ...stored].sort());
    expect(new Set(bodies)).toEqual(new Set([form === "protobuf"]));
    expect(bodies.length).toBe(count);
  });
});

function textOf(row: StoredRow): string {
  return JSON.stringify({ ...row, ns: String(row.ns) });
}
