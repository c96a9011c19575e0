import { type ClientHttp2Session, type ClientHttp2Stream, connect, constants } from "node:http2";
import { createConnection } from "node:net";
import { afterEach, describe, expect, it } from "@jest/globals";
import { rapidResets, until } from "@skald/testkit";
import type { ByteHandler } from "./byte-calls.js";
import type { EndedCall, GrpcServerOptions } from "./server.js";
import { startTestGrpc, stopTestGrpc } from "./testing/grpc.js";

const preface = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
const settings = Buffer.from([0, 0, 0, 4, 0, 0, 0, 0, 0]);
const looseData = Buffer.from([0, 0, 4, 0, 0, 0, 0, 0, 9, 1, 2, 3, 4]);
const path = "/outside.Service/Take";
const sessions: ClientHttp2Session[] = [];

afterEach(async () => {
  for (const session of sessions.splice(0)) session.destroy();
  await stopTestGrpc();
});

interface Ended {
  readonly status: unknown;
  readonly text: string;
  readonly details: Buffer | undefined;
  readonly message: Buffer;
}

/** A server with one byte method, and a client that sends it frames as they are given. */
async function setUp(handler: ByteHandler, options: Partial<GrpcServerOptions> = {}) {
  const { server, address } = await startTestGrpc({}, options);
  server.addBytes(path, handler);
  const session = connect(`http://${address}`);
  session.on("error", () => undefined);
  sessions.push(session);
  const open = (headers: Record<string, string> = {}, to = path): ClientHttp2Stream => {
    const stream = session.request({
      ...{ ":method": "POST", ":path": to, "content-type": "application/grpc", te: "trailers" },
      ...headers,
    });
    stream.on("error", () => undefined);
    return stream;
  };
  const call = (frame: Uint8Array, headers: Record<string, string> = {}): Promise<Ended> => {
    const stream = open(headers);
    stream.end(frame);
    return endOf(stream);
  };
  return { server, session, address, open, call };
}

function endOf(stream: ClientHttp2Stream): Promise<Ended> {
  return new Promise((resolve, reject) => {
    const heads: Record<string, unknown> = {};
    const parts: Buffer[] = [];
    stream.on("response", (headers) => Object.assign(heads, headers));
    stream.on("trailers", (headers) => Object.assign(heads, headers));
    stream.on("data", (part) => parts.push(part));
    stream.once("close", () => {
      if (heads[":status"] === undefined) reject(new Error(`reset with ${stream.rstCode}`));
      const details = heads["grpc-status-details-bin"];
      resolve({
        status: heads["grpc-status"] ?? heads[":status"],
        text: decodeURIComponent(String(heads["grpc-message"] ?? "")),
        details: details === undefined ? undefined : Buffer.from(String(details), "base64"),
        message: Buffer.concat(parts),
      });
    });
  });
}

function frameOf(text: string, { flag = 0, length = Buffer.byteLength(text) } = {}): Buffer {
  const frame = Buffer.alloc(5 + Buffer.byteLength(text));
  frame[0] = flag;
  frame.writeUInt32BE(length, 1);
  frame.write(text, 5);
  return frame;
}

/** Answers with what it read. */
function reader(maxBytes = 100, onChunk: (bytes: number) => void = () => undefined): ByteHandler {
  return async (call) => {
    try {
      const { encoding, bytes } = await call.read(maxBytes, onChunk, Buffer.alloc);
      const message = Buffer.from(`${encoding} ${Buffer.from(bytes)}`);
      return { code: 0, message, httpStatus: 200 };
    } catch (error) {
      return { code: 3, text: String(error), details: Buffer.from("why"), httpStatus: 400 };
    }
  };
}

