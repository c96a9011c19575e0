import { describe, expect, it } from "@jest/globals";
import { seededRandom, testRuns, testSeed } from "@skald/testkit";
import fc from "fast-check";
import {
  chooseKeys,
  highCoefficient,
  lowCoefficient,
  needleKeys,
  slotsFor,
  startOf,
} from "./shared/needle.js";
import { forms } from "./testing/forms.js";
import { columnOf, needleRow } from "./testing/needle-rows.js";

/** Whether block i of a group may have a key. */
function mayHave(bits: Uint8Array, blocks: number, slots: number, i: number, key: number): boolean {
  const start = startOf(key, slots);
  const low = lowCoefficient(key);
  const high = highCoefficient(key);
  let parity = 0;
  for (let slot = 0; slot < 64; slot++) {
    const place = (start + slot) * blocks + i;
    const coefficient = slot < 32 ? low >>> slot : high >>> (slot - 32);
    parity ^= coefficient & (bits[place >>> 3]! >>> (place & 7));
  }
  return (parity & 1) === 0;
}

it("finds the same keys and bits in both forms", () => {
  fc.assert(
    fc.property(
      fc.array(fc.array(needleRow, { maxLength: 12 }), { minLength: 1, maxLength: 9 }),
      fc.integer({ min: 5, max: 400 }),
      (blocks, maxKeys) => {
        const outcomes = forms.map(([, kernels]) => {
          const found = blocks.map((rows) => {
            const { bytes, offsets } = columnOf(rows);
            const { mixed, plain, ...rest } = kernels.collectNeedleKeys(
              bytes,
              offsets,
              rows.length,
            );
            return { ...rest, mixed: mixed.slice().sort(), plain: plain.slice().sort() };
          });
          const chosen = found.map(({ mixed, plain }) => chooseKeys(mixed, plain, maxKeys).keys);
          const slots = slotsFor(Math.max(...chosen.map(({ length }) => length)));
          const bits = slots === 0 ? undefined : kernels.solveNeedleFilter(chosen, slots, 77);
          return { found, slots, bits };
        });
        expect(outcomes[1]).toEqual(outcomes[0]);
      },
    ),
    { numRuns: testRuns(400) },
  );
});

describe.each(forms)("the needle filter, %s", (_name, kernels) => {
  it("has the keys of every text that stands in a row", () => {
    const random = seededRandom(testSeed());
    const texts = testRuns(20_000);
    let planted = 0;
    while (planted < texts) {
      const rows = Array.from({ length: 20 }, () =>
        Uint8Array.from({ length: random(120) }, () =>
          random(3) === 0 ? 48 + random(10) : 65 + random(60),
        ),
      );
      const { bytes, offsets } = columnOf(rows);
      const { mixed, plain } = kernels.collectNeedleKeys(bytes, offsets, rows.length);
      const maxKeys = [5000, 500, 100][random(3)]!;
      const { keys, threshold, plainKeys } = chooseKeys(mixed, plain, maxKeys);
      const slots = slotsFor(keys.length);
      const bits = kernels.solveNeedleFilter([keys], slots, random(1000));
      for (const own of rows) {
        for (let i = 0; i < 20 && own.length > 0; i++) {
          const from = random(own.length);
          const text = own.slice(from, from + 1 + random(40));
          const odd = text.map((byte) =>
            byte >= 97 && byte <= 122 ? byte ^ (random(2) * 32) : byte,
          );
          planted++;
          for (const { key, isExtra } of needleKeys(odd)) {
            const isExempt =
              (isExtra && plainKeys === 1) || (threshold !== 0 && (key & 0xffff) >= threshold);
            if (!isExempt && !mayHave(bits, 1, slots, 0, key)) {
              throw new Error(`${Buffer.from(text).toString("latin1")} is refused`);
            }
          }
        }
      }
    }
  });

  it("lets about half of the absent keys pass, in each block of a group", () => {
    const random = seededRandom(11);
    const keys = Array.from({ length: 5 }, (_, i) =>
      Uint32Array.from({ length: 4000 - i * 100 }, () => 1 + random(2 ** 32 - 1)),
    );
    const slots = slotsFor(4000);
    const bits = kernels.solveNeedleFilter(keys, slots, 0);
    for (const [i, own] of keys.entries()) {
      for (const key of own) expect(mayHave(bits, 5, slots, i, key)).toBe(true);
      let passed = 0;
      for (let n = 0; n < 4000; n++) {
        if (mayHave(bits, 5, slots, i, 1 + random(2 ** 32 - 1))) passed++;
      }
      expect(passed / 4000).toBeGreaterThan(0.44);
      expect(passed / 4000).toBeLessThan(0.56);
    }
  });

  it("takes more distinct windows than its tables begin with", () => {
    const random = seededRandom(5);
    const bytes = Uint8Array.from({ length: 400_000 }, () => random(256));
    const { mixed, plain } = kernels.collectNeedleKeys(bytes, Uint32Array.of(0, bytes.length), 1);
    expect(mixed.length + plain.length).toBeGreaterThan(300_000);
    const { keys, threshold } = chooseKeys(mixed, plain, 90_000);
    expect(threshold).toBeGreaterThan(0);
    expect(keys.length).toBeLessThan(92_000);
  });

  it("sees the signs that fold to k and s", () => {
    const has = (text: string) => {
      const bytes = Buffer.from(text);
      return kernels.collectNeedleKeys(bytes, Uint32Array.of(0, bytes.length), 1).hasSigns;
    };
    expect([has("task"), has("ta\u017fk"), has("tas\u212a"), has("Å â")]).toEqual([
      ...[false, true, true, false],
    ]);
  });
});

it("gives a text of six bytes a key, and the same one in any case", () => {
  for (let i = 0; i < 1000; i++) {
    expect(needleKeys(Buffer.from(String(100_000 + i * 877))).length).toBeGreaterThan(0);
  }
  expect(needleKeys(Buffer.from("Order-17"))).toEqual(needleKeys(Buffer.from("oRDER-17")));
  expect(needleKeys(Buffer.from("four"))).toEqual([]);
  expect(needleKeys(Buffer.alloc(10_000, "x1y2z3abc")).length).toBeLessThanOrEqual(256);
});
