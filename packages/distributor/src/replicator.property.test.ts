import { expect, it } from "@jest/globals";
import { makeBatch, testRuns } from "@skald/testkit";
import fc from "fast-check";
import { rowsOf } from "./testing/harness.js";
import { makeReplicas } from "./testing/replicas.js";

const metadata = fc.dictionary(fc.constantFrom("a", "b", "c"), fc.string({ maxLength: 3 }));
const row = fc.record({
  ns: fc.bigInt({ min: 0n, max: 4_000_000_000n }),
  line: fc.string({ unit: "grapheme", maxLength: 8 }),
  metadata,
});
const rows = fc.array(row, { maxLength: 4 });
const signal = new AbortController().signal;

it("the rows on all ingesters are those pushed, three times each", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.uniqueArray(fc.nat({ max: 1e6 }), { minLength: 1, maxLength: 12 }),
      fc.array(rows, { minLength: 12, maxLength: 12 }),
      fc.integer({ min: 3, max: 8 }),
      async (names, found, count) => {
        const batch = makeBatch(
          names.map((name, i) => ({ labels: { app: `a${name}` }, rows: found[i]! })),
        );
        const { all, replicator } = makeReplicas(count);
        const held: Promise<unknown>[] = [];
        const hold = (until: Promise<unknown>) => void held.push(until);
        await replicator.push({ tenant: "t", batch }, { signal, hold });
        await Promise.all(held);
        const pushed = rowsOf(batch).map((one) => JSON.stringify({ ...one, ns: String(one.ns) }));
        const stored = all.flatMap((one) => one.rows());
        expect(stored.sort()).toEqual([...pushed, ...pushed, ...pushed].sort());
        for (const { batches } of all)
          for (const { lineBytes, lineLength } of batches)
            expect(lineBytes).toBe(lineLength.reduce((sum, length) => sum + length, 0));
      },
    ),
    { numRuns: testRuns(100) },
  );
});
