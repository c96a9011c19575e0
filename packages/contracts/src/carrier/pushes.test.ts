import { describe, expect, it } from "@jest/globals";
import { labelsFromObject, unavailable } from "@skald/model";
import { assembleBatch, decodeBody } from "@skald/push";
import { makeBatch, makePushBody } from "@skald/testkit";
import type { GrpcConnection, Parts } from "@skald/transport/grpc";
import { encodeMessage } from "@skald/transport/protobuf";
import { ingesterOutcome } from "../codec/push.js";
import { remoteIngester } from "./ingester.js";

const { signal } = new AbortController();

/** An ingester that is called through nothing, and the messages and methods that it got. */
function fakeIngester({ takesBodies = false } = {}) {
  const messages: Parts[] = [];
  const methods: string[] = [];
  const state = { failure: undefined as unknown, takesBodies };
  const connection = {
    address: "",
    call: async (path: string, parts: Parts) => {
      methods.push(path.split("/")[2] as string);
      messages.push(parts);
      if (state.failure !== undefined) throw state.failure;
      return encodeMessage(ingesterOutcome, { refusals: [], takesBodies: state.takesBodies });
    },
  };
  const ingester = remoteIngester(connection as unknown as GrpcConnection);
  return { ingester, messages, methods, state };
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

  it("goes as its body once that was asked for, and in columns again when the ingester was lost", async () => {
    const request = { tenant: "t", batch: receivedBatch() };
    const { ingester, methods, state } = fakeIngester({ takesBodies: true });
    const push = () => ingester.push(request, { signal });
    expect(await push()).toEqual({ refusals: [] });
    expect(await push()).toEqual({ refusals: [] });
    state.failure = unavailable("lost");
    await expect(push()).rejects.toThrow("lost");
    state.failure = undefined;
    state.takesBodies = false;
    await push();
    await push();
    expect(methods).toEqual(["Push", "PushBody", "PushBody", "Push", "Push"]);
  });

  it("goes in columns where there is no body", async () => {
    const { ingester, methods } = fakeIngester({ takesBodies: true });
    for (const batch of [batchOf(10, 1), batchOf(10, 1)])
      await ingester.push({ tenant: "t", batch }, { signal });
    expect(methods).toEqual(["Push", "Push"]);
  });

  it("is encoded as a body once", async () => {
    const request = { tenant: "t", batch: receivedBatch() };
    const replicas = [1, 2].map(() => fakeIngester({ takesBodies: true }));
    for (const { ingester } of replicas) {
      await ingester.push(request, { signal });
      await ingester.push(request, { signal });
    }
    expect(replicas[1]?.messages[1]).toBe(replicas[0]?.messages[1]);
  });

  it("is another message for another tenant", async () => {
    const batch = batchOf(10, 1);
    const { ingester, messages } = fakeIngester();
    await ingester.push({ tenant: "a", batch }, { signal });
    await ingester.push({ tenant: "b", batch }, { signal });
    expect(messages[0]).not.toEqual(messages[1]);
  });
});
