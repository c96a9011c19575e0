import { afterEach, describe, expect, it } from "@jest/globals";
import { type ErrorCode, type ErrorOptions, errorStatus, SkaldError } from "@skald/model";
import {
  callTestGrpc,
  connectTestGrpc,
  failureOf,
  startTestGrpc,
  stopTestGrpc,
} from "./testing/grpc.js";

afterEach(stopTestGrpc);

describe("errors", () => {
  const all: [ErrorCode, ErrorOptions?][] = [
    ...(Object.keys(errorStatus) as ErrorCode[]).map((code): [ErrorCode] => [code]),
    ["rate_limited", { retryAfterSeconds: 1.5 }],
    ["invalid_argument", { status: 422, detail: { line: 1, text: "ü", list: [1, null] } }],
  ];
  it.each(all)("come back as they were thrown: %s %j", async (code, options = {}) => {
    const thrown = new SkaldError(code, `no, "thing" ⚠ ${code}`, options);
    const { address } = await startTestGrpc({ Fail: () => Promise.reject(thrown) });
    const { message, status, detail, retryAfterSeconds, ...rest } = await failureOf(
      callTestGrpc(connectTestGrpc(address), "Fail"),
    );
    expect({ message, status, detail, retryAfterSeconds, code: rest.code }).toEqual({
      message: thrown.message,
      status: thrown.status,
      detail: thrown.detail,
      retryAfterSeconds: thrown.retryAfterSeconds,
      code,
    });
  });

  it("that are very long are cut", async () => {
    const thrown = new SkaldError("unprocessable", "é".repeat(100_000), {
      detail: "x".repeat(100_000),
    });
    const { address } = await startTestGrpc({ Fail: () => Promise.reject(thrown) });
    const error = await failureOf(callTestGrpc(connectTestGrpc(address), "Fail"));
    expect(error.code).toBe("unprocessable");
    expect(error.message).toMatch(/^é{1000,}…$/);
  });

  it("of ours are told to whoever runs the server, not to the caller", async () => {
    const told: unknown[] = [];
    const fault = new TypeError("/secret/path");
    const { address } = await startTestGrpc(
      { Fail: () => Promise.reject(fault) },
      { onError: (error, path) => told.push([error, path]) },
    );
    const error = await failureOf(callTestGrpc(connectTestGrpc(address), "Fail"));
    expect([error.code, error.message]).toEqual(["internal", "internal server error"]);
    expect(told).toEqual([[fault, "/skald.v1.Test/Fail"]]);
  });

  it("and all else that ends is told to whoever counts, by methods that there are", async () => {
    const told: unknown[] = [];
    const thrown = new SkaldError("rate_limited", "slower");
    const { address } = await startTestGrpc(
      { Fail: () => Promise.reject(thrown), Echo: async (request) => request },
      { onEnd: ({ path, error }) => told.push([path, error]) },
    );
    const connection = connectTestGrpc(address);
    await callTestGrpc(connection, "Echo");
    await failureOf(callTestGrpc(connection, "Fail"));
    await failureOf(callTestGrpc(connection, "Other"));
    await callTestGrpc(connection, "Echo");
    expect(told).toEqual([
      ["/skald.v1.Test/Echo", undefined],
      ["/skald.v1.Test/Fail", thrown],
      ["/skald.v1.Test/Echo", undefined],
    ]);
  });
});
