import { describe, expect, it } from "@jest/globals";
import { paddingBytes } from "@skald/model";
import { loadWasmZstd, type Zstd, zstd, zstdContentBytes } from "./zstd.js";

const wasm = await loadWasmZstd();
const implementations: [string, Zstd][] = [
  [zstd.name, zstd],
  ["wasm", wasm],
];

function sample(size: number): Uint8Array {
  return Uint8Array.from({ length: size }, (_, i) => ((i * i) % 251) & 0x3f);
}

describe.each(implementations)("zstd of %s", (_, codec) => {
  it.each([0, 1, 255, 256, 300, 65_791, 65_792, 300_000, 2_000_000])(
    "gives back %i bytes, with padding behind them",
    (size) => {
      const raw = sample(size);
      const stored = codec.compress(raw, 1);
      expect(zstdContentBytes(stored)).toBe(size);
      const back = codec.decompress(stored, size);
      expect(Buffer.compare(back, raw)).toBe(0);
      const behind = back.buffer.byteLength - back.byteOffset - back.byteLength;
      expect(behind).toBeGreaterThanOrEqual(paddingBytes);
    },
  );

  it("reads what the other wrote", () => {
    const raw = sample(100_000);
    for (const [, other] of implementations) {
      expect(Buffer.compare(codec.decompress(other.compress(raw, 6), raw.length), raw)).toBe(0);
    }
  });

  it("refuses another size than expected before it decompresses", () => {
    const stored = codec.compress(sample(1000), 1);
    expect(() => codec.decompress(stored, 999)).toThrow(
      "states 1000 bytes of content, 999 expected",
    );
    expect(() => codec.decompress(stored, 1001)).toThrow("1001 expected");
  });

  it("refuses a frame that states less than it holds", () => {
    const stored = codec.compress(sample(70_000), 1);
    const view = new DataView(stored.buffer, stored.byteOffset, stored.byteLength);
    const sizeAt = stored[4]! & 0x20 ? 5 : 6;
    view.setUint32(sizeAt, 66_000, true);
    expect(zstdContentBytes(stored)).toBe(66_000);
    expect(() => codec.decompress(stored, 66_000)).toThrow("zstd frame");
  });

  it.each([
    ["nothing", new Uint8Array(0)],
    ["zeros", new Uint8Array(100)],
    ["a frame cut short", zstd.compress(sample(10_000), 1).subarray(0, 50)],
  ])("refuses %s", (_name, stored) => {
    expect(() => codec.decompress(stored, 10_000)).toThrow("zstd frame");
  });
});
