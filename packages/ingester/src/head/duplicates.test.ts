import { describe, expect, it } from "@jest/globals";
import { formatLabels, labelsFromObject } from "@skald/model";
import { assembleBatch, decodeBody } from "@skald/push";
import { BatchDuplicates } from "./duplicates.js";

const rows = 40_000;

/** The rows of a batch of one stream and one time that equal an earlier one, and the CPU time that it took to find them. */
function search(metadata: (row: number) => string): { found: number; ms: number } {
  const values = Array.from(
    { length: rows },
    (_, i) => `["1760000000000000000","x",${metadata(i)}]`,
  );
  const body = Buffer.from(`{"streams":[{"stream":{"app":"a"},"values":[${values.join()}]}]}`);
  const labels = labelsFromObject({ app: "a" });
  const batch = assembleBatch(decodeBody({ format: "json", encoding: "identity", body }), {
    streams: [{ ordinal: 0, text: formatLabels(labels) }],
    dropped: new Uint32Array(0),
    levels: new Uint8Array(rows),
  });
  const duplicates = new BatchDuplicates(batch, batch.streams[0]!);
  const before = process.cpuUsage();
  let found = 0;
  for (let row = 0; row < rows; row++) if (duplicates.has(row)) found++;
  const { user, system } = process.cpuUsage(before);
  return { found, ms: (user + system) / 1000 };
}

describe("the duplicates of a batch whose rows have one time", () => {
  it.each<[string, (row: number) => string, number]>([
    ["are found soon where many rows are equal", (row) => `{"n":"${row % 100}"}`, rows - 100],
    ["are told apart soon by the names of metadata", (row) => `{"n${row}":"v"}`, 0],
  ])("%s", (_name, metadata, expected) => {
    const { found, ms } = search(metadata);
    expect(found).toBe(expected);
    expect(ms).toBeLessThan(400);
  });
});
