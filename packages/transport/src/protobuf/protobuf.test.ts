import { describe, expect, it } from "@jest/globals";
import { SkaldError } from "@skald/model";
import protobuf from "protobufjs";
import {
  bool,
  decodeMessage,
  double,
  encodeMessage,
  f64s,
  i64s,
  int64,
  later,
  type MessageCodec,
  oneOf,
  text,
  u8s,
  u32s,
  uint,
} from "./codec.js";
import { empty, field, type Member, message, optional, repeated, union } from "./message.js";

type Shape =
  | { readonly kind: "dot" }
  | { readonly kind: "box"; readonly inner: Shape; readonly name?: string };
const shape: MessageCodec<Shape> = union<Shape>({
  dot: [1, empty],
  box: [
    2,
    message<Member<Shape, "box">>({
      inner: field(
        1,
        later(() => shape),
      ),
      name: optional(2, text),
    }),
  ],
});

interface Sample {
  readonly text: string;
  readonly count: number;
  readonly share: number;
  readonly ns: bigint;
  readonly yes: boolean;
  readonly maybe?: number;
  readonly word: "a" | "b";
  readonly texts: readonly string[];
  readonly shapes: readonly Shape[];
  readonly u8s: Uint8Array;
  readonly u32s: Uint32Array;
  readonly f64s: Float64Array;
  readonly i64s: BigInt64Array;
}
const sample: MessageCodec<Sample> = message<Sample>({
  text: field(1, text),
  count: field(2, uint),
  share: field(3, double),
  ns: field(4, int64),
  yes: field(5, bool),
  maybe: optional(6, uint),
  word: field(7, oneOf(["a", "b"])),
  texts: repeated(8, text),
  shapes: repeated(9, shape),
  u8s: field(10, u8s),
  u32s: field(11, u32s),
  f64s: field(12, f64s),
  i64s: field(13, i64s),
});

const full: Sample = {
  text: `ü ${"x".repeat(300)}`,
  count: Number.MAX_SAFE_INTEGER,
  share: -0,
  ns: -(2n ** 63n),
  yes: true,
  maybe: 0,
  word: "b",
  texts: ["", "é", "plain", "y".repeat(49)],
  shapes: [
    { kind: "dot" },
    { kind: "box", inner: { kind: "box", inner: { kind: "dot" }, name: "z".repeat(200) } },
  ],
  u8s: new Uint8Array([0, 255]),
  u32s: new Uint32Array([0, 2 ** 32 - 1]),
  f64s: new Float64Array([Number.NaN, Number.NEGATIVE_INFINITY, -0]),
  i64s: new BigInt64Array([-1n, 2n ** 63n - 1n]),
};
const bare: Sample = {
  text: "",
  count: 0,
  share: 0,
  ns: 0n,
  yes: false,
  word: "a",
  texts: [],
  shapes: [],
  u8s: new Uint8Array(0),
  u32s: new Uint32Array(0),
  f64s: new Float64Array(0),
  i64s: new BigInt64Array(0),
};

/** The same in the language of protobuf, read by a library that is not ours. */
const schema = protobuf.parse(`
  syntax = "proto3";
  message Dot {}
  message Box { Shape inner = 1; optional string name = 2; }
  message Shape { oneof kind { Dot dot = 1; Box box = 2; } }
  message Sample {
    string text = 1; uint64 count = 2; double share = 3; sfixed64 ns = 4; bool yes = 5;
    optional uint64 maybe = 6; string word = 7; repeated string texts = 8; repeated Shape shapes = 9;
    bytes u8s = 10; repeated fixed32 u32s = 11; repeated double f64s = 12; repeated sfixed64 i64s = 13;
    string new = 14; fixed32 newer = 15; uint64 newest = 16; double last = 17;
  }`).root;

describe("a message", () => {
  it.each([
    ["with all its fields", full],
    ["with none", bare],
  ])("%s comes back as it was", (_name, value) => {
    expect(decodeMessage(sample, encodeMessage(sample, value))).toEqual(value);
  });

  it("is protobuf to others", () => {
    const type = schema.lookupType("Sample");
    const seen = type.toObject(type.decode(encodeMessage(sample, full)), { longs: String });
    expect(seen).toMatchObject({
      text: full.text,
      count: String(full.count),
      ns: String(full.ns),
      maybe: "0",
      word: "b",
      texts: full.texts,
      shapes: [{ dot: {} }, { box: { inner: { box: { inner: { dot: {} } } } } }],
      u32s: [...full.u32s],
      i64s: [...full.i64s].map(String),
    });
  });

  it("of a newer version is read without what is new", () => {
    const type = schema.lookupType("Sample");
    const newer = { word: "a", text: "t", new: "n", newer: 7, newest: 300, last: 1.5 };
    const bytes = type.encode(type.fromObject(newer)).finish();
    expect(decodeMessage(sample, bytes)).toEqual({ ...bare, text: "t" });
  });

  it("that is too deep is refused", () => {
    let value: Shape = { kind: "dot" };
    for (let i = 0; i < 200; i++) value = { kind: "box", inner: value };
    const bytes = encodeMessage(shape, value);
    expect(() => decodeMessage(shape, bytes)).toThrow(/more than 100 levels/);
  });

  it.each([
    ["without a field that it must have", Buffer.alloc(0), "it lacks word"],
    ["with a word that it does not know", Buffer.from([0x3a, 1, 0x63]), '"c" is none of a, b'],
    ["with a field of the wrong kind", Buffer.from([0x08, 1]), "text has the wrong kind"],
    ["with half a number in an array", Buffer.from([0x5a, 2, 0, 0]), "ends within a number"],
    ["with a number that is too large", Buffer.from([0x10, ...Array(7).fill(0xff), 0x7f]), "2^53"],
    ["with a number without an end", Buffer.from([0x10, ...Array(20).fill(0xff)]), "64 bits"],
    ["that is cut off", Buffer.from([0x0a, 5, 0x61]), "it ends too soon"],
  ])("%s is refused", (_name, bytes, text) => {
    expect(() => decodeMessage(sample, bytes)).toThrow(text);
  });

  it("that is damaged anywhere is read or refused, never more", () => {
    const good = encodeMessage(sample, full);
    for (let at = 0; at < good.length; at++) {
      for (const flip of [1, 0x80, 0xff]) {
        const bytes = good.slice();
        bytes[at]! ^= flip;
        try {
          decodeMessage(sample, bytes.subarray(0, flip === 0xff ? at : bytes.length));
        } catch (error) {
          expect(error).toBeInstanceOf(SkaldError);
          expect((error as SkaldError).code).toBe("invalid_argument");
        }
      }
    }
  });
});
