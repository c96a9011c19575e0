import zlib from "node:zlib";
import { describe, expect, it } from "@jest/globals";
import { paddingBytes } from "@skald/model";
import fc from "fast-check";
import { zstd } from "./zstd.js";
import { openZstdDecoder } from "./zstd-handle.js";

const hasBuiltin = typeof zlib.zstdCompressSync === "function";

function room(bytes: number): Uint8Array {
  return new Uint8Array(bytes + paddingBytes).subarray(0, bytes);
}

describe("openZstdDecoder", () => {
  it("is there exactly where Node decompresses itself", () => {
    expect(openZstdDecoder() !== undefined).toBe(hasBuiltin);
  });

  it("reads frames one after the other, also after damaged ones", () => {
    const decoder = openZstdDecoder();
    if (decoder === undefined) return expect(hasBuiltin).toBe(false);
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 5000 }), fc.nat(), (raw, cut) => {
        const frame = zlib.zstdCompressSync(Buffer.concat([raw, raw]));
        const into = room(raw.length * 2);
        const short = frame.subarray(0, cut % frame.length);
        expect(decoder.decode(short, into)).toBeUndefined();
        expect(decoder.decode(frame, into)).toBe(into.length);
        expect(Buffer.compare(into, Buffer.concat([raw, raw]))).toBe(0);
      }),
    );
  });

  it("tells a frame that is longer than the room", () => {
    const decoder = openZstdDecoder();
    if (decoder === undefined) return expect(hasBuiltin).toBe(false);
    const frame = zlib.zstdCompressSync(Buffer.alloc(1000, "ab"));
    expect(decoder.decode(frame, room(999))).toBe(1000);
    expect(decoder.decode(frame, room(10))).not.toBe(10);
  });
});

describe("zstd.decompress into memory", () => {
  const memory = { take: room };
  const raw = Buffer.from("one line after the other ".repeat(50));
  const frame = zstd.compress(raw, 1);

  it("gives the same bytes as without", () => {
    const read = zstd.decompress(frame, raw.length, memory);
    expect(Buffer.compare(read, zstd.decompress(frame, raw.length))).toBe(0);
    expect(read.buffer.byteLength - read.byteLength).toBeGreaterThanOrEqual(paddingBytes);
  });

  it("refuses damaged frames and wrong lengths", () => {
    const half = frame.subarray(0, frame.length / 2);
    expect(() => zstd.decompress(half, raw.length, memory)).toThrow("zstd frame");
    expect(() => zstd.decompress(frame, raw.length - 1, memory)).toThrow("zstd frame states");
  });
});
