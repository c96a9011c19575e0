import { ByteWriter } from "../../bytes.js";
import { ColumnChunk, type SealedChunk } from "../../parquet/column-chunk.js";
import type { Bounds } from "../../parquet/footer.js";
import { encoding } from "../../parquet/format.js";
import { bitWidth, encodeRun } from "../../parquet/hybrid.js";
import type { LabelColumn } from "../streams.js";

/** Rows of one stream that follow each other in a row group. */
export interface StreamRun {
  readonly stream: number;
  readonly rows: number;
}

/**
 * One label as a Parquet column: a sorted dictionary and one page per row group, in runs. Readers of other makes need
 * it; ours takes labels from the index. Row groups must come in the order of the streams.
 */
export class LabelColumnWriter {
  readonly name: string;
  readonly #column: LabelColumn;
  readonly #chunk = new ColumnChunk({ dataEncoding: encoding.rleDictionary, level: 0 });
  readonly #definition = new ByteWriter(64);
  readonly #body = new ByteWriter(256);
  /** Place in the column's streams; runs come in ascending order, so it only moves on. */
  #cursor = 0;

  constructor(column: LabelColumn) {
    this.name = column.name;
    this.#column = column;
  }

  /** Encodes the runs of a row group. The result is valid until the next call. */
  seal(runs: readonly StreamRun[], rowCount: number): { chunk: SealedChunk; bounds?: Bounds } {
    const codes = runs.map((run) => this.#codeOf(run.stream));
    const used = [...new Set(codes)].filter((code) => code >= 0);
    const values = used.map((code) => ({
      code,
      bytes: Buffer.from(this.#column.values[code]!, "utf8"),
    }));
    values.sort((a, b) => Buffer.compare(a.bytes, b.bytes));
    const places = new Map(values.map(({ code }, place) => [code, place]));
    const nullCount = this.#encode(runs, codes, places);
    this.#chunk.clear();
    this.#chunk.setDictionary(
      values.map((value) => value.bytes),
      true,
    );
    this.#chunk.addPage({
      rowCount,
      valueCount: rowCount,
      nullCount,
      repetition: new Uint8Array(0),
      definition: this.#definition.view(),
      encoding: encoding.rleDictionary,
      body: this.#body.view(),
    });
    const chunk = this.#chunk.seal();
    const min = values[0]?.bytes;
    const max = values.at(-1)?.bytes;
    if (min === undefined || max === undefined) return { chunk };
    return { chunk, bounds: { min, max, pages: [{ min, max }] } };
  }

  /** Writes levels and codes, neighbours of one value as one run; returns the number of nulls. */
  #encode(
    runs: readonly StreamRun[],
    codes: readonly number[],
    places: ReadonlyMap<number, number>,
  ): number {
    const width = bitWidth(Math.max(places.size - 1, 0));
    this.#definition.clear();
    this.#body.clear();
    this.#body.u8(width);
    let nullCount = 0;
    forEachStretch(
      runs,
      (i) => (codes[i] === -1 ? 0 : 1),
      (present, rows) => {
        encodeRun(this.#definition, present, rows, 1);
        if (present === 0) nullCount += rows;
      },
    );
    forEachStretch(
      runs,
      (i) => places.get(codes[i]!) ?? -1,
      (place, rows) => {
        if (place >= 0) encodeRun(this.#body, place, rows, width);
      },
    );
    return nullCount;
  }

  #codeOf(stream: number): number {
    const { streams, codes } = this.#column;
    if (streams === undefined) return codes[stream]!;
    while (this.#cursor < streams.length && streams[this.#cursor]! < stream) this.#cursor++;
    return streams[this.#cursor] === stream ? codes[this.#cursor]! : -1;
  }
}

/** Visits neighbouring runs of equal value together. */
function forEachStretch(
  runs: readonly StreamRun[],
  valueAt: (run: number) => number,
  visit: (value: number, rows: number) => void,
): void {
  let rows = 0;
  let value = 0;
  for (let i = 0; i < runs.length; i++) {
    const next = valueAt(i);
    if (rows > 0 && next !== value) {
      visit(value, rows);
      rows = 0;
    }
    value = next;
    rows += runs[i]!.rows;
  }
  if (rows > 0) visit(value, rows);
}
