import type { RunTable } from "@skald/model";
import type { MapRows } from "../layout.js";
import type { LabelColumn } from "../streams.js";

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
