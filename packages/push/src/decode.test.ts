import { deflateRawSync, gzipSync } from "node:zlib";
import { describe, expect, it } from "@jest/globals";
import type { RawPush } from "@skald/kernels";
import { makePushBody, snappyLiterals } from "@skald/testkit";
import { decodeBody, maxDecodedBytes, type PushBody } from "./decode.js";

const json = Buffer.from(
  '{"streams":[{"stream":{"a":"b"},"values":[["1700000000000000001","x"]]}]}',
);
const legacy = Buffer.from(
  '{"streams":[{"labels":"{a=\\"b\\"}","entries":[{"ts":"2023-11-14T22:13:20.000000001Z","line":"x"}]}]}',
);
const protobuf = makePushBody([
  { labels: '{a="b"}', rows: [{ ns: 1700000000000000001n, line: "x" }] },
]);

function body(
  format: PushBody["format"],
  bytes: Uint8Array,
  encoding: PushBody["encoding"] = "identity",
) {
  return { format, encoding, body: bytes };
}

function lineOf(push: RawPush, row: number): string {
  const start = push.lineStart[row]!;
  return Buffer.from(push.bytes.subarray(start, start + push.lineLength[row]!)).toString();
}

describe("decodeBody", () => {
  it.each<[string, PushBody]>([
    ["json", body("json", json)],
    ["legacy json", body("legacy_json", legacy)],
    ["protobuf", body("protobuf", protobuf)],
    ["gzip json", body("json", gzipSync(json), "gzip")],
    ["gzip protobuf", body("protobuf", gzipSync(protobuf), "gzip")],
    ["deflate json", body("json", deflateRawSync(json), "deflate")],
    [
      "two gzip members",
      body(
        "json",
        Buffer.concat([gzipSync(json.subarray(0, 9)), gzipSync(json.subarray(9))]),
        "gzip",
      ),
    ],
  ])("reads %s", (_, input) => {
    const push = decodeBody(input);
    expect([push.streamCount, push.rowCount]).toEqual([1, 1]);
    expect([push.seconds[0], push.nanos[0]]).toEqual([1700000000, 1]);
    expect(lineOf(push, 0)).toBe("x");
  });

  it.each<[string, PushBody, string, RegExp]>([
    ["empty json", body("json", Buffer.alloc(0)), "invalid_argument", /^EOF$/],
    [
      "empty gzip json",
      body("json", gzipSync(Buffer.alloc(0)), "gzip"),
      "invalid_argument",
      /^EOF$/,
    ],
    [
      "empty protobuf",
      body("protobuf", Buffer.alloc(0)),
      "invalid_argument",
      /^snappy: corrupt input$/,
    ],
    ["json as protobuf", body("protobuf", json), "invalid_argument", /^snappy: corrupt input$/],
    [
      "truncated snappy",
      body("protobuf", protobuf.subarray(0, protobuf.length >> 1)),
      "invalid_argument",
      /^snappy: corrupt input$/,
    ],
    [
      "snappy header of 4 GB",
      body("protobuf", Uint8Array.of(0xff, 0xff, 0xff, 0xff, 0x0f, 0)),
      "too_large",
      /^request body too large/,
    ],
    [
      "snappy header beyond 32 bits",
      body("protobuf", Uint8Array.of(0xff, 0xff, 0xff, 0xff, 0x7f, 0)),
      "invalid_argument",
      /^snappy/,
    ],
    [
      "snappy that never ends",
      body("protobuf", Uint8Array.of(0x10, 0xfc, 0xfa, 0xff, 0xff, 0xff)),
      "invalid_argument",
      /^snappy/,
    ],
    [
      "wrong wire type",
      body("protobuf", snappyLiterals(Uint8Array.of(0x08, 1))),
      "invalid_argument",
      /wire type/,
    ],
    [
      "field longer than its message",
      body("protobuf", snappyLiterals(Uint8Array.of(0x0a, 0x7f, 0))),
      "invalid_argument",
      /^protobuf/,
    ],
    [
      "truncated gzip",
      body("json", gzipSync(json).subarray(0, 30), "gzip"),
      "invalid_argument",
      /^unexpected EOF$/,
    ],
    ["no gzip at all", body("json", json, "gzip"), "invalid_argument", /^gzip: /],
    [
      "broken deflate",
      body("json", Uint8Array.of(7, 1, 2, 3), "deflate"),
      "invalid_argument",
      /^deflate: /,
    ],
    ["array instead of an object", body("json", Buffer.from("[]")), "invalid_argument", /^json: /],
    ["cut json", body("json", json.subarray(0, 11)), "invalid_argument", /^json: /],
    [
      "numeric timestamp",
      body("json", Buffer.from('{"streams":[{"stream":{},"values":[[1,"x"]]}]}')),
      "invalid_argument",
      /timestamp/,
    ],
    [
      "deep json",
      body("json", Buffer.from(`{"x":${"[".repeat(1e6)}`)),
      "invalid_argument",
      /^json: /,
    ],
    [
      "deep legacy json",
      body("legacy_json", Buffer.from(`{"x":${"[".repeat(1e6)}`)),
      "invalid_argument",
      /^json: /,
    ],
  ])("refuses %s", (_, input, code, message) => {
    let thrown: unknown;
    try {
      decodeBody(input);
    } catch (error) {
      thrown = error;
    }
    expect(thrown).toMatchObject({
      name: "SkaldError",
      code,
      message: expect.stringMatching(message),
    });
  });

  it("refuses bombs at the limit and takes what just fits", () => {
    const bomb = gzipSync(Buffer.alloc(16 << 20));
    const limit = 1 << 16;
    expect(() => decodeBody(body("json", bomb, "gzip"), limit)).toThrow(/^request body too large/);
    const deflated = deflateRawSync(Buffer.alloc(16 << 20));
    expect(() => decodeBody(body("json", deflated, "deflate"), limit)).toThrow(
      /^request body too large/,
    );
    expect(() => decodeBody(body("json", json), json.length - 1)).toThrow(
      /^request body too large/,
    );
    expect(decodeBody(body("json", gzipSync(json), "gzip"), json.length).rowCount).toBe(1);
  });

  it("takes as much as it is told to, however well it is compressed", () => {
    const wide = Buffer.concat([json, Buffer.alloc(8 << 20, " ")]);
    for (const [bytes, encoding] of [
      [gzipSync(wide), "gzip"],
      [deflateRawSync(wide), "deflate"],
    ] as const) {
      expect(bytes.length).toBeLessThan(20_000);
      const input = body("json", bytes, encoding);
      expect(decodeBody(input, 9 << 20).rowCount).toBe(1);
      expect(() => decodeBody(input, 8 << 20)).toThrow(/^request body too large/);
    }
  });

  it("takes no more than a thread can hold, whatever it is told", () => {
    const wide = body("json", Buffer.alloc(maxDecodedBytes + 1, " "));
    expect(() => decodeBody(wide, 2 ** 40)).toThrow(/more than 134217728 bytes/);
  });

  it.each(["gzip", "deflate"] as const)(
    "refuses a %s body that is nothing but a bomb",
    (encoding) => {
      const squeeze = encoding === "gzip" ? gzipSync : deflateRawSync;
      const wide = (bytes: number) => Buffer.concat([json, Buffer.alloc(bytes, " ")]);
      expect(decodeBody(body("json", squeeze(wide(31 << 20)), encoding)).rowCount).toBe(1);
      const bomb = body("json", squeeze(wide(33 << 20)), encoding);
      expect(() => decodeBody(bomb)).toThrow(
        `its ${encoding} inflates to more than 33554432 bytes; beyond 33554432 bytes at most 32 times the size`,
      );
    },
  );

  it("refuses more streams than a push may have", () => {
    const streams = Buffer.alloc(2 * 1_000_000);
    for (let i = 0; i < streams.length; i += 2) streams[i] = 0x0a;
    expect(() => decodeBody(body("protobuf", snappyLiterals(streams)))).toThrow(
      /more than 131072 streams/,
    );
  });
});
