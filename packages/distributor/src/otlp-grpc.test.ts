import { describe, expect, it } from "@jest/globals";
import { SkaldError } from "@skald/model";
import type { ByteCall } from "@skald/rpc";
import type { ArrivingPush } from "./http.js";
import { createOtlpHandler } from "./otlp-grpc.js";
import type { PushResponse } from "./push-response.js";
import { encodeRpcStatus } from "./rpc-status.js";

function callOf(text: string, isGone = false): ByteCall {
  return {
    ...{ path: "/x/Y", headers: { "x-scope-orgid": "a" }, isGone: () => isGone },
    read: async (maxBytes, book) => {
      book(text.length + maxBytes);
      return { encoding: "gzip", bytes: Buffer.from(text) };
    },
  };
}

/** Answers a call as a door does that answers each push so. */
async function answerOf(given: PushResponse, text = "records") {
  const pushes: unknown[] = [];
  const door = {
    serve: async (tenant: string, push: ArrivingPush) => {
      const booked: number[] = [];
      const read = await push.read(1000, (bytes) => void booked.push(bytes), Buffer.alloc as never);
      pushes.push({ tenant, booked, isGone: push.isGone(), ...read });
      return given;
    },
  };
  const handler = createOtlpHandler(door, ({ headers }) => String(headers["x-scope-orgid"]));
  return { answer: await handler(callOf(text, true)), pushes };
}

describe("OTLP over gRPC", () => {
  it("is a push of OTLP with the bytes as they came", async () => {
    const { answer, pushes } = await answerOf({ status: 204 });
    expect(answer).toEqual({ code: 0, message: new Uint8Array(0), httpStatus: 204 });
    expect(pushes).toEqual([
      {
        ...{ tenant: "a", booked: [1007], isGone: true, style: "otlp" },
        ...{ contentType: "application/x-protobuf", contentEncoding: "gzip" },
        body: Buffer.from("records"),
      },
    ]);
  });

  it.each([
    [400, 3, "InvalidArgument"],
    [413, 3, "InvalidArgument"],
    [422, 3, "InvalidArgument"],
    [401, 16, "Unauthenticated"],
    [403, 7, "PermissionDenied"],
  ])("answers %d as %d, %s, which is never sent again", async (status, code) => {
    const { answer } = await answerOf({ status, text: "why" });
    const details = encodeRpcStatus({ code, message: "why" });
    expect(answer).toEqual({ code, text: "why", details, httpStatus: status });
  });

  it.each([
    [429, 8, { retryAfterSeconds: 7 }],
    [503, 14, {}],
    [500, 14, {}],
  ])("answers %d as %d, with a pause after which to send again", async (status, code, retry) => {
    const { answer } = await answerOf({ status, text: "later", ...retry });
    const details = encodeRpcStatus({ code, message: "later", retryAfterSeconds: 1, ...retry });
    expect(answer).toEqual({ code, text: "later", details, httpStatus: status });
    expect(Buffer.from(details).toString("latin1")).toContain("google.rpc.RetryInfo");
  });

  it("answers what is refused on purpose with a success by its name and a count", async () => {
    const { answer } = await answerOf({ status: 260, text: "blocked", rejected: 300 });
    expect(answer.code).toBe(0);
    const partial = [0x08, 0xac, 0x02, 0x12, 7, ...Buffer.from("blocked")];
    expect([...(answer.message ?? [])]).toEqual([0x0a, partial.length, ...partial]);
  });

  it("answers a call without records with a success", async () => {
    const { answer } = await answerOf({ status: 422, text: "no streams" }, "");
    expect(answer).toMatchObject({ code: 0, httpStatus: 204 });
  });

  it("cuts a text that a client could not take", async () => {
    const { answer } = await answerOf({ status: 400, text: "x".repeat(60_000) });
    expect(answer.text).toHaveLength(1000);
    expect(answer.details?.length).toBeLessThan(1100);
  });

  it("reads nothing of a call whose tenant is refused", async () => {
    const door = { serve: () => Promise.reject(new Error("read")) };
    const refused = new SkaldError("unauthenticated", "no org id");
    const handler = createOtlpHandler(door, () => {
      throw refused;
    });
    expect(await handler(callOf("x"))).toMatchObject({ code: 16, text: "no org id" });
  });
});

describe("encodeRpcStatus", () => {
  it("writes the message of protobuf", () => {
    const encoded = Buffer.from(encodeRpcStatus({ code: 8, message: "m", retryAfterSeconds: 3 }));
    const type = "type.googleapis.com/google.rpc.RetryInfo";
    const any = [0x0a, type.length, ...Buffer.from(type), 0x12, 4, 0x0a, 2, 0x08, 3];
    expect([...encoded]).toEqual([0x08, 8, 0x12, 1, 0x6d, 0x1a, any.length, ...any]);
  });
});
