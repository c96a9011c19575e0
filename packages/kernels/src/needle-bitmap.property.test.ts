import { describe, expect, it } from "@jest/globals";
import { seededRandom, testRuns, testSeed } from "@skald/testkit";
import fc from "fast-check";
import { type BitmapChoice, bitmapSlot, needleKeys } from "./shared/needle.js";
import { forms } from "./testing/forms.js";
import { columnOf, needleRow } from "./testing/needle-rows.js";

const choices = fc.record({
  slots: fc.constantFrom(64, 128, 448, 4096),
  plainKeys: fc.constantFrom<1 | 3>(1, 3),
  threshold: fc.constantFrom(0, 0, 1, 20_000, 65_535),
});

it("marks the same bits in both forms, and lays them the same way", () => {
  fc.assert(
    fc.property(
      fc.array(fc.array(needleRow, { maxLength: 12 }), { minLength: 1, maxLength: 64 }),
      choices,
      (blocks, choice) => {
        const outcomes = forms.map(([, kernels]) => {
          const found = blocks.map((rows) => {
            const { bytes, offsets } = columnOf(rows);
            return kernels.markNeedleKeys(bytes, offsets, rows.length, choice);
          });
          const maps = found.map(({ bits }, i) => (i % 5 === 4 ? new Uint8Array(0) : bits));
          return { found, bits: kernels.groupNeedleBits(maps, choice.slots) };
        });
        expect(outcomes[1]).toEqual(outcomes[0]);
      },
    ),
    { numRuns: testRuns(400) },
  );
});

it("marks the same keys of values in both forms", () => {
  fc.assert(
    fc.property(fc.array(fc.nat(2 ** 32 - 1), { maxLength: 40 }), choices, (first, choice) => {
      const keys = Uint32Array.from([...first, ...first]);
      const [one, two] = forms.map(([, kernels]) =>
        kernels.markValueKeys(keys, keys.length, choice),
      );
      expect(two).toEqual(one);
    }),
    { numRuns: testRuns(400) },
  );
});

/** Whether the bits of one block may have a text. */
function mayHave(bits: Uint8Array, choice: BitmapChoice, text: Uint8Array): boolean {
  const { slots, plainKeys, threshold } = choice;
  return needleKeys(text).every(({ key, isExtra }) => {
    const isExempt =
      (isExtra && plainKeys === 1) || (threshold !== 0 && (key & 0xffff) >= threshold);
    const slot = bitmapSlot(key, slots);
    return isExempt || ((bits[slot >>> 3]! >>> (slot & 7)) & 1) === 1;
  });
}

describe.each(forms)("the bitmap of a block, %s", (_name, kernels) => {
  it("has the keys of every text that stands in a row", () => {
    const random = seededRandom(testSeed());
    const texts = testRuns(20_000);
    for (let planted = 0; planted < texts; ) {
      const rows = Array.from({ length: 20 }, () =>
        Uint8Array.from({ length: random(120) }, () =>
          random(3) === 0 ? 48 + random(10) : 65 + random(60),
        ),
      );
      const { bytes, offsets } = columnOf(rows);
      const threshold = [0, 0, 9000][random(3)]!;
      const choice: BitmapChoice = { slots: 64 * (1 + random(90)), plainKeys: 3, threshold };
      const asked = threshold === 0 ? choice : { ...choice, plainKeys: 1 as const };
      const { bits } = kernels.markNeedleKeys(bytes, offsets, rows.length, asked);
      for (const own of rows) {
        for (let i = 0; i < 20 && own.length > 0; i++, planted++) {
          const from = random(own.length);
          const text = own.slice(from, from + 1 + random(40));
          const odd = text.map((byte) =>
            byte >= 97 && byte <= 122 ? byte ^ (random(2) * 32) : byte,
          );
          if (mayHave(bits, asked, odd)) continue;
          throw new Error(`${Buffer.from(text).toString("latin1")} is refused`);
        }
      }
    }
  });

  it("takes rows that are longer than what is listed at a time", () => {
    const random = seededRandom(5);
    const bytes = Uint8Array.from({ length: 100_003 }, () => random(256));
    const choice: BitmapChoice = { slots: 2 ** 18, plainKeys: 3, threshold: 0 };
    const { bits, count } = kernels.markNeedleKeys(
      bytes,
      Uint32Array.of(0, bytes.length),
      1,
      choice,
    );
    expect(count).toBeGreaterThan(50_000);
    for (let at = 0; at < 99_000; at += 97) {
      expect(mayHave(bits, choice, bytes.subarray(at, at + 30))).toBe(true);
    }
    let passed = 0;
    for (let n = 0; n < 1000; n++) {
      const absent = Uint8Array.from({ length: 16 }, () => random(256));
      if (mayHave(bits, choice, absent)) passed++;
    }
    expect(passed).toBeLessThan(10);
  });

  it("sees the signs that fold to k and s", () => {
    const has = (text: string) => {
      const bytes = Buffer.from(text);
      const offsets = Uint32Array.of(0, bytes.length);
      const choice: BitmapChoice = { slots: 64, plainKeys: 3, threshold: 0 };
      return kernels.markNeedleKeys(bytes, offsets, 1, choice).hasSigns;
    };
    const far = "-".repeat(31);
    expect([has("task"), has("ta\u017fk"), has(`${far}\u212a`), has(`${far}\u017f`)]).toEqual([
      ...[false, true, true, true],
    ]);
    expect(has("Å â")).toBe(false);
  });
});
