import { isUtf8 } from "node:buffer";
import type { BytesColumn } from "@skald/model";
import { ByteWriter } from "../../bytes.js";
import { ColumnChunk } from "../../parquet/column-chunk.js";
import { encodeDelta } from "../../parquet/delta.js";
import { encodeLengths } from "../../parquet/delta-length.js";
import { encoding } from "../../parquet/format.js";
import { encodeHybrid, encodeRun } from "../../parquet/hybrid.js";

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
      encoding: encoding.deltaBinaryPacked,
      body: this.#body.view(),
    });
  }
}

/** A column of byte strings: `line`, or one name of structured metadata, where an empty value is a null. */
export class BytesColumnWriter {
  readonly chunk: ColumnChunk;
  /** False once some value was not UTF-8. */
  utf8 = true;
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
    this.utf8 &&= areUtf8(values, this.#lengths, count);
    this.chunk.addPage({
      rowCount,
      valueCount: rowCount,
      nullCount: rowCount - count,
      repetition: noLevels,
      definition: this.#definition.view(),
      encoding: encoding.deltaLengthByteArray,
      body: this.#joinBody(values, headroom),
    });
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

/** True when each of the values, which lie one behind the other in `bytes`, is UTF-8 by itself. */
export function areUtf8(bytes: Uint8Array, lengths: Uint32Array, count: number): boolean {
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

/** Headroom that holds the lengths of any block of so many rows. */
export function lengthsHeadroom(rowCount: number): number {
  return 64 + Math.ceil(rowCount / 128) * (16 + 4 * 128);
}

function valuesOf({ bytes, offsets }: BytesColumn, rowCount: number): Uint8Array {
  return bytes.subarray(offsets[0]!, offsets[rowCount]!);
}
