import { describe, expect, it } from "@jest/globals";
import { SkaldError } from "@skald/model";
import { ProtoReader, ProtoWriter } from "@skald/transport/protobuf";
import protobuf from "protobufjs";
import { decode, decodeRaw, encode, encodeRaw } from "./codec.js";
import type { Raw } from "./types.js";

const bare: Raw<"LogPlan"> = {
  log: { kind: "log", matchers: [], stages: [] },
  ...{ fromNs: 0n, toNs: 0n, limit: 0, direction: "forward", intervalNs: 0n, nowNs: 0n },
};
const full: Raw<"LogPlan"> = {
  log: {
    kind: "log",
    matchers: [
      { name: `ü ${"x".repeat(300)}`, op: "=~", value: "" },
      { name: "y".repeat(49), op: "=", value: "é" },
    ],
    stages: [
      { kind: "unpack" },
      { kind: "logfmt", strict: true, keepEmpty: false, extractions: [] },
    ],
  },
  fromNs: -(2n ** 63n),
  toNs: 2n ** 63n - 1n,
  shard: { index: 0, count: Number.MAX_SAFE_INTEGER },
  limit: -0,
  direction: "backward",
  intervalNs: 1n,
  nowNs: -1n,
  maxLineBytes: Number.NEGATIVE_INFINITY,
};

/** The same in a newer schema, read by the library that others use. */
const schema = protobuf.parse(`
  syntax = "proto3";
  message Empty {}
  message Matcher { string name = 1; string op = 2; string value = 3; }
  message Logfmt { bool strict = 1; bool keep_empty = 2; }
  message Stage { oneof kind { Logfmt logfmt = 4; Empty unpack = 7; } }
  message LogExpr { repeated Matcher matchers = 1; repeated Stage stages = 2; }
  message Shard { uint64 index = 1; uint64 count = 2; }
  message LogPlan {
    LogExpr log = 1; sfixed64 from_ns = 2; sfixed64 to_ns = 3; optional Shard shard = 4; double limit = 5;
    string direction = 6; sfixed64 interval_ns = 7; sfixed64 now_ns = 8; optional double max_line_bytes = 9;
    string new = 14; fixed32 newer = 15; uint64 newest = 16; double last = 17;
  }
  message CancelledCalls { repeated uint64 ids = 1; }`).root;

describe("a message", () => {
  it.each([
    ["with all its fields", full],
    ["with none", bare],
  ])("%s comes back as it was", (_name, value) => {
    expect(decodeRaw("LogPlan", encodeRaw("LogPlan", value))).toEqual(value);
  });

  it("is protobuf to others", () => {
    const type = schema.lookupType("LogPlan");
    const seen = type.toObject(type.decode(encode("LogPlan", full)), { longs: String });
    expect(seen).toMatchObject({
      log: {
        matchers: full.log.matchers.map(({ name, op }) => ({ name, op })),
        stages: [{ unpack: {} }, { logfmt: { strict: true } }],
      },
      fromNs: String(full.fromNs),
      toNs: String(full.toNs),
      shard: { count: String(Number.MAX_SAFE_INTEGER) },
      limit: -0,
      direction: "backward",
      maxLineBytes: Number.NEGATIVE_INFINITY,
    });
  });

  it("of a newer version is read without what is new", () => {
    const type = schema.lookupType("LogPlan");
    const newer = { log: {}, direction: "forward", new: "n", newer: 7, newest: 300, last: 1.5 };
    expect(decode("LogPlan", type.encode(type.fromObject(newer)).finish())).toEqual(bare);
  });

  it("with packed numbers is read as with single ones", () => {
    const type = schema.lookupType("CancelledCalls");
    const packed = type.encode(type.fromObject({ ids: [1, 300] })).finish();
    const single = encode("CancelledCalls", { ids: [1, 300] });
    expect([decode("CancelledCalls", packed), decode("CancelledCalls", single)]).toEqual([
      { ids: [1, 300] },
      { ids: [1, 300] },
    ]);
  });

  it("that is too deep is refused", () => {
    const writer = new ProtoWriter();
    const nest = (own: ProtoWriter, depth: number) => {
      if (depth > 0) own.nested(depth - 1, nest);
    };
    nest(writer, 200);
    const read = (reader: ProtoReader): void => {
      if (!reader.isAtEnd) reader.nested(read);
    };
    expect(() => read(new ProtoReader(writer.finish()))).toThrow(/more than 100 levels/);
  });

  it.each([
    ["without a field that it must have", "LogPlan", [], "it lacks log"],
    [
      "with a word that it does not know",
      "Matcher",
      [0x12, 1, 0x63],
      '"c" is none of =, !=, =~, !~',
    ],
    ["with a field of the wrong kind", "Matcher", [0x08, 1], "name has the wrong kind"],
    ["with half a number in an array", "U32Lists", [0x12, 2, 0, 0], "ends within a number"],
    ["with a number that is too large", "Shard", [0x08, ...Array(7).fill(0xff), 0x7f], "2^53"],
    ["with a number without an end", "Shard", [0x08, ...Array(20).fill(0xff)], "64 bits"],
    ["that is cut off", "Matcher", [0x0a, 5, 0x61], "it ends too soon"],
  ] as const)("%s is refused", (_name, message, bytes, text) => {
    expect(() => decode(message, Buffer.from(bytes))).toThrow(text);
  });

  it("that is damaged anywhere is read or refused, never more", () => {
    const good = encode("LogPlan", full);
    for (let at = 0; at < good.length; at++) {
      for (const flip of [1, 0x80, 0xff]) {
        const bytes = good.slice();
        bytes[at]! ^= flip;
        try {
          decode("LogPlan", bytes.subarray(0, flip === 0xff ? at : bytes.length));
        } catch (error) {
          expect(error).toBeInstanceOf(SkaldError);
          expect((error as SkaldError).code).toBe("invalid_argument");
        }
      }
    }
  });
});

it.each([
  ["leaves a message where it was written, if it takes most of that memory", 5_000_000, 5_250_000],
  ["copies a smaller one", 1000, 1002],
])("%s", (_, length, memory) => {
  const writer = new ProtoWriter(5_250_000);
  const bytes = Buffer.alloc(length, 1);
  writer.bytes(bytes);
  const written = writer.finish();
  expect(bytes.equals(new ProtoReader(written).bytes())).toBe(true);
  expect(written.buffer.byteLength).toBe(memory);
});
