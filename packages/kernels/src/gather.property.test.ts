import { describe, expect, it } from "@jest/globals";
import { testRuns } from "@skald/testkit";
import fc from "fast-check";
import { paddingBytes } from "./shared/bytes.js";
import type { Kernels } from "./shared/kernels.js";
import { forms } from "./testing/forms.js";

function gather(kernels: Kernels, values: readonly Uint8Array[], picks: readonly number[]) {
  const offsets = new Uint32Array(values.length + 1);
  values.forEach((value, i) => {
    offsets[i + 1] = offsets[i]! + value.length;
  });
  const all = new Uint8Array(Buffer.concat(values));
  return kernels.gatherValues(all, offsets, Uint32Array.from(picks), picks.length);
}

describe.each(forms)("gatherValues, %s", (_name, kernels) => {
  it("copies the picked value of each row, with padding behind the last", () => {
    const value = fc.uint8Array({ maxLength: 70 });
    fc.assert(
      fc.property(
        fc.array(value, { minLength: 1, maxLength: 8 }),
        fc.array(fc.nat(), { maxLength: 40 }),
        (values, numbers) => {
          const picks = numbers.map((number) => number % (values.length + 1));
          const { bytes, offsets } = gather(kernels, values, picks);
          const rows = picks.map((_, row) => [...bytes.subarray(offsets[row], offsets[row + 1])]);
          expect(rows).toEqual(picks.map((pick) => [...(values[pick - 1] ?? [])]));
          expect([...bytes.subarray(offsets[picks.length])]).toEqual(
            new Array(paddingBytes).fill(0),
          );
        },
      ),
      { numRuns: testRuns(200) },
    );
  });

  it.each([
    ["a pick that no value has", [0, 3], [2]],
    ["a value that ends behind the bytes", [0, 9], [1]],
    ["a value that ends before it begins", [3, 1], [1]],
  ])("refuses %s", (_case, offsets, picks) => {
    const bytes = Uint8Array.of(1, 2, 3);
    const run = () =>
      kernels.gatherValues(bytes, Uint32Array.from(offsets), Uint32Array.from(picks), 1);
    expect(run).toThrow(RangeError);
  });
});