describe("a byte call", () => {
  it("gives the handler the message as it was sent, and the caller its answer", async () => {
    const { call } = await setUp(reader());
    expect(await call(frameOf("hello"))).toMatchObject({
      status: "0",
      message: frameOf("identity hello"),
    });
    const packed = await call(frameOf("packed", { flag: 1 }), { "grpc-encoding": "gzip" });
    expect(packed.message).toEqual(frameOf("gzip packed"));
    const plain = await call(frameOf("plain"), { "grpc-encoding": "gzip" });
    expect(plain.message).toEqual(frameOf("identity plain"));
  });

  it("is answered with a status, its text and its details", async () => {
    const handler: ByteHandler = async () => {
      return { code: 8, text: "100 % of «it»\n", details: Buffer.from("d"), httpStatus: 429 };
    };
    const { call } = await setUp(handler);
    expect(await call(frameOf("x"))).toEqual({
      ...{ status: "8", text: "100 % of «it»\n", details: Buffer.from("d") },
      message: Buffer.alloc(0),
    });
  });

  it.each([
    ["nothing", "", {}, /no message: 0 bytes/],
    ["half a frame", frameOf("x").subarray(0, 3), {}, /no message: 3 bytes/],
    ["less than it states", frameOf("x", { length: 9 }), {}, /9 bytes, and 1 came/],
    ["more than it states", frameOf("xyz", { length: 1 }), {}, /1 bytes, and 3 came/],
    ["4 GiB, as it states", frameOf("x", { length: 2 ** 32 - 1 }), {}, /and 1 came/],
    ["a flag of its own", frameOf("x", { flag: 7 }), {}, /does not say how/],
    ["a secret compression", frameOf("x", { flag: 1 }), {}, /does not say how/],
    ["more than the limit", frameOf("x".repeat(101)), {}, /limit is 105 bytes/],
  ] as const)("of %s fails alone", async (_, frame, headers, text) => {
    const { call } = await setUp(reader());
    const ended = await call(Buffer.from(frame), headers);
    expect(ended).toMatchObject({ status: "3", details: Buffer.from("why") });
    expect(ended.text).toMatch(text);
    expect((await call(frameOf("next"))).status).toBe("0");
  });

  it.each(["deflate", "zstd", "x".repeat(5000)])(
    "in a compression that is not read is refused: %#",
    async (encoding) => {
      const { call } = await setUp(reader());
      const ended = await call(frameOf("x", { flag: 1 }), { "grpc-encoding": encoding });
      expect([ended.status, ended.text]).toEqual(["12", expect.stringContaining("use gzip")]);
    },
  );

  it("of another media type is 415, and other paths are the library's", async () => {
    const { open, call } = await setUp(reader());
    const stream = open({ "content-type": "text/plain" });
    stream.end();
    expect((await endOf(stream)).status).toBe(415);
    const other = open({}, "/outside.Service/Other");
    other.end();
    expect((await endOf(other)).status).toBe("12");
    const get = open({ ":method": "GET" });
    get.end();
    expect((await endOf(get)).status).toBe("12");
    expect((await call(frameOf("next"))).status).toBe("0");
  });

  it("is refused in the middle of a message that is too large, and sees the reason", async () => {
    const booked: number[] = [];
    const onChunk = (bytes: number) => void booked.push(bytes);
    const { open, call, server, session } = await setUp(reader(100_000, onChunk));
    const stream = open();
    stream.write(frameOf("", { length: 50_000_000 }));
    const part = Buffer.alloc(64 * 1024);
    const feed = () => {
      while (!stream.destroyed && !stream.closed && stream.write(part));
      if (!stream.destroyed && !stream.closed) stream.once("drain", feed);
    };
    feed();
    expect(await endOf(stream)).toMatchObject({ status: "3" });
    expect(booked.reduce((sum, bytes) => sum + bytes, 0)).toBeLessThanOrEqual(100_005);
    expect((await call(frameOf("next"))).status).toBe("0");
    // Bytes that nobody read do not hold up the end.
    session.destroy();
    await server.stop();
  });

  it("that stays half is refused in time, and books nothing after that", async () => {
    const booked: number[] = [];
    const { open } = await setUp(
      reader(100, (bytes) => void booked.push(bytes)),
      {
        readTimeoutMs: 50,
      },
    );
    const stream = open();
    stream.write(frameOf("x", { length: 50 }));
    const ended = await endOf(stream);
    expect([ended.status, ended.text]).toEqual([
      "3",
      expect.stringContaining("within 50 ms (server.http_server_read_timeout)"),
    ]);
    expect(booked).toEqual([6]);
  });

  it("of a client that leaves ends without an answer", async () => {
    const seen: string[] = [];
    const handler: ByteHandler = async (call) => {
      const answer = await reader()(call);
      seen.push(`${answer.text} ${call.isGone()}`);
      return answer;
    };
    const { open, call } = await setUp(handler);
    const stream = open();
    stream.write(frameOf("x", { length: 50 }));
    await new Promise((resolve) => setImmediate(resolve));
    stream.close(constants.NGHTTP2_CANCEL);
    await until(() => seen.length === 1);
    expect(seen).toEqual([expect.stringMatching(/cancelled by the client true/)]);
    expect((await call(frameOf("next"))).status).toBe("0");
  });

  it("fails for a fault of its handler, which the caller learns nothing of", async () => {
    const faults: unknown[] = [];
    const ends: EndedCall[] = [];
    const fault = new TypeError("secret");
    const { call, server } = await setUp(
      async () => {
        throw fault;
      },
      { onError: (error) => void faults.push(error), onEnd: (end) => void ends.push(end) },
    );
    const ended = await call(frameOf("x"));
    expect(ended.status).toBe("13");
    expect(ended.text).not.toContain("secret");
    expect(faults).toEqual([fault]);
    expect(ends).toEqual([{ path, durationMs: expect.any(Number), httpStatus: 500 }]);
    server.addBytes(path, reader());
    await call(frameOf("x"));
    expect(ends[1]).toEqual({ path, durationMs: expect.any(Number) });
  });

  it("need not name the cluster, other calls do", async () => {
    const { call } = await setUp(reader(), { clusters: ["a"] });
    expect((await call(frameOf("x"))).status).toBe("0");
  });

  it("is cut with its connection when the client resets calls all the time", async () => {
    const cuts: unknown[] = [];
    const { call, address } = await setUp(reader(), { onCut: (reason) => void cuts.push(reason) });
    const type = { "content-type": "application/grpc" };
    await sendBytes(address, rapidResets(900, { ":method": "POST", ":path": path, ...type }));
    expect(cuts).toEqual(["resets"]);
    expect((await call(frameOf("next"))).status).toBe("0");
  });

  it.each([
    ["no HTTP/2", Buffer.from("GET / HTTP/1.1\r\n\r\n")],
    ["noise after the preface", Buffer.concat([preface, Buffer.alloc(4096, 0xff)])],
    ["data of a stream that is not there", Buffer.concat([preface, settings, looseData])],
  ])("survives connections with %s", async (_, bytes) => {
    const { call, address } = await setUp(reader());
    await sendBytes(address, bytes);
    expect((await call(frameOf("next"))).status).toBe("0");
  });
});

/** Sends bytes on a connection of their own; resolves when the server has closed it. */
async function sendBytes(address: string, bytes: Uint8Array): Promise<void> {
  const [host, port] = address.split(":");
  const socket = createConnection(Number(port), host);
  socket.on("error", () => undefined);
  socket.resume();
  const closed = new Promise((resolve) => socket.once("close", resolve));
  socket.write(bytes);
  await closed;
}
