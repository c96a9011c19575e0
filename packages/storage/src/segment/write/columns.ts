import { isUtf8 } from "node:buffer";
import type { BytesColumn } from "@skald/model";
import { ByteWriter } from "../../bytes.js";
import { ColumnChunk, type SealedChunk } from "../../parquet/column-chunk.js";
import { encodeDelta, encodeLengths } from "../../parquet/delta.js";
import type { Bounds } from "../../parquet/footer.js";
import { encoding } from "../../parquet/format.js";
import { bitWidth, encodeHybrid, encodeRun } from "../../parquet/hybrid.js";
import { ValueBounds } from "../../parquet/statistics.js";
import type { LabelColumn, MapRows } from "../layout.js";

const noLevels = new Uint8Array(0);

/** The `timestamp` column: one page of deltas per block, never compressed. */
export class TimestampColumnWriter {
  readonly chunk = new ColumnChunk({ dataEncoding: encoding.deltaBinaryPacked, level: 0 });
  readonly #baseNs: bigint;
  readonly #body = new ByteWriter(4096);

  constructor(baseNs: bigint) {
    this.#baseNs = baseNs;
  }

  addBlock(timestamps: Float64Array, rowCount: number): void {
    this.#body.clear();
    encodeDelta(this.#body, timestamps, rowCount, this.#baseNs);
    this.chunk.addPage({
      rowCount,
      valueCount: rowCount,
      nullCount: 0,
      repetition: noLevels,
      definition: noLevels,
      body: this.#body.view(),
    });
  }
}

/** A column of byte strings: `line`, or one name of structured metadata, where an empty value is a null. */
export class BytesColumnWriter {
  readonly chunk: ColumnChunk;
  /** False once some value was not UTF-8. */
  utf8 = true;
  /** Of an optional column: those of lines would help nobody. */
  readonly #bounds = new ValueBounds();
  readonly #optional: boolean;
  readonly #definition = new ByteWriter(64);
  readonly #lengthBytes = new ByteWriter(4096);
  readonly #body = new ByteWriter(4096);
  #lengths = new Uint32Array(4096);
  #present = new Uint8Array(4096);

  constructor(options: { readonly level: number; readonly optional: boolean }) {
    this.chunk = new ColumnChunk({
      dataEncoding: encoding.deltaLengthByteArray,
      level: options.level,
    });
    this.#optional = options.optional;
  }

  /**
   * Adds the page of a block; an absent column is all nulls. Up to `headroom` bytes before `column.bytes` in its
   * buffer may be overwritten, which saves a copy of the values.
   */
  addBlock(column: BytesColumn | undefined, rowCount: number, headroom = 0): void {
    const count = column === undefined ? 0 : this.#measure(column, rowCount);
    this.#definition.clear();
    if (this.#optional) this.#encodeLevels(count, rowCount);
    this.#lengthBytes.clear();
    encodeLengths(this.#lengthBytes, this.#lengths, count);
    const values = column === undefined ? noLevels : valuesOf(column, rowCount);
    if (this.#optional) this.#bounds.add(values, this.#lengths, count);
    this.utf8 &&= areUtf8(values, this.#lengths, count);
    this.chunk.addPage({
      rowCount,
      valueCount: rowCount,
      nullCount: rowCount - count,
      repetition: noLevels,
      definition: this.#definition.view(),
      body: this.#joinBody(values, headroom),
    });
  }

  /** Bounds of all values of the chunk. */
  get bounds(): Bounds | undefined {
    return this.#bounds.bounds;
  }

  /** Forgets the pages, for the next row group. */
  clear(): void {
    this.chunk.clear();
    this.#bounds.clear();
  }

  /** Fills the lengths of the values and the levels; returns the number of values. */
  #measure({ offsets }: BytesColumn, rowCount: number): number {
    if (this.#lengths.length < rowCount) {
      this.#lengths = new Uint32Array(rowCount * 2);
      this.#present = new Uint8Array(rowCount * 2);
    }
    const lengths = this.#lengths;
    const present = this.#present;
    const nullable = this.#optional;
    let count = 0;
    let before = offsets[0]!;
    for (let row = 0; row < rowCount; row++) {
      const offset = offsets[row + 1]!;
      const length = offset - before;
      before = offset;
      if (nullable && length === 0) {
        present[row] = 0;
        continue;
      }
      present[row] = 1;
      lengths[count++] = length;
    }
    return count;
  }

  #encodeLevels(count: number, rowCount: number): void {
    if (count === 0) encodeRun(this.#definition, 0, rowCount, 1);
    else if (count === rowCount) encodeRun(this.#definition, 1, rowCount, 1);
    else encodeHybrid(this.#definition, this.#present, rowCount, 1);
  }

  #joinBody(values: Uint8Array, headroom: number): Uint8Array {
    const lengthBytes = this.#lengthBytes.view();
    const size = lengthBytes.byteLength + values.byteLength;
    if (lengthBytes.byteLength <= headroom) {
      const body = new Uint8Array(values.buffer, values.byteOffset - lengthBytes.byteLength, size);
      body.set(lengthBytes);
      return body;
    }
    this.#body.clear();
    this.#body.append(lengthBytes);
    this.#body.append(values);
    return this.#body.view();
  }
}

/** True when each value is UTF-8 by itself; the values lie one behind the other in `bytes`. */
export function areUtf8(bytes: Uint8Array, lengths: ArrayLike<number>, count: number): boolean {
  if (!isUtf8(bytes)) return false;
  // The whole is valid, so a value is cut inside a character only if the next begins with its continuation.
  let at = 0;
  for (let i = 0; i < count; i++) {
    const length = lengths[i]!;
    if (length > 0 && (bytes[at]! & 0xc0) === 0x80) return false;
    at += length;
  }
  return true;
}

/** Headroom for the lengths of any block of `rowCount` rows. */
export function lengthsHeadroom(rowCount: number): number {
  return 64 + Math.ceil(rowCount / 128) * (16 + 4 * 128);
}

function valuesOf({ bytes, offsets }: BytesColumn, rowCount: number): Uint8Array {
  return bytes.subarray(offsets[0]!, offsets[rowCount]!);
}

/** Rows of one stream that follow each other in a row group. */
export interface StreamRun {
  readonly stream: number;
  readonly rows: number;
}

/**
 * One label as a Parquet column: a sorted dictionary and one page per row group, in runs. Other readers need it; ours
 * takes labels from the index. Row groups must come in the order of the streams.
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

  /**
   * Encodes the runs of a row group, and ranks their values: the place of each among the sorted values, nulls last. The result
   * is valid until the next call.
   */
  seal(
    runs: readonly StreamRun[],
    rowCount: number,
  ): { chunk: SealedChunk; bounds?: Bounds; ranks: readonly number[] } {
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
      body: this.#body.view(),
    });
    const chunk = this.#chunk.seal();
    const min = values[0]?.bytes;
    const max = values.at(-1)?.bytes;
    const ranks = codes.map((code) => places.get(code) ?? places.size);
    if (min === undefined || max === undefined) return { chunk, ranks };
    return { chunk, ranks, bounds: { min, max, pages: [{ min, max }] } };
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
    this.key.addPage({ ...page, body: this.#keyBody.view() });
    this.value.addPage({ ...page, body: this.#valueBody.view() });
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
