import { describe, expect, it } from "@jest/globals";
import { decodePush, decodeRaw } from "@skald/contracts/codec";
import {
  type Batch,
  type BatchSource,
  formatLabels,
  labelsFromObject,
  parseStreamText,
} from "@skald/model";
import { assembleBatch, decodeBody } from "@skald/push";
import { makeBatch, makePushBody, snappyLiterals } from "@skald/testkit";
import { uncompressSync } from "snappy";
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

/** A batch of streams with these names, of a row each, and the body that it came as. */
function receivedBatch(names = ["shop"], source: Partial<BatchSource> = {}) {
  const streams = names.map((app, ordinal) => {
    return { ordinal, text: formatLabels(labelsFromObject({ app })) };
  });
  const body = makePushBody(
    streams.map(({ text }, i) => ({
      labels: text,
      rows: [{ ns: BigInt(i), line: `line ${i}`, metadata: [["n", `${i}`]] }],
    })),
  );
  const own = { format: "protobuf", encoding: "identity", body, ...source } as const;
  return assembleBatch(decodeBody(own), {
    ...{ streams, source: own },
    dropped: new Uint32Array(0),
    levels: new Uint8Array(names.length),
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
    const part = { tenant: "t", whole: batch };
    await Promise.all(replicas.map(({ ingester }) => ingester.pushPart(part, { signal })));
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
    const part = { tenant: "t", whole: receivedBatch() };
    const replicas = [fakeIngester(), fakeIngester()];
    await Promise.all(replicas.map(({ ingester }) => ingester.pushPart(part, { signal })));
    expect(replicas[1]?.messages[0]).toBe(replicas[0]?.messages[0]);
  });
});

describe("a part of a batch", () => {
  const names = ["a", "b", "c", "d"];
  const streams = Uint32Array.of(1, 3);

  async function sent(whole: Batch) {
    const { ingester, messages } = fakeIngester();
    await ingester.pushPart({ tenant: "t", whole, streams }, { signal });
    expect(messages).toHaveLength(1);
    const { batch } = decodePush(messages[0]!);
    expect(linesOf(batch)).toEqual(["b: line 1 n=1", "d: line 3 n=3"]);
    return decodeRaw("PushRequest", messages[0]!);
  }

  it("goes as stretches of the body that it came as", async () => {
    const { metaStart, body } = await sent(receivedBatch(names));
    expect(metaStart).toHaveLength(0);
    const rows = [1, 3].map((n) => ({
      labels: `{app="${names[n]}"}`,
      rows: [{ ns: BigInt(n), line: `line ${n}`, metadata: [["n", `${n}`]] as const }],
    }));
    expect(uncompressed(body)).toEqual(uncompressed(makePushBody(rows)));
  });

  it("goes in columns where the body has more than streams", async () => {
    const { body } = receivedBatch(names).source!;
    // Field 2, which is not ours, with a text.
    const more = Buffer.concat([uncompressed(body), Buffer.from([0x12, 1, 0x61])]);
    const { metaStart } = await sent(receivedBatch(names, { body: snappyLiterals(more) }));
    expect(metaStart).toHaveLength(3);
  });

  it("goes in columns where the body is in another form", async () => {
    const streamsOfJson = names.map((app, i) => ({
      stream: { app },
      values: [[`${i}`, `line ${i}`, { n: `${i}` }]],
    }));
    const body = Buffer.from(JSON.stringify({ streams: streamsOfJson }));
    const { metaStart } = await sent(receivedBatch(names, { format: "json", body }));
    expect(metaStart).toHaveLength(3);
  });

  it("is in memory that serves again once all have it", async () => {
    const replicas = [fakeIngester(), fakeIngester()];
    const part = () => ({ tenant: "t", whole: receivedBatch(names), streams });
    const first = part();
    await Promise.all(replicas.map(({ ingester }) => ingester.pushPart(first, { signal })));
    await replicas[0]!.ingester.pushPart(part(), { signal });
    const [before, after] = replicas[0]!.messages;
    expect(after?.buffer).toBe(before?.buffer);
  });

  it("is in memory of its own while a call that failed may read it", async () => {
    const call = () => Promise.reject(new Error("gone"));
    const dead = remoteIngester({ address: "", call } as unknown as GrpcConnection);
    const { ingester, messages } = fakeIngester();
    const part = { tenant: "t", whole: receivedBatch(names), streams };
    const failed = dead.pushPart(part, { signal }).catch((error: Error) => error.message);
    await ingester.pushPart(part, { signal });
    expect(await failed).toBe("gone");
    await ingester.pushPart({ ...part }, { signal });
    expect(messages[1]?.buffer).not.toBe(messages[0]?.buffer);
  });
});

function uncompressed(body: Uint8Array): Buffer {
  return uncompressSync(Buffer.from(body)) as Buffer;
}

/** Each row as text. */
function linesOf({ bytes, streams, lineStart, lineLength, ...batch }: Batch): string[] {
  const cut = (start: number, length: number) =>
    Buffer.from(bytes.subarray(start, start + length)).toString();
  return streams.flatMap(({ text, rowStart, rowEnd }) =>
    Array.from({ length: rowEnd - rowStart }, (_, i) => {
      const row = rowStart + i;
      const pair = batch.metaStart[row]!;
      const value = cut(batch.metaValueStart[pair]!, batch.metaValueLength[pair]!);
      const name = batch.metaNames[batch.metaName[pair]!];
      return `${parseStreamText(text).values[0]}: ${cut(lineStart[row]!, lineLength[row]!)} ${name}=${value}`;
    }),
  );
}
