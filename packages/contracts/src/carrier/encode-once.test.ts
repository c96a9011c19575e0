import { describe, expect, it } from "@jest/globals";
import { makeBatch } from "@skald/testkit";
import type { GrpcConnection, Parts } from "@skald/transport/grpc";
import { remoteIngester } from "./ingester.js";

const { signal } = new AbortController();

/** An ingester that is called through nothing, and the messages that it got. */
function fakeIngester() {
  const messages: Parts[] = [];
  const connection = {
    address: "",
    call: async (_path: string, parts: Parts) => {
      messages.push(parts);
      return new Uint8Array(0);
    },
  };
  return { ingester: remoteIngester(connection as unknown as GrpcConnection), messages };
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

  it("is another message for another tenant", async () => {
    const batch = batchOf(10, 1);
    const { ingester, messages } = fakeIngester();
    await ingester.push({ tenant: "a", batch }, { signal });
    await ingester.push({ tenant: "b", batch }, { signal });
    expect(messages[0]).not.toEqual(messages[1]);
  });
});
