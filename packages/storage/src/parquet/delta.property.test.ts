import { describe, expect, it } from "@jest/globals";
import { errorCodeOf, paddingBytes } from "@skald/model";
import { testRuns } from "@skald/testkit";
import fc from "fast-check";
import { ByteWriter } from "../bytes.js";
import { decodeByteArrays, decodeDelta, encodeDelta, encodeLengths } from "./delta.js";
import { decodeHybrid, encodeHybrid, encodeRun } from "./hybrid.js";

const counts = [0, 1, 2, 31, 32, 33, 34, 127, 128, 129, 130, 257, 300];

function padded(writer: ByteWriter): Uint8Array {
  const bytes = new Uint8Array(writer.length + paddingBytes).fill(0xaa);
  bytes.set(writer.view());
  return bytes.subarray(0, writer.length);
}

function roundTrip(values: Float64Array, base: bigint): Float64Array {
  const out = new ByteWriter(1);
  encodeDelta(out, values, values.length, base);
  const page = decodeDelta(padded(out), values.length, base);
  expect(page.end).toBe(out.length);
  return page.values;
}

describe("delta encoding", () => {
  it.each(counts)("gives back %i values", (count) => {
    const values = Float64Array.from({ length: count }, (_, i) => (i * i * 7919) % 100_003);
    expect(roundTrip(values, 1_795_132_800_000_000_000n)).toEqual(values);
  });

  it("gives back values of any width", () => {
    const value = fc.oneof(
      fc.integer({ min: 0, max: 3 }),
      fc.integer({ min: -(2 ** 31), max: 2 ** 31 }),
      fc.maxSafeInteger().map((n) => Math.trunc(n / 4)),
    );
    fc.assert(
      fc.property(
        fc.array(value, { maxLength: 400 }),
        fc.bigInt({ min: -(2n ** 62n), max: 2n ** 62n }),
        (list, base) => {
          const values = Float64Array.from(list, (v) => v + 0);
          expect(roundTrip(values, base)).toEqual(values);
        },
      ),
    );
  });

  it.each(Array.from({ length: 51 }, (_, width) => width))("packs deltas of %i bits", (width) => {
    const most = 2 ** width - 1;
    let total = 0;
    const values = Float64Array.from({ length: 66 }, (_, i) => {
      // Up and down, so that the sum stays small: the least delta is negative then.
      total += i % 2 === 0 ? Math.floor(most / 2) : -Math.ceil(most / 2);
      return total;
    });
    expect(roundTrip(values, 0n)).toEqual(values);
  });

  it("writes what the format's own example says", () => {
    const out = new ByteWriter();
    encodeDelta(out, Float64Array.of(7, 5, 3, 1, 2, 3, 4, 5), 8, 0n);
    // 128 | 4 | 8 | zigzag 7 | zigzag -2 | widths 2 0 0 0 | deltas 0 0 0 3 3 3 3, padded to 32
    expect([...out.view()]).toEqual([
      0x80, 0x01, 4, 8, 14, 3, 2, 0, 0, 0, 0b11000000, 0b00111111, 0, 0, 0, 0, 0, 0,
    ]);
  });

  it("refuses a wrong count, a cut page, and a base that is too far away", () => {
    const out = new ByteWriter();
    const values = Float64Array.from({ length: 200 }, (_, i) => i * i);
    encodeDelta(out, values, 200, 2n ** 62n);
    const page = padded(out);
    expect(() => decodeDelta(page, 199, 2n ** 62n)).toThrow("200 values, 199 expected");
    expect(() => decodeDelta(page, 200, 0n)).toThrow("too far");
    for (let length = 0; length < page.length; length++) {
      expect(() => decodeDelta(page.subarray(0, length), 200, 2n ** 62n)).toThrow("corrupt page");
    }
  });
});

