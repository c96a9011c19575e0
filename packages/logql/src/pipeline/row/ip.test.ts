import { describe, expect, it } from "@jest/globals";
import { testRuns } from "@skald/testkit";
import fc from "fast-check";
import { compileIpScan, hasIpOf, parseIp, parseIpRange } from "./ip.js";

describe("parseIp", () => {
  it.each([
    ["1.2.3.4", 32, 0x01020304n],
    ["255.255.255.255", 32, 0xffffffffn],
    ["::", 128, 0n],
    ["::1", 128, 1n],
    ["2001:db8::ff", 128, 0x20010db80000000000000000000000ffn],
    ["1:2:3:4:5:6:7:8", 128, 0x00010002000300040005000600070008n],
    ["::ffff:1.2.3.4", 128, 0xffff01020304n],
    ["1:2:3:4:5:6:1.2.3.4", 128, 0x00010002000300040005000601020304n],
  ])("reads %s", (text, bits, value) => {
    expect(parseIp(text)).toEqual({ bits, value });
  });

  it.each([
    "256.1.1.1",
    "1.2.3",
    "1.2.3.4.5",
    "01.2.3.4",
    "",
    "1.2.3.x",
    ":::",
    "1::2::3",
    "1:2:3:4:5:6:7",
    "1:2:3:4:5:6:7:8:9",
    "12345::",
    "1:2:3:4:5:6:7::8",
    "::1.2.3",
    "1.2.3.4::",
    ":1",
  ])("refuses %j", (text) => {
    expect(parseIp(text)).toBeUndefined();
  });
});

describe("parseIpRange", () => {
  it.each([
    ["10.0.0.1", 0x0a000001n, 0x0a000001n],
    ["10.0.0.1-10.0.0.9", 0x0a000001n, 0x0a000009n],
    ["10.1.2.3/8", 0x0a000000n, 0x0affffffn],
    ["0.0.0.0/0", 0n, 0xffffffffn],
    ["::/127", 0n, 1n],
  ])("reads %s", (text, first, last) => {
    expect(parseIpRange(text)).toMatchObject({ first, last });
  });

  it.each([
    "nonsense",
    "",
    "10.0.0.1/33",
    "10.0.0.1/",
    "10.0.0.9-10.0.0.1",
    "10.0.0.1-::1",
    "1.1.1.1-2.2.2.2-3.3.3.3",
    "::/129",
    "10.0.0.0/08",
  ])("refuses %j", (text) => {
    expect(() => parseIpRange(text)).toThrow(`ip: invalid pattern: ${JSON.stringify(text)}`);
  });
});

describe("addresses in a text", () => {
  it.each([
    ["10.0.0.1", "src=10.0.0.1 x", true],
    ["10.0.0.1", "10.0.0.1:80", true],
    ["10.0.0.0/8", "dst=10.0.0.300", false],
    ["10.0.0.0/8", "10.0.0.1.", false],
    ["10.0.0.1", "::ffff:10.0.0.1", false],
    ["2001:db8::/32", "[2001:db8::2]:443", true],
    ["::1", "a ::1", true],
    ["1.2.3.4", "two 9.9.9.9,1.2.3.4 here", true],
    ["0.0.0.0/0", "at 10:00:15 nothing", false],
    ["0.0.0.0/0", "", false],
  ])("%s in %j", (range, text, want) => {
    const bytes = new TextEncoder().encode(text);
    expect(hasIpOf(parseIpRange(range), text)).toBe(want);
    expect(compileIpScan(parseIpRange(range))(bytes, 0, bytes.length)).toBe(want);
  });

  it("are found alike in texts and bytes", () => {
    const piece = fc.constantFrom(
      "1",
      "10",
      "255",
      "256",
      "0",
      ".",
      ".",
      ":",
      ":",
      "::",
      "a",
      "f",
      "g",
      " ",
      "db8",
      "10.0.0.1",
      "1:2:3:4:5:6:7",
      "é",
    );
    const texts = fc.array(piece, { maxLength: 24 }).map((pieces) => pieces.join(""));
    const ranges = ["10.0.0.0/8", "0.0.0.0/0", "::/0", "::1", "1.0.0.0-10.0.0.1"].map(parseIpRange);
    fc.assert(
      fc.property(texts, fc.constantFrom(...ranges), (text, range) => {
        const bytes = new TextEncoder().encode(`..${text}..1`);
        const got = compileIpScan(range)(bytes, 2, bytes.length - 3);
        expect(got).toBe(hasIpOf(range, text));
      }),
      { numRuns: testRuns(1500) },
    );
  });
});
