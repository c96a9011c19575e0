import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "@jest/globals";
import { testRuns } from "@skald/testkit";
import fc from "fast-check";
import { openSegmentFile } from "../segment/read/reader.js";
import { fixtureBaseNs, headOf, type Row, rowsOf, sealedRows } from "../testing/seal-rows.js";
import { sealSegment } from "./seal.js";

let directory: string;
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), "skald-seal-"));
});
afterAll(() => rmSync(directory, { recursive: true }));

const manyNames = Array.from({ length: 40 }, (_, i) => `name_${i}`);
const metadataName = fc.constantFrom("trace_id", "Trace_ID", "detected_level", ...manyNames);
const label = fc.constantFrom("app", "App", "env", "größe", "pod");
const labelValue = fc.oneof(fc.constantFrom("a", "b", "prod"), fc.string({ maxLength: 5 }));
const line = fc.oneof(
  fc.constantFrom("", "same", "same but longer"),
  fc.string({ maxLength: 40 }),
  fc.string({ maxLength: 8, unit: "grapheme" }),
  fc.uint8Array({ maxLength: 12 }),
);
const time = fc.oneof(
  fc.integer({ min: 0, max: 20 }),
  fc.integer({ min: 0, max: 86_399_999_999_999 }),
);

const labelSets = fc.array(fc.dictionary(label, labelValue, { maxKeys: 3 }), {
  minLength: 1,
  maxLength: 5,
});

const heads = labelSets.chain((sets) => {
  const row: fc.Arbitrary<Row> = fc.record({
    labels: fc.constantFrom(...sets),
    time,
    line,
    metadata: fc.oneof(
      fc.constant({}),
      fc.dictionary(metadataName, fc.string({ maxLength: 6 }), { maxKeys: 3 }),
    ),
  });
  const block = fc.array(row, { minLength: 1, maxLength: 30 });
  return fc.array(fc.array(block, { minLength: 1, maxLength: 4 }), { minLength: 1, maxLength: 3 });
});

it("reads back what was sealed, sorted and without duplicates", () => {
  fc.assert(
    fc.property(heads, (blocksOfHeads) => {
      const path = join(directory, "segment.parquet");
      const rows = blocksOfHeads.flat(2);
      const want = sealedRows(rows);
      const sealed = sealSegment({
        tenant: "t",
        id: "one",
        path,
        heads: blocksOfHeads.map((blocks) => headOf(blocks)),
      });
      const { segment, close } = openSegmentFile({
        id: "one",
        tenant: "t",
        location: { kind: "file", path },
      });
      try {
        expect(rowsOf(segment)).toEqual(want);
        expect(sealed.rows).toBe(want.length);
        expect(sealed.bytes).toBe(want.reduce((sum, row) => sum + row.line.length, 0));
        expect(sealed.minNs).toBe(fixtureBaseNs + BigInt(Math.min(...want.map((r) => r.time))));
        expect(sealed.maxNs).toBe(fixtureBaseNs + BigInt(Math.max(...want.map((r) => r.time))));
        expect(sealed.sizeBytes).toBe(segment.sizeBytes);
      } finally {
        close();
      }
    }),
    { numRuns: testRuns(30) },
  );
});
