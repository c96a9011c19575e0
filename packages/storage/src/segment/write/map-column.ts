import { ByteWriter } from "../../bytes.js";
import { ColumnChunk } from "../../parquet/column-chunk.js";
import { encodeLengths } from "../../parquet/delta-length.js";
import { encoding } from "../../parquet/format.js";
import { bitWidth, encodeHybrid, encodeRun } from "../../parquet/hybrid.js";
import type { MapRows } from "../layout.js";
import { areUtf8 } from "./columns.js";

/**
 * A MAP<string, string> column: its two leaves, one page per block. The dictionary of a row group has its names in
 * order of first use, so that pages can be encoded before the group is complete.
 */
export class MapColumnWriter {
  readonly key: ColumnChunk;
  readonly value: ColumnChunk;
  /** False once some value was not UTF-8. */
  utf8 = true;
  readonly #nameOf: (name: number) => string;
  readonly #places = new Map<number, number>();
  readonly #repetition = new ByteWriter(64);
  readonly #definition = new ByteWriter(64);
  readonly #keyBody = new ByteWriter(256);
  readonly #valueBody = new ByteWriter(256);

  constructor(options: { readonly level: number; readonly nameOf: (name: number) => string }) {
    this.#nameOf = options.nameOf;
    const { level } = options;
    this.key = new ColumnChunk({ dataEncoding: encoding.rleDictionary, level });
    this.value = new ColumnChunk({ dataEncoding: encoding.deltaLengthByteArray, level });
  }

  addBlock(rows: MapRows): void {
    for (const name of rows.used) {
      if (!this.#places.has(name)) this.#places.set(name, this.#places.size);
    }
    const nullCount = this.#encodeLevels(rows);
    const valueCount = rows.names.length + nullCount;
    const width = bitWidth(Math.max(this.#places.size - 1, 0));
    this.#keyBody.clear();
    this.#keyBody.u8(width);
    const places = rows.names.map((name) => this.#places.get(name)!);
    encodeHybrid(this.#keyBody, places, places.length, width);
    this.#valueBody.clear();
    encodeLengths(this.#valueBody, rows.valueLengths, rows.valueLengths.length);
    this.#valueBody.append(rows.values);
    this.utf8 &&= areUtf8(rows.values, rows.valueLengths, rows.valueLengths.length);
    const page = {
      rowCount: rows.rowCount,
      valueCount,
      nullCount,
      repetition: this.#repetition.view(),
      definition: this.#definition.view(),
    };
    this.key.addPage({
      ...page,
      encoding: encoding.rleDictionary,
      body: this.#keyBody.view(),
    });
    this.value.addPage({
      ...page,
      encoding: encoding.deltaLengthByteArray,
      body: this.#valueBody.view(),
    });
  }

  /** Hands the dictionary of the row group to the key column. */
  endGroup(): void {
    this.key.setDictionary(
      [...this.#places.keys()].map((name) => Buffer.from(this.#nameOf(name), "utf8")),
      false,
    );
  }

  clear(): void {
    this.key.clear();
    this.value.clear();
    this.#places.clear();
  }

  /** A row without pairs is one null at the level of the map; returns their number. */
  #encodeLevels({ rowCount, pairStart, names }: MapRows): number {
    this.#repetition.clear();
    this.#definition.clear();
    if (names.length === 0) {
      encodeRun(this.#repetition, 0, rowCount, 1);
      encodeRun(this.#definition, 0, rowCount, 1);
      return rowCount;
    }
    const repetition = new Uint8Array(names.length + rowCount);
    const definition = new Uint8Array(names.length + rowCount);
    let at = 0;
    let nullCount = 0;
    for (let row = 0; row < rowCount; row++) {
      const pairs = pairStart[row + 1]! - pairStart[row]!;
      if (pairs === 0) {
        nullCount++;
        at++;
        continue;
      }
      definition.fill(1, at, at + pairs);
      repetition.fill(1, at + 1, at + pairs);
      at += pairs;
    }
    encodeHybrid(this.#repetition, repetition, at, 1);
    encodeHybrid(this.#definition, definition, at, 1);
    return nullCount;
  }
}
