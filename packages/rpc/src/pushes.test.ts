import { describe, expect, it } from "@jest/globals";
import { decodeRaw } from "@skald/contracts/codec";
import { labelsFromObject } from "@skald/model";
import { assembleBatch, decodeBody } from "@skald/push";
import { makeBatch, makePushBody } from "@skald/testkit";
import type { GrpcConnection } from "./client.js";
import { remoteIngester } from "./ingester.js";

const { signal } = new AbortController();

/** An ingester that is called through nothing, and the messages that it got. */
function fakeIngester() {
  const messages: Uint8Array[] = [];
  const connection = {
    address: "",
    call: async (_: unknown, message: Uint8Array) => {
      messages.push(message);
      return { refusals: [] };
    },
  };
  const ingester = remoteIngester(connection as unknown as GrpcConnection);
  return { ingester, messages };
}

/** A batch with the body that it came as. */
function receivedBatch() {
  const line = "a line";
  const body = makePushBody([{ labels: '{app="shop"}', rows: [{ ns: 1n, line }] }]);
  const source = { format: "protobuf", encoding: "identity", body } as const;
  return assembleBatch(decodeBody(source), {
    streams: [{ ordinal: 0, labels: labelsFromObject({ app: "shop" }), text: '{app="shop"}' }],
    dropped: new Uint32Array(0),
    levels: new Uint8Array(1),
    source,
  });
}

function batchOf(lineBytes: number, rows: number) {
  const line = "x".repeat(lineBytes);
  return makeBatch([
    {
      labels: { app: "shop" },
      rows: Array.from({ length: rows }, (_, i) => ({ ns: BigInt(i), line, metadata: {} })),
    },
  ]);
}

describe("a batch for several ingesters", () => {
  it.each([
    { rows: 3, lineBytes: 10, messages: 1 },
    { rows: 5, lineBytes: 1_500_000, messages: 5 },
  ])("is encoded once, as $messages messages", async ({ rows, lineBytes, messages }) => {
    const batch = batchOf(lineBytes, rows);
    const replicas = [fakeIngester(), fakeIngester(), fakeIngester()];
    for (const { ingester } of replicas) await ingester.push({ tenant: "t", batch }, { signal });
    const [first, ...others] = replicas.map((one) => one.messages);
    expect(first).toHaveLength(messages);
    for (const other of others)
      for (const [i, parts] of other.entries()) expect(parts).toBe(first?.[i]);
  });

  it("goes as the body that it came as", async () => {
    const request = { tenant: "t", batch: receivedBatch() };
    const { ingester, messages } = fakeIngester();
    expect(await ingester.push(request, { signal })).toEqual({ refusals: [] });
    const { metaStart, body } = decodeRaw("PushRequest", messages[0]!);
    expect([metaStart.length, body.length]).toEqual([0, request.batch.source?.body.length]);
  });

  it("goes in columns where there is no body", async () => {
    const { ingester, messages } = fakeIngester();
    await ingester.push({ tenant: "t", batch: batchOf(10, 1) }, { signal });
    const { metaStart, body } = decodeRaw("PushRequest", messages[0]!);
    expect([metaStart.length, body.length]).toEqual([2, 0]);
  });

  it("is encoded as a body once", async () => {
    const request = { tenant: "t", batch: receivedBatch() };
    const replicas = [fakeIngester(), fakeIngester()];
    for (const { ingester } of replicas) await ingester.push(request, { signal });
    expect(replicas[1]?.messages[0]).toBe(replicas[0]?.messages[0]);
  });

  it("is another message for another tenant", async () => {
    const batch = batchOf(10, 1);
    const { ingester, messages } = fakeIngester();
    await ingester.push({ tenant: "a", batch }, { signal });
    await ingester.push({ tenant: "b", batch }, { signal });
    expect(messages[0]).not.toEqual(messages[1]);
  });
});
