import zlib from "node:zlib";
import { expect, it } from "@jest/globals";
import fc from "fast-check";
import { openZstdEncoder, paramsOf } from "./zstd-handle.js";

const hasBuiltin = typeof zlib.zstdCompressSync === "function";

it("is there exactly where Node compresses itself", () => {
  expect(openZstdEncoder(1) !== undefined).toBe(hasBuiltin);
});

it.each([1, 6, 9])(
  "makes the frames of zstdCompressSync at level %i, one after the other",
  (level) => {
    const encoder = openZstdEncoder(level);
    if (encoder === undefined) return expect(hasBuiltin).toBe(false);
    const part = fc.oneof(
      fc.uint8Array({ maxLength: 3000 }),
      fc.string({ maxLength: 20 }).map((text) => Buffer.from(text.repeat(200))),
    );
    fc.assert(
      fc.property(fc.array(part, { maxLength: 30 }), (parts) => {
        const raw = Buffer.concat(parts);
        const frame = encoder.encode(raw)!;
        expect(Buffer.compare(frame, zlib.zstdCompressSync(raw, { params: paramsOf(level) }))).toBe(
          0,
        );
      }),
    );
  },
);
