import { expect, it } from "@jest/globals";
import { assembleBatch, decodeBody } from "@skald/push";
import { testRuns } from "@skald/testkit";
import fc from "fast-check";
import { jsonPush, makeHarness } from "./testing/harness.js";

const weekMs = 7 * 86_400_000;
const metadata = fc.dictionary(
  fc.constantFrom("a", "a.b", "level", "detected_level"),
  fc.constantFrom("", "warn", "1"),
  { maxKeys: 3 },
);
const time = fc.constantFrom(0, 1, -1000, -2 * weekMs, 7_200_000);
const rows = fc.array(fc.tuple(time, fc.string({ unit: "grapheme", maxLength: 20 }), metadata), {
  maxLength: 6,
});
const labels = fc.dictionary(fc.constantFrom("app", "env", "level"), fc.string({ maxLength: 5 }));

it("a stored push is replayed from its body, its labels, its dropped rows and its levels", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.tuple(labels, rows), { maxLength: 5 }), async (streams) => {
      // A level outside the table changes rows, and then there is no body to replay.
      fc.pre(streams.every(([l]) => ["", undefined, "info"].includes(l.level)));
      fc.pre(streams.every(([, r]) => r.every(([, , m]) => m.level !== "1")));
      const { push, ingester } = makeHarness();
      await push({ streams: streams.flatMap(([l, r]) => jsonPush(l, r).streams) });
      for (const { batch } of ingester.pushes) {
        const source = batch.source!;
        const replayed = assembleBatch(decodeBody(source), {
          streams: batch.streams.map(({ ordinal, text }) => ({ ordinal, text })),
          dropped: source.dropped,
          levels: batch.levels,
          source,
        });
        expect(replayed).toEqual(batch);
      }
    }),
    { numRuns: testRuns(100) },
  );
});
