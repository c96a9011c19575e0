import { afterEach, describe, expect, it } from "@jest/globals";
import { SkaldError } from "@skald/model";
import type { GrpcServerOptions, IncomingCall } from "./server.js";
import {
  connectTestGrpc,
  echo,
  type GrpcStreamHandler,
  startTestGrpc,
  stopTestGrpc,
  testMethod,
} from "./testing/grpc.js";

const KiB = 1024;
const { signal } = new AbortController();
const request = Buffer.from("ask");
const method = testMethod("Many");

afterEach(stopTestGrpc);

async function open(many: GrpcStreamHandler, options: Partial<GrpcServerOptions> = {}) {
  const { server, address } = await startTestGrpc({ Echo: echo }, options, { Many: many });
  return { server, connection: connectTestGrpc(address, { maxReceiveBytes: 600 * KiB }) };
}

async function drain(messages: AsyncIterable<Uint8Array>) {
  const texts: string[] = [];
  try {
    for await (const message of messages) texts.push(Buffer.from(message).toString());
  } catch (error) {
    return { texts, error: error as SkaldError };
  }
  return { texts };
}

/** Gives one message and then nothing until the call ends, which `ended` tells with the reason. */
function endless() {
  let end = (_reason: unknown): void => undefined;
  const ended = new Promise<unknown>((resolve) => {
    end = resolve;
  });
  const many = async function* (_: Uint8Array, call: IncomingCall) {
    yield Buffer.from("first");
    await new Promise((resolve) => call.signal.addEventListener("abort", resolve));
    end(call.signal.reason);
  };
  return { many, ended };
}

describe("an answer of many messages", () => {
  it("has each as it was given, of whatever size", async () => {
    const texts = [0, 1, 200, 256 * KiB, 256 * KiB + 1, 599 * KiB, 3].map((size, i) =>
      String(i).repeat(size),
    );
    const { connection } = await open(async function* (asked) {
      expect(Buffer.from(asked).toString()).toBe("ask");
      for (const text of texts) yield Buffer.from(text);
    });
    const found = await drain(connection.stream(method, request, { signal }));
    expect(found.error).toBeUndefined();
    expect(found.texts.map(({ length }) => length)).toEqual(texts.map(({ length }) => length));
    expect(found.texts).toEqual(texts);
  });

  it("may have none", async () => {
    const { connection } = await open(async function* () {});
    expect(await drain(connection.stream(method, request, { signal }))).toEqual({ texts: [] });
  });

  it("ends with the error that it was ended with, behind what it had", async () => {
    const faults: unknown[] = [];
    const many: GrpcStreamHandler = async function* (asked) {
      if (Buffer.from(asked).toString() === "ask") yield Buffer.from("one");
      throw new SkaldError("rate_limited", "too much", { detail: { limit: 5 } });
    };
    const { connection } = await open(many, { onError: (error) => faults.push(error) });
    const late = await drain(connection.stream(method, request, { signal }));
    expect(late.texts).toEqual(["one"]);
    expect(late.error).toMatchObject({ code: "rate_limited", message: "too much" });
    const early = await drain(connection.stream(method, new Uint8Array(0), { signal }));
    expect(early).toMatchObject({ texts: [], error: { detail: { limit: 5 } } });
    expect(faults).toEqual([]);
  });

  it("is refused when a message is larger than the caller takes", async () => {
    const { connection } = await open(async function* () {
      yield Buffer.from("small");
      yield Buffer.alloc(601 * KiB);
    });
    const { error } = await drain(connection.stream(method, request, { signal }));
    expect(error?.code).toBe("too_large");
  });

  it("is made no faster than it is read", async () => {
    let made = 0;
    const { connection } = await open(async function* () {
      for (; made < 1000; made++) yield Buffer.alloc(64 * KiB, 97);
    });
    const messages = connection.stream(method, request, { signal });
    await messages.next();
    // Others of the connection are not held up: rounds there and back, after which nothing more is on its way.
    for (let round = 0; round < 200; round++)
      await connection.call(testMethod("Echo"), request, { signal });
    const before = made;
    // The window of the stream, the memory of both sockets, and some messages on both sides.
    expect(before).toBeLessThan(250);
    let read = 1;
    for await (const _ of messages) read++;
    expect(read).toBe(1000);
  });
});

describe("a stream that ends early", () => {
  it("aborts the handler when the reader leaves", async () => {
    const { many, ended } = endless();
    const { connection } = await open(many);
    for await (const _ of connection.stream(method, request, { signal })) break;
    expect(await ended).toMatchObject({ code: "cancelled" });
  });

  it("aborts the handler with the signal, and throws its reason", async () => {
    const { many, ended } = endless();
    const { connection } = await open(many);
    const abort = new AbortController();
    const messages = connection.stream(method, request, { signal: abort.signal });
    await messages.next();
    const next = messages.next();
    abort.abort(new Error("enough"));
    await expect(next).rejects.toThrow("enough");
    expect(await ended).toMatchObject({ code: "cancelled" });
  });

  it("is unavailable when the other side is lost", async () => {
    const { many, ended } = endless();
    const { server, connection } = await open(many);
    const messages = connection.stream(method, request, { signal });
    await messages.next();
    const next = messages.next();
    await server.kill();
    await expect(next).rejects.toMatchObject({ code: "unavailable" });
    await ended;
  });

  it("ends at the deadline", async () => {
    const { many } = endless();
    const { connection } = await open(many);
    const deadlineMs = Date.now() + 30;
    const { error } = await drain(connection.stream(method, request, { signal, deadlineMs }));
    expect(error?.code).toBe("deadline_exceeded");
  });

  it("is unavailable when there is no such method", async () => {
    const { connection } = await open(endless().many);
    const { error } = await drain(connection.stream(testMethod("No"), request, { signal }));
    expect(error?.code).toBe("unavailable");
  });
});