describe("lengths", () => {
  it.each(counts)("of %i values come back as offsets", (count) => {
    const lengths = Uint32Array.from({ length: count }, (_, i) => (i * 37) % 101);
    const out = new ByteWriter();
    encodeLengths(out, lengths, count);
    const total = lengths.reduce((sum, length) => sum + length, 0);
    out.append(new Uint8Array(total).fill(7));
    const page = decodeByteArrays(padded(out), count);
    expect(page.bytes.byteLength).toBe(total);
    let end = 0;
    for (let i = 0; i < count; i++) {
      end += lengths[i]!;
      expect(page.offsets[i + 1]).toBe(end);
    }
  });

  it("of more than 25 bits come back", () => {
    const lengths = Uint32Array.of(0, 2 ** 26, 3, 2 ** 26 - 5, 0);
    const out = new ByteWriter();
    encodeLengths(out, lengths, lengths.length);
    out.append(new Uint8Array(lengths.reduce((sum, length) => sum + length, 0)));
    expect([...decodeByteArrays(padded(out), 5).offsets]).toEqual([
      0,
      0,
      2 ** 26,
      2 ** 26 + 3,
      2 ** 27 - 2,
      2 ** 27 - 2,
    ]);
  });

  it("that do not add up to the bytes are refused", () => {
    const out = new ByteWriter();
    encodeLengths(out, Uint32Array.of(3, 4), 2);
    out.append(new Uint8Array(6));
    expect(() => decodeByteArrays(padded(out), 2)).toThrow("lengths give 7 bytes, 6 are there");
  });

  it("that are negative are refused", () => {
    const out = new ByteWriter();
    encodeDelta(out, Float64Array.of(5, -3, 4), 3, 0n);
    out.append(new Uint8Array(6));
    expect(() => decodeByteArrays(padded(out), 3)).toThrow("corrupt page");
  });
});

describe("runs and packed values", () => {
  const stretches = fc.array(
    fc.tuple(fc.integer({ min: 0, max: 20 }), fc.integer({ min: 0, max: 1000 })),
  );

  it("come back", () => {
    fc.assert(
      fc.property(stretches, fc.integer({ min: 10, max: 24 }), (list, width) => {
        const values = Uint32Array.from(
          list.flatMap(([count, value]) => new Array<number>(count).fill(value)),
        );
        const out = new ByteWriter(1);
        encodeHybrid(out, values, values.length, width);
        const back = new Uint32Array(values.length);
        expect(decodeHybrid(out.view(), width, back, back.length)).toBe(out.length);
        expect(back).toEqual(values);
      }),
    );
  });

  it("come back as levels of one bit", () => {
    fc.assert(
      fc.property(fc.array(fc.boolean(), { maxLength: 200 }), (list) => {
        const values = Uint8Array.from(list, Number);
        const out = new ByteWriter(1);
        encodeHybrid(out, values, values.length, 1);
        const back = new Uint8Array(values.length);
        expect(decodeHybrid(out.view(), 1, back, back.length)).toBe(out.length);
        expect(back).toEqual(values);
      }),
    );
  });

  it("are one run when all are equal", () => {
    const out = new ByteWriter();
    encodeHybrid(out, new Uint8Array(10_000).fill(1), 10_000, 1);
    const run = new ByteWriter();
    encodeRun(run, 1, 10_000, 1);
    expect(out.view()).toEqual(run.view());
    expect(out.length).toBe(4);
  });
});

it("never throws anything but internal on bytes of any kind, and never hangs", () => {
  const bytes = fc.oneof(
    fc.uint8Array({ maxLength: 300 }),
    // A good header makes the rest be looked at.
    fc
      .uint8Array({ maxLength: 300 })
      .map((rest) => Uint8Array.from([0x80, 0x01, 4, 0x90, 0x03, 2, ...rest])),
  );
  const attempt = (decode: () => void) => {
    try {
      decode();
    } catch (error) {
      expect(errorCodeOf(error)).toBe("internal");
      expect(String(error)).toContain("corrupt page");
    }
  };
  fc.assert(
    fc.property(bytes, fc.integer({ min: 0, max: 25 }), (list, width) => {
      const writer = new ByteWriter();
      writer.append(list);
      const page = padded(writer);
      attempt(() => decodeDelta(page, 400, 0n));
      attempt(() => decodeByteArrays(page, 400));
      attempt(() => decodeHybrid(page, width, new Uint32Array(400), 400));
    }),
    { numRuns: testRuns(200) },
  );
});
