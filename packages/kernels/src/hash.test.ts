import { describe, expect, it } from "@jest/globals";
import { crc32 } from "./index.js";
import { crc32ByTable } from "./shared/bytes.js";
import { forms } from "./testing/forms.js";

describe.each(forms)("hashRows, %s", (_name, kernels) => {
  function hash(lines: readonly string[]): readonly string[] {
    const bytes = Buffer.from(lines.join(""));
    const offsets = new Uint32Array(lines.length + 1);
    for (let i = 0; i < lines.length; i++) offsets[i + 1] = offsets[i]! + lines[i]!.length;
    const high = new Uint32Array(lines.length);
    const low = new Uint32Array(lines.length);
    kernels.hashRows(bytes, offsets, lines.length, high, low);
    return Array.from(high, (value, i) => hex(value) + hex(low[i]!));
  }
  const hex = (value: number) => value.toString(16).padStart(8, "0");

  it.each([
    ["", "ef46db3751d8e999"],
    ["a", "d24ec4f1a98c6e5b"],
    ["abc", "44bc2cf5ad770999"],
    ["message digest", "066ed728fceeb3be"],
    ["abcdefghijklmnopqrstuvwxyz", "cfe1f278fa89835c"],
    ["ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789", "aaa46907d3047814"],
  ])("hashes %j to the published value", (line, want) => {
    expect(hash([line])).toEqual([want]);
  });

  it("hashes each row by itself", () => {
    const lines = ["abc", "", "message digest", "abc"];
    expect(hash(lines)).toEqual(lines.map((line) => hash([line])[0]));
  });
});

describe("crc32", () => {
  it.each([
    ["", 0],
    ["123456789", 0xcbf43926],
  ])("of %j is the published value", (text, want) => {
    expect(crc32(Buffer.from(text))).toBe(want);
    expect(crc32ByTable(Buffer.from(text))).toBe(want);
  });

  it("continues an earlier sum", () => {
    const first = crc32(Buffer.from("1234"));
    expect(crc32(Buffer.from("56789"), first)).toBe(0xcbf43926);
    expect(crc32ByTable(Buffer.from("56789"), first)).toBe(0xcbf43926);
  });
});
