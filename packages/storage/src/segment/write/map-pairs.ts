import type { BytesColumn, RunTable } from "@skald/model";
import type { LabelColumn } from "../match-labels.js";
import type { MapRows } from "./map-column.js";

const noPairs: Omit<MapRows, "rowCount"> = {
  pairStart: new Uint32Array(0),
  names: new Uint32Array(0),
  valueLengths: new Uint32Array(0),
  values: new Uint8Array(0),
  used: [],
};

/** The pairs of a block for `metadata_more`: what the given names, by their numbers, have in each row. */
export function metadataPairs(
  names: readonly string[],
  metadata: ReadonlyMap<string, BytesColumn>,
  rowCount: number,
): MapRows {
  if (names.length === 0) return { ...noPairs, rowCount };
  const present: { name: number; column: BytesColumn }[] = [];
  const pairStart = new Uint32Array(rowCount + 1);
  for (let name = 0; name < names.length; name++) {
    const column = metadata.get(names[name]!);
    if (column !== undefined && countPairs(column, pairStart, rowCount)) {
      present.push({ name, column });
    }
  }
  for (let row = 0; row < rowCount; row++) {
    pairStart[row + 1]! += pairStart[row]!;
  }
  const pairCount = pairStart[rowCount]!;
  const pairNames = new Uint32Array(pairCount);
  const valueLengths = new Uint32Array(pairCount);
  const sources = new Uint32Array(pairCount);
  const next = pairStart.slice();
  let valueBytes = 0;
  present.forEach(({ name, column: { offsets } }) => {
    for (let row = 0; row < rowCount; row++) {
      const from = offsets[row]!;
      const length = offsets[row + 1]! - from;
      if (length === 0) continue;
      const at = next[row]!;
      next[row] = at + 1;
      pairNames[at] = name;
      valueLengths[at] = length;
      sources[at] = from;
      valueBytes += length;
    }
  });
  const columns = new Map(present.map(({ name, column }) => [name, column.bytes]));
  const values = new Uint8Array(valueBytes);
  let at = 0;
  for (let pair = 0; pair < pairCount; pair++) {
    const from = sources[pair]!;
    const length = valueLengths[pair]!;
    const bytes = columns.get(pairNames[pair]!)!;
    values.set(bytes.subarray(from, from + length), at);
    at += length;
  }
  const used = present.map(({ name }) => name);
  return { rowCount, pairStart, names: pairNames, valueLengths, values, used };
}

/** Labels without a column of their own, by stream; what `labels_more` repeats for each row. */
export class MoreLabels {
  readonly #ofStream = new Map<number, { name: number; value: Buffer }[]>();

  constructor(columns: readonly LabelColumn[], streamCount: number) {
    columns.forEach((column, name) => {
      const values = column.values.map((value) => Buffer.from(value, "utf8"));
      const streams = column.streams ?? Uint32Array.from({ length: streamCount }, (_, s) => s);
      streams.forEach((stream, i) => {
        const pair = { name, value: values[column.codes[i]!]! };
        const known = this.#ofStream.get(stream);
        if (known === undefined) this.#ofStream.set(stream, [pair]);
        else known.push(pair);
      });
    });
  }

  rows(runs: RunTable, rowCount: number): MapRows {
    const pairStart = new Uint32Array(rowCount + 1);
    const names: number[] = [];
    const lengths: number[] = [];
    const parts: Buffer[] = [];
    const used = new Set<number>();
    for (let r = 0; r < runs.count; r++) {
      const pairs = this.#ofStream.get(runs.stream[r]!) ?? [];
      for (const { name } of pairs) used.add(name);
      for (let row = runs.rowStart[r]!; row < runs.rowStart[r + 1]!; row++) {
        for (const { name, value } of pairs) {
          names.push(name);
          lengths.push(value.byteLength);
          parts.push(value);
        }
        pairStart[row + 1] = names.length;
      }
    }
    return {
      rowCount,
      pairStart,
      names: Uint32Array.from(names),
      valueLengths: Uint32Array.from(lengths),
      values: Buffer.concat(parts),
      used: [...used],
    };
  }
}

/** Adds one to `pairStart[row + 1]` for each row that has a value; false when none has. */
function countPairs({ offsets }: BytesColumn, pairStart: Uint32Array, rowCount: number): boolean {
  if (offsets[0] === offsets[rowCount]) return false;
  for (let row = 0; row < rowCount; row++) {
    if (offsets[row + 1] !== offsets[row]) pairStart[row + 1]!++;
  }
  return true;
}
