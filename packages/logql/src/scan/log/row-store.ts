import { grown } from "@skald/kernels";
import { type BytesColumn, dayNs, paddingBytes } from "@skald/model";
import type { Direction } from "../../plan/plan.js";

const initialRows = 64;
const initialBytes = 4096;

/**
 * Where a row stands among all rows of a query; `day` counts UTC days since the epoch, `time` is ns within it, `stream` is
 * the key of its stream.
 */
export interface RowPlace {
  readonly day: number;
  readonly time: number;
  readonly stream: number;
  readonly sequence: number;
  readonly row: number;
  readonly labelSet: number;
}

/** Places of rows in columns. */
export interface RowPlaces {
  readonly day: Float64Array;
  readonly time: Float64Array;
  readonly stream: Float64Array;
  readonly sequence: Float64Array;
  readonly row: Float64Array;
}

/**
 * The one order of log rows: by time, then by stream, then as they came: by source and block, and as they stand in the
 * block. Negative when row i of the first comes before row j of the second; with the sign changed it is the order of a
 * backward query.
 */
export function compareRows(a: RowPlaces, i: number, b: RowPlaces, j: number): number {
  return (
    a.day[i]! - b.day[j]! ||
    a.time[i]! - b.time[j]! ||
    a.stream[i]! - b.stream[j]! ||
    a.sequence[i]! - b.sequence[j]! ||
    a.row[i]! - b.row[j]!
  );
}

/** ns since the epoch of a row. */
export function timestampNs({ day, time }: RowPlaces, at: number): bigint {
  return BigInt(day[at]!) * dayNs + BigInt(time[at]!);
}

/** A growing store of rows in columns, with the bytes of their lines. */
export class RowStore implements RowPlaces {
  count = 0;
  /** The lines, one behind the other. */
  readonly bytes: ByteStore;
  day: Float64Array;
  time: Float64Array;
  stream: Float64Array;
  sequence: Float64Array;
  row: Float64Array;
  #labelSet: Uint32Array;
  #lineStart: Uint32Array;

  /** Has room for so many rows, and so many bytes of lines, and takes more when there are more. */
  constructor(rows = initialRows, lineBytes = initialBytes) {
    this.bytes = new ByteStore(lineBytes);
    this.day = new Float64Array(rows);
    this.time = new Float64Array(rows);
    this.stream = new Float64Array(rows);
    this.sequence = new Float64Array(rows);
    this.row = new Float64Array(rows);
    this.#labelSet = new Uint32Array(rows);
    this.#lineStart = new Uint32Array(rows + 1);
  }

  push(place: RowPlace, line: Uint8Array): void {
    if (this.count === this.row.length) this.#grow();
    const at = this.count++;
    this.day[at] = place.day;
    this.time[at] = place.time;
    this.stream[at] = place.stream;
    this.sequence[at] = place.sequence;
    this.row[at] = place.row;
    this.#labelSet[at] = place.labelSet;
    this.bytes.push(line);
    this.#lineStart[at + 1] = this.bytes.length;
  }

  place(at: number): RowPlace {
    return {
      day: this.day[at]!,
      time: this.time[at]!,
      stream: this.stream[at]!,
      sequence: this.sequence[at]!,
      row: this.row[at]!,
      labelSet: this.#labelSet[at]!,
    };
  }

  line(at: number): Uint8Array {
    return this.bytes.slice(this.#lineStart[at]!, this.#lineStart[at + 1]!);
  }

  lineBytes(at: number): number {
    return this.#lineStart[at + 1]! - this.#lineStart[at]!;
  }

  timestampNs(at: number): bigint {
    return timestampNs(this, at);
  }

  /** As columns, which are the store's own; so are `labelSets` and `lines`. */
  places(): RowPlaces {
    const used = (column: Float64Array) => column.subarray(0, this.count);
    return {
      day: used(this.day),
      time: used(this.time),
      stream: used(this.stream),
      sequence: used(this.sequence),
      row: used(this.row),
    };
  }

  /** Numbers of the rows, best first in a direction. */
  order(direction: Direction): Uint32Array {
    const order = new Uint32Array(this.count);
    for (let i = 0; i < order.length; i++) order[i] = i;
    const sign = direction === "forward" ? 1 : -1;
    return order.sort((a, b) => sign * compareRows(this, a, this, b) || a - b);
  }

  timestamps(): BigInt64Array {
    const out = new BigInt64Array(this.count);
    for (let i = 0; i < out.length; i++) out[i] = this.timestampNs(i);
    return out;
  }

  labelSets(): Uint32Array {
    return this.#labelSet.subarray(0, this.count);
  }

  lines(): BytesColumn {
    return { bytes: this.bytes.padded(), offsets: this.#lineStart.subarray(0, this.count + 1) };
  }

  #grow(): void {
    const length = Math.max(initialRows, this.row.length * 2);
    this.day = grown(this.day, length);
    this.time = grown(this.time, length);
    this.stream = grown(this.stream, length);
    this.sequence = grown(this.sequence, length);
    this.row = grown(this.row, length);
    this.#labelSet = grown(this.#labelSet, length);
    this.#lineStart = grown(this.#lineStart, length + 1);
  }
}

/** Bytes appended one after the other. */
class ByteStore {
  length = 0;
  #bytes: Uint8Array;

  constructor(capacity: number) {
    this.#bytes = new Uint8Array(capacity + paddingBytes);
  }

  push(bytes: Uint8Array): void {
    const end = this.length + bytes.length;
    if (end + paddingBytes > this.#bytes.length) {
      this.#bytes = grown(this.#bytes, Math.max(end + paddingBytes, this.#bytes.length * 2));
    }
    this.#bytes.set(bytes, this.length);
    this.length = end;
  }

  slice(from: number, to: number): Uint8Array {
    return this.#bytes.subarray(from, to);
  }

  /** All, with padding behind; gone with the next one that is added. */
  padded(): Uint8Array {
    return this.#bytes.subarray(0, this.length + paddingBytes);
  }
}
