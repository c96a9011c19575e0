import { describe, expect, it } from "@jest/globals";
import { type LogResult, linesOf } from "@skald/logql";
import { emptyLabels, labelsFromObject } from "@skald/model";
import { DelayedRows, Seam } from "./session.js";

/** Rows of one stream: time in ms, and line. */
function rowsOf(...rows: readonly (readonly [number, string])[]): LogResult {
  const lines = rows.map(([, line]) => Buffer.from(line));
  const offsets = new Uint32Array(rows.length + 1);
  for (const [i, { length }] of lines.entries()) offsets[i + 1] = (offsets[i] as number) + length;
  const labels = labelsFromObject({ app: "a" });
  const categories = { stream: labels, structuredMetadata: emptyLabels, parsed: emptyLabels };
  return {
    kind: "streams",
    rowCount: rows.length,
    timestamps: BigInt64Array.from(rows, ([ms]) => BigInt(ms) * 1_000_000n),
    labelSet: new Uint32Array(rows.length),
    lines: linesOf({ bytes: Buffer.concat(lines), offsets }),
    labels: [{ labels, categories }],
    warnings: [],
  };
}

describe("Seam", () => {
  it("leaves out what the history has, each once", () => {
    const seam = new Seam(rowsOf([2, "b"], [1, "a"]), 10_000_000n);
    expect(seam.newRows(rowsOf([1, "a"], [1, "b"], [2, "b"], [3, "b"]))).toEqual([1, 3]);
    expect(seam.newRows(rowsOf([1, "a"]))).toEqual([0]);
  });

  it("knows no row from after the history", () => {
    const seam = new Seam(rowsOf([2, "b"]), 2_000_000n);
    expect(seam.newRows(rowsOf([2, "b"]))).toEqual([0]);
  });
});

describe("DelayedRows", () => {
  it("gives rows in the order of their times once they are old enough", () => {
    const held = new DelayedRows(1000);
    const first = rowsOf([5000, "late"], [4000, "early"]);
    held.add(first, [0, 1], 5000);
    const second = rowsOf([4500, "between"], [9000, "ahead"]);
    held.add(second, [0, 1], 5100);
    expect(held.nextMs).toBe(5000);
    expect(held.take(4999)).toEqual([]);
    expect(held.take(6000).map(({ rows, order }) => [rows === first, order])).toEqual([
      [true, [1]],
      [false, [0]],
      [true, [0]],
    ]);
    // A clock that is ahead holds nothing up for longer.
    expect(held.nextMs).toBe(6100);
    expect(held.take(6100)).toHaveLength(1);
    expect(held.nextMs).toBeUndefined();
  });
});
