import { expect, it } from "@jest/globals";
import { testRuns } from "@skald/testkit";
import fc from "fast-check";
import { compileTextSet, type RowSelection, selectAll } from "./index.js";
import { forms } from "./testing/forms.js";
import { containsAny } from "./twin/search.js";

/** Few letters, so that texts overlap, begin and end alike, and stand within each other. */
const piece = fc.constantFrom("a", "b", "A", "ab", "aab", "é", "\n", "Kk", "0");
const line = fc.array(piece, { maxLength: 30 }).map((parts) => parts.join(""));
const text = fc.array(piece, { minLength: 1, maxLength: 7 }).map((parts) => parts.join(""));
const texts = fc.oneof(
  fc.array(text, { maxLength: 8 }),
  fc.array(text, { minLength: 49, maxLength: 90 }),
);

it("finds what a search for each text finds", () => {
  fc.assert(
    fc.property(
      fc.array(line, { minLength: 1, maxLength: 20 }),
      texts,
      fc.boolean(),
      fc.boolean(),
      fc.nat(3),
      (lines, wanted, ignoreCase, negate, step) => {
        const rows = lines.map((one) => Buffer.from(one));
        const offsets = Uint32Array.from([0, ...rows.map(({ length }) => length)]);
        for (let i = 0; i < rows.length; i++) offsets[i + 1]! += offsets[i]!;
        const bytes = Buffer.concat(rows);
        const set = compileTextSet(
          wanted.map((one) => Buffer.from(one)),
          ignoreCase,
        );
        const fold = (one: string) =>
          ignoreCase ? one.replace(/[A-Z]/g, (letter) => letter.toLowerCase()) : one;
        const found = lines.map((one) => wanted.some((part) => fold(one).includes(fold(part))));
        const chosen = lines.flatMap((_, i) => (step === 0 || i % step === 0 ? [i] : []));
        const want = chosen.filter((i) => found[i] !== negate);
        for (const [name, kernels] of forms) {
          const selection: RowSelection = { rows: Uint32Array.from(chosen), count: chosen.length };
          kernels.selectContainsAny(bytes, offsets, rows.length, set, selection, negate);
          expect([name, ...selection.rows.subarray(0, selection.count)]).toEqual([name, ...want]);
        }
        const alone = lines.map((_, i) => containsAny(set, bytes, offsets[i]!, offsets[i + 1]!));
        expect(alone).toEqual(found);
      },
    ),
    { numRuns: testRuns(500) },
  );
});

it("needs no more states than the texts have bytes", () => {
  const wanted = Array.from({ length: 10_000 }, (_, i) => Buffer.from(`order-${i}`));
  const bytes = wanted.reduce((sum, { length }) => sum + length, 0);
  const set = compileTextSet(wanted, false);
  expect(set.stateCount).toBeLessThan(bytes / 4);
  expect(set.packed.length).toBeLessThan(set.stateCount * 10 + 16_384);
});

it("has no state behind a match", () => {
  const set = compileTextSet(["abc", "abcdef", "xabcy", "b"].map(Buffer.from), false);
  // the root, a, b, x, ab, xa, xab: with the b all is decided
  expect(set.stateCount).toBe(7);
});

it.each(forms)("takes an empty text for one that every row has, %s", (_name, kernels) => {
  const set = compileTextSet([Buffer.from("x"), new Uint8Array(0)], false);
  const offsets = Uint32Array.of(0, 0, 1);
  const selection = selectAll(2);
  kernels.selectContainsAny(Buffer.from("a"), offsets, 2, set, selection, false);
  expect(selection.count).toBe(2);
  kernels.selectContainsAny(Buffer.from("a"), offsets, 2, set, selection, true);
  expect(selection.count).toBe(0);
});

it.each(forms)("finds none of no texts, %s", (_name, kernels) => {
  const set = compileTextSet([], true);
  const selection = selectAll(1);
  kernels.selectContainsAny(Buffer.from("a"), Uint32Array.of(0, 1), 1, set, selection, true);
  expect(selection.count).toBe(1);
  kernels.selectContainsAny(Buffer.from("a"), Uint32Array.of(0, 1), 1, set, selection, false);
  expect(selection.count).toBe(0);
});
