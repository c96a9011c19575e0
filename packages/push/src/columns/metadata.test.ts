import { expect, it } from "@jest/globals";
import fc from "fast-check";
import { blankInvalidUtf8, sanitiseLabelName } from "./metadata.js";

it.each<[string, string | undefined]>([
  ["trace_id", "trace_id"],
  ["a.b", "a_b"],
  ["a__b", "a_b"],
  ["a..b", "a_b"],
  ["9num", "key_9num"],
  ["1a", "key_1a"],
  ["ünï", "_n_"],
  ["_a", "_a"],
  ["__a", "_a"],
  ["__x__", "__x__"],
  ["__a.b__", "__a_b__"],
  ["a😀b", "a_b"],
  ["", undefined],
  ["_", undefined],
  ["....", undefined],
  ["______", undefined],
])("%j becomes %j", (name, want) => {
  expect(sanitiseLabelName(name)).toBe(want);
});

it.each([
  ["ascii", [0x61, 0x62], "ab"],
  ["valid", [...Buffer.from("aü世😀")], "aü世😀"],
  ["stray continuation", [0x61, 0x80, 0x62], "a b"],
  ["cut sequence", [0xe4, 0xb8], "  "],
  ["overlong", [0xc0, 0xaf, 0xe0, 0x80, 0xaf], "     "],
  ["surrogate", [0xed, 0xa0, 0x80], "   "],
  ["above the last code point", [0xf4, 0x90, 0x80, 0x80], "    "],
])("%s", (_, input, want) => {
  const bytes = Uint8Array.from(input);
  blankInvalidUtf8(bytes, 0, bytes.length);
  expect(Buffer.from(bytes).toString()).toBe(want);
});

it("always leaves valid UTF-8 and never touches what is valid or lies outside", () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 40 }), fc.string({ unit: "binary" }), (junk, text) => {
      const valid = Buffer.from(text);
      const bytes = Buffer.concat([Buffer.from([0xff]), valid, junk, Buffer.from([0xff])]);
      blankInvalidUtf8(bytes, 1, bytes.length - 2);
      expect(bytes[0]).toBe(0xff);
      expect(bytes.at(-1)).toBe(0xff);
      const inside = bytes.subarray(1, -1);
      new TextDecoder("utf-8", { fatal: true }).decode(inside);
      expect(inside.subarray(0, valid.length).equals(valid)).toBe(true);
    }),
  );
});
