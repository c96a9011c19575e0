import { describe, expect, it } from "@jest/globals";
import { decodeLz4, xxh32 } from "./lz4.js";

const maxBytes = 1024 * 1024;
const text = `${"hello ".repeat(9)}lz4 lz4 lz4 lz4`;

/** Made by the lz4 program: with a size and checksums of blocks, and with linked blocks. */
const checked = Buffer.from(
  "BCJNGHxARQAAAAAAAABwGwAAAG9oZWxsbyAGAB3wAGx6NCBsejQgbHo0IGx6NKN/rB0AAAAAdmJFMw==",
  "base64",
);
const linked = Buffer.from(
  "BCJNGGRApxsAAABvaGVsbG8gBgAd8ABsejQgbHo0IGx6NCBsejQAAAAAdmJFMw==",
  "base64",
);

describe("an lz4 frame", () => {
  it.each([
    ["with a size and checksums", checked, text],
    ["with linked blocks", linked, text],
    ["behind another", Buffer.concat([checked, linked]), text + text],
  ])("%s is decoded", (_, frame, want) => {
    expect(Buffer.from(decodeLz4(frame, maxBytes)).toString()).toBe(want);
  });

  it("that was cut or changed anywhere is refused, or gives no more than it may", () => {
    for (let i = 0; i < checked.length; i++) {
      expect(() => decodeLz4(checked.subarray(0, i), maxBytes)).toThrow("lz4: ");
      const changed = Buffer.from(checked);
      changed[i]! ^= 0x40;
      expect(() => decodeLz4(changed, maxBytes)).toThrow("lz4: ");
    }
  });

  it("that becomes more than it may is refused", () => {
    expect(() => decodeLz4(checked, text.length - 1)).toThrow("request body too large");
  });
});

it.each([
  ["", 0x02cc5d05],
  ["a", 0x550d7456],
  ["Nobody inspects the spammish repetition", 0xe2293b2f],
])("xxh32 of %j", (input, want) => {
  const bytes = Buffer.from(input);
  expect(xxh32(bytes, 0, bytes.length)).toBe(want);
});
