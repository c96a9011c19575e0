import { expect, it } from "@jest/globals";
import type { BytesColumn } from "@skald/model";
import type { FoundLines, LogResult } from "../plan/plan.js";
import { joinLines, joinLogResults, lineAt, linesOf } from "./log-rows.js";

const columnOf = (...texts: string[]): BytesColumn => {
  let end = 0;
  const ends = texts.map(({ length }) => (end += length));
  return { bytes: Buffer.from(texts.join("")), offsets: Uint32Array.of(0, ...ends) };
};
const textsOf = (lines: FoundLines) =>
  Array.from(lines.value, (_, row) => Buffer.from(lineAt(lines, row)).toString());
const [ab, cd] = [columnOf("aa", "b"), columnOf("", "dd")];

it("joins lines of several columns in their order", () => {
  const [column, value] = [Uint32Array.of(1, 0, 1, 0), Uint32Array.of(1, 1, 0, 0)];
  const lines = { columns: [ab, cd], column, value };
  expect(textsOf(lines)).toEqual(["dd", "b", "", "aa"]);
  expect(textsOf(linesOf(joinLines(lines)))).toEqual(["dd", "b", "", "aa"]);
});

it.each([
  ["one column as it is", [0, 1], true],
  ["one column that is left in part", [0], false],
  ["one column in another order", [1, 0], false],
])("joins %s", (_, value, isSame) => {
  const lines = { columns: [ab], column: new Uint32Array(2), value: Uint32Array.from(value) };
  expect(joinLines(lines) === ab).toBe(isSame);
  expect(textsOf(linesOf(joinLines(lines)))).toEqual(textsOf(lines));
});

it("joins results without a copy of their lines", () => {
  const resultOf = (column: BytesColumn): LogResult => ({
    ...{ kind: "streams", rowCount: 2, timestamps: new BigInt64Array(2) },
    ...{ labelSet: new Uint32Array(2), lines: linesOf(column), labels: [], warnings: [] },
  });
  const { lines } = joinLogResults([resultOf(ab), resultOf(cd)], 3);
  expect(textsOf(lines)).toEqual(["aa", "b", ""]);
  expect(lines.columns.map(({ bytes }) => bytes)).toEqual([ab.bytes, cd.bytes]);
  for (const [i, { bytes }] of [ab, cd].entries()) expect(lines.columns[i]?.bytes).toBe(bytes);
});
