import { describe, expect, it } from "@jest/globals";
import { ByteReader, ByteWriter } from "./bytes.js";

describe("ByteWriter", () => {
  it.each<[string, (out: ByteWriter) => void, string]>([
    ["u8", (out) => out.u8(0xfe), "fe"],
    ["u32", (out) => out.u32(0x01020304), "04030201"],
    ["u32 of a negative number", (out) => out.u32(-3), "fdffffff"],
    ["u64", (out) => out.u64(0x0102030405060708n), "0807060504030201"],
    ["u64 of a negative number", (out) => out.u64(-1n), "ffffffffffffffff"],
    ["varint of 0", (out) => out.varint(0), "00"],
    ["varint of 300", (out) => out.varint(300), "ac02"],
    ["varint of 2^53 - 1", (out) => out.varint(2 ** 53 - 1), "ffffffffffffff0f"],
    ["zigzag of -2", (out) => out.zigzag(-2), "03"],
    ["zigzag of 2", (out) => out.zigzag(2), "04"],
    ["zigzag of the least int64", (out) => out.zigzagBig(-(2n ** 63n)), "ffffffffffffffffff01"],
    [
      "zigzag of the greatest int64",
      (out) => out.zigzagBig(2n ** 63n - 1n),
      "feffffffffffffffff01",
    ],
    ["bytes", (out) => out.bytes(Uint8Array.of(7, 8)), "020000000708"],
    ["text", (out) => out.text("ab\u007f"), "0300000061627f"],
    ["text beyond ASCII", (out) => out.text("aü"), "0300000061c3bc"],
    ["long text", (out) => out.text("a".repeat(40)), `28000000${"61".repeat(40)}`],
    ["numbers", (out) => out.u32s(Uint32Array.of(1, 2)), "020000000100000002000000"],
    ["bytes alone", (out) => out.append(Uint8Array.of(7, 8)), "0708"],
    ["room to fill", (out) => void out.take(2).fill(9), "0909"],
  ])("writes %s", (_, write, want) => {
    const out = new ByteWriter(1);
    write(out);
    expect(Buffer.from(out.view()).toString("hex")).toBe(want);
    out.clear();
    write(out);
    write(out);
    expect(Buffer.from(out.view()).toString("hex")).toBe(want + want);
  });
});

describe("ByteReader", () => {
  const written = new ByteWriter(1);
  written.u8(1);
  written.u32(-3);
  written.text("zwölf");
  written.bytes(Uint8Array.of(5));
  written.u32s(Uint32Array.of(4, 2));

  it("reads back what was written", () => {
    const reader = new ByteReader(written.view());
    expect(reader.oneOf(["a", "b"])).toBe("b");
    expect(reader.i32()).toBe(-3);
    expect(reader.text()).toBe("zwölf");
    expect([...reader.bytes()]).toEqual([5]);
    expect([...reader.u32s()]).toEqual([4, 2]);
    expect(() => reader.u8()).toThrow("bytes end inside a value of 1");
  });

  it("refuses a code that is not known", () => {
    expect(() => new ByteReader(Uint8Array.of(2)).oneOf(["a", "b"])).toThrow("code 2 is not known");
  });

  it("refuses a count that the bytes cannot hold before anything is allocated", () => {
    const count = new ByteReader(Uint8Array.of(0xff, 0xff, 0xff, 0xff, 0));
    expect(() => count.u32s()).toThrow("too few for 4294967295 values");
    const text = new ByteReader(Uint8Array.of(0xff, 0, 0, 0));
    expect(() => text.text()).toThrow("end inside a value of 255");
  });
});
