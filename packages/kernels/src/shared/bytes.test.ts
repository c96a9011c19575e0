import { expect, it } from "@jest/globals";
import { seededRandom, testSeed } from "@skald/testkit";
import { copyBytes, equalBytes } from "./bytes.js";

it("copies any range between shared and own memory", () => {
  const random = seededRandom(testSeed());
  const own = Uint8Array.from({ length: 300 }, () => random(256));
  const shared = new Uint8Array(new SharedArrayBuffer(300));
  shared.set(own);
  for (let run = 0; run < 500; run++) {
    const from = random(200);
    const to = from + random(100);
    const at = random(100);
    for (const source of [own, shared]) {
      for (const target of [new Uint8Array(200), new Uint8Array(new SharedArrayBuffer(200))]) {
        copyBytes(source, from, to, target, at);
        expect(Array.from(target.subarray(at, at + to - from))).toEqual(
          Array.from(own.subarray(from, to)),
        );
        expect(target.findIndex((byte, i) => byte !== 0 && (i < at || i >= at + to - from))).toBe(
          -1,
        );
      }
    }
  }
});

it("compares any ranges, short and long", () => {
  const random = seededRandom(testSeed());
  const a = Uint8Array.from({ length: 300 }, () => random(256));
  for (let run = 0; run < 500; run++) {
    const [aStart, bStart, length] = [random(100), random(100), 1 + random(200)];
    const b = new Uint8Array(300);
    b.set(a.subarray(aStart, aStart + length), bStart);
    expect(equalBytes(a, aStart, b, bStart, length)).toBe(true);
    b[bStart + random(length)]! ^= 1;
    expect(equalBytes(a, aStart, b, bStart, length)).toBe(false);
  }
  expect(equalBytes(a, 0, a, 7, 0)).toBe(true);
});

it("refuses a range that the target has no room for", () => {
  expect(() => copyBytes(new Uint8Array(100), 0, 100, new Uint8Array(120), 21)).toThrow(RangeError);
});
