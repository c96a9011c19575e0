import { grown, type RawPush, type RawPushLimits, type TakeBytes } from "@skald/kernels";
import { paddingBytes, tooLarge } from "@skald/model";

/** Rough sizes of a record and of a pair in a body: they give the initial room of the columns. */
const bytesPerRow = 96;
const bytesPerPair = 16;
const minRoom = 64;

/** A range of the arena. */
export interface ArenaRange {
  readonly start: number;
  readonly length: number;
}

/** Pairs that many rows share. */
export class SharedPairs {
  readonly ranges: number[] = [];

  addPair(nameStart: number, nameLength: number, valueStart: number, valueLength: number): void {
    if (valueLength > 0) this.ranges.push(nameStart, nameLength, valueStart, valueLength);
  }
}

/** Collects the rows and streams of a push one by one. Throws too_large beyond the limits. */
export class PushRows {
  rowCount = 0;
  /** May be set back to drop pairs of the row that was not ended. */
  pairCount = 0;
  /** After `finish`: the number that each row had when it was added; undefined where that is its place. */
  order: Uint32Array | undefined;
  readonly #limits: RawPushLimits;
  #seconds: Float64Array;
  #nanos: Uint32Array;
  #lineStart: Uint32Array;
  #lineLength: Uint32Array;
  #rowStream: Uint32Array;
  #metaStart: Uint32Array;
  #nameStart: Uint32Array;
  #nameLength: Uint32Array;
  #valueStart: Uint32Array;
  #valueLength: Uint32Array;
  readonly #streams: { readonly labels: ArenaRange; readonly isServiceKnown: boolean }[] = [];
  #isOrdered = true;

  constructor(bodyBytes: number, limits: RawPushLimits, take?: TakeBytes) {
    this.#limits = limits;
    const rows = Math.min(limits.maxRows, minRoom + Math.ceil(bodyBytes / bytesPerRow));
    const pairs = Math.min(limits.maxPairs, minRoom + Math.ceil(bodyBytes / bytesPerPair));
    const u32s = (length: number) => {
      const memory = take?.(length * 4);
      return memory === undefined
        ? new Uint32Array(length)
        : new Uint32Array(memory.buffer, memory.byteOffset, length);
    };
    const seconds = take?.(rows * 8);
    this.#seconds =
      seconds === undefined
        ? new Float64Array(rows)
        : new Float64Array(seconds.buffer, seconds.byteOffset, rows);
    this.#nanos = u32s(rows);
    this.#lineStart = u32s(rows);
    this.#lineLength = u32s(rows);
    this.#rowStream = u32s(rows);
    this.#metaStart = u32s(rows + 1);
    this.#metaStart[0] = 0;
    this.#nameStart = u32s(pairs);
    this.#nameLength = u32s(pairs);
    this.#valueStart = u32s(pairs);
    this.#valueLength = u32s(pairs);
  }

  /** Adds a stream; returns its number. */
  addStream(labels: ArenaRange, isServiceKnown: boolean): number {
    if (this.#streams.length === this.#limits.maxStreams) {
      throw tooLarge(`push has more than ${this.#limits.maxStreams} streams`);
    }
    this.#streams.push({ labels, isServiceKnown });
    return this.#streams.length - 1;
  }

  /** Adds a pair to the row that `addRow` will end. */
  addPair(nameStart: number, nameLength: number, valueStart: number, valueLength: number): void {
    if (valueLength === 0) return;
    if (this.pairCount === this.#nameStart.length) this.#growPairs(1);
    const at = this.pairCount++;
    this.#nameStart[at] = nameStart;
    this.#nameLength[at] = nameLength;
    this.#valueStart[at] = valueStart;
    this.#valueLength[at] = valueLength;
  }

  addShared({ ranges }: SharedPairs): void {
    const count = ranges.length / 4;
    if (this.pairCount + count > this.#nameStart.length) this.#growPairs(count);
    let at = this.pairCount;
    for (let i = 0; i < ranges.length; i += 4) {
      this.#nameStart[at] = ranges[i]!;
      this.#nameLength[at] = ranges[i + 1]!;
      this.#valueStart[at] = ranges[i + 2]!;
      this.#valueLength[at++] = ranges[i + 3]!;
    }
    this.pairCount = at;
  }

  /** Ends a row, which owns all pairs since the row before. */
  addRow(stream: number, seconds: number, nanos: number, line: ArenaRange): void {
    if (this.rowCount === this.#seconds.length) this.#growRows();
    const row = this.rowCount++;
    if (row > 0 && this.#rowStream[row - 1]! > stream) this.#isOrdered = false;
    this.#rowStream[row] = stream;
    this.#seconds[row] = seconds;
    this.#nanos[row] = nanos;
    this.#lineStart[row] = line.start;
    this.#lineLength[row] = line.length;
    this.#metaStart[row + 1] = this.pairCount;
  }

  /** Returns the push, with the rows of each stream next to each other. */
  finish(arena: TextArena): RawPush {
    const streamRowStart = this.#countRows();
    const streams = this.#streams;
    const rows = this.#isOrdered ? this.#rowColumns() : this.#orderedColumns(streamRowStart);
    return {
      bytes: arena.bytes.subarray(0, arena.end),
      streamCount: streams.length,
      rowCount: this.rowCount,
      pairCount: this.pairCount,
      streamLabelStart: Uint32Array.from(streams, ({ labels }) => labels.start),
      streamLabelLength: Uint32Array.from(streams, ({ labels }) => labels.length),
      streamServiceKnown: Uint8Array.from(streams, ({ isServiceKnown }) => Number(isServiceKnown)),
      streamRowStart,
      ...rows,
    };
  }

  #countRows(): Uint32Array {
    const starts = new Uint32Array(this.#streams.length + 1);
    for (let row = 0; row < this.rowCount; row++) starts[this.#rowStream[row]! + 1]!++;
    for (let stream = 0; stream < this.#streams.length; stream++) {
      starts[stream + 1]! += starts[stream]!;
    }
    return starts;
  }

  #rowColumns(): RowColumns {
    const { rowCount, pairCount } = this;
    return {
      seconds: this.#seconds.subarray(0, rowCount),
      nanos: this.#nanos.subarray(0, rowCount),
      lineStart: this.#lineStart.subarray(0, rowCount),
      lineLength: this.#lineLength.subarray(0, rowCount),
      metaStart: this.#metaStart.subarray(0, rowCount + 1),
      metaNameStart: this.#nameStart.subarray(0, pairCount),
      metaNameLength: this.#nameLength.subarray(0, pairCount),
      metaValueStart: this.#valueStart.subarray(0, pairCount),
      metaValueLength: this.#valueLength.subarray(0, pairCount),
    };
  }

  /** The columns with the rows sorted by stream; rows of one stream keep their order. */
  #orderedColumns(streamRowStart: Uint32Array): RowColumns {
    const { rowCount } = this;
    const from = this.#rowColumns();
    const place = streamRowStart.slice();
    const order = new Uint32Array(rowCount);
    for (let row = 0; row < rowCount; row++) order[place[this.#rowStream[row]!]!++] = row;
    this.order = order;
    const to: RowColumns = {
      seconds: new Float64Array(rowCount),
      nanos: new Uint32Array(rowCount),
      lineStart: new Uint32Array(rowCount),
      lineLength: new Uint32Array(rowCount),
      metaStart: new Uint32Array(rowCount + 1),
      metaNameStart: new Uint32Array(this.pairCount),
      metaNameLength: new Uint32Array(this.pairCount),
      metaValueStart: new Uint32Array(this.pairCount),
      metaValueLength: new Uint32Array(this.pairCount),
    };
    let pair = 0;
    for (let i = 0; i < rowCount; i++) {
      const row = order[i]!;
      for (const name of rowFields) to[name][i] = from[name][row]!;
      const end = from.metaStart[row + 1]!;
      for (let source = from.metaStart[row]!; source < end; source++, pair++) {
        for (const name of pairFields) to[name][pair] = from[name][source]!;
      }
      to.metaStart[i + 1] = pair;
    }
    return to;
  }

  #growRows(): void {
    const { maxRows } = this.#limits;
    if (this.rowCount === maxRows) throw tooLarge(`push has more than ${maxRows} entries`);
    const room = Math.min(maxRows, 2 * this.rowCount);
    this.#seconds = grown(this.#seconds, room);
    this.#nanos = grown(this.#nanos, room);
    this.#lineStart = grown(this.#lineStart, room);
    this.#lineLength = grown(this.#lineLength, room);
    this.#rowStream = grown(this.#rowStream, room);
    this.#metaStart = grown(this.#metaStart, room + 1);
  }

  #growPairs(count: number): void {
    const { maxPairs } = this.#limits;
    const needed = this.pairCount + count;
    if (needed > maxPairs) {
      throw tooLarge(`push has more than ${maxPairs} pairs of structured metadata`);
    }
    const room = Math.min(maxPairs, Math.max(needed, 2 * this.pairCount));
    this.#nameStart = grown(this.#nameStart, room);
    this.#nameLength = grown(this.#nameLength, room);
    this.#valueStart = grown(this.#valueStart, room);
    this.#valueLength = grown(this.#valueLength, room);
  }
}

const rowFields = ["seconds", "nanos", "lineStart", "lineLength"] as const;
const pairFields = [
  "metaNameStart",
  "metaNameLength",
  "metaValueStart",
  "metaValueLength",
] as const;

type RowColumns = Pick<
  RawPush,
  (typeof rowFields)[number] | (typeof pairFields)[number] | "metaStart"
>;

const zero = 0x30;
const hexDigits = Uint8Array.from("0123456789abcdef", (digit) => digit.charCodeAt(0));

/** Bytes that grow at their end; ranges of them stay valid. Throws too_large beyond its limit. */
export class TextArena {
  bytes: Uint8Array;
  end = 0;
  readonly #maxBytes: number;

  /** Starts with room for `capacity` bytes, from `take` when given. */
  constructor(capacity: number, maxBytes: number, take?: TakeBytes) {
    this.#maxBytes = maxBytes;
    this.bytes = take?.(capacity) ?? new Uint8Array(capacity + paddingBytes).subarray(0, capacity);
  }

  /** Makes room for `length` more bytes. */
  reserve(length: number): void {
    const needed = this.end + length;
    if (needed <= this.bytes.length) return;
    if (needed > this.#maxBytes) {
      throw tooLarge(`request body too large: decoded body is larger than ${this.#maxBytes} bytes`);
    }
    const capacity = Math.min(this.#maxBytes, Math.max(needed, this.bytes.length * 2));
    const larger = new Uint8Array(capacity + paddingBytes).subarray(0, capacity);
    larger.set(this.bytes.subarray(0, this.end));
    this.bytes = larger;
  }

  byte(byte: number): void {
    if (this.end === this.bytes.length) this.reserve(1);
    this.bytes[this.end++] = byte;
  }

  /** Appends ASCII text. */
  ascii(text: string): void {
    this.reserve(text.length);
    for (let i = 0; i < text.length; i++) this.bytes[this.end++] = text.charCodeAt(i);
  }

  /** Appends any text. */
  utf8(text: string): void {
    const { length } = text;
    this.reserve(3 * length);
    this.end += Buffer.from(this.bytes.buffer, this.bytes.byteOffset + this.end).write(text);
  }

  /** Appends a range of bytes, which may be its own. */
  copy(from: Uint8Array, start: number, length: number): void {
    this.reserve(length);
    if (length > 64) this.bytes.set(from.subarray(start, start + length), this.end);
    else for (let i = 0; i < length; i++) this.bytes[this.end + i] = from[start + i]!;
    this.end += length;
  }

  /** Appends a fixed 32-bit number, its lowest byte first. */
  fixed32(value: number): void {
    this.reserve(4);
    for (let shift = 0; shift < 32; shift += 8) this.bytes[this.end++] = value >>> shift;
  }

  hex(from: Uint8Array, start: number, length: number): void {
    this.reserve(2 * length);
    for (let i = start; i < start + length; i++) {
      const byte = from[i]!;
      this.bytes[this.end++] = hexDigits[byte >> 4]!;
      this.bytes[this.end++] = hexDigits[byte & 15]!;
    }
  }

  /** Appends a whole number from 0 to 2^53, with leading zeros up to `digits`. */
  decimal(value: number, digits = 1): void {
    let count = digits;
    for (let bound = 10 ** digits; value >= bound; bound *= 10) count++;
    this.reserve(count);
    let rest = value;
    let at = this.end + count;
    for (; rest > 0xffff_ffff; rest = Math.floor(rest / 10)) this.bytes[--at] = zero + (rest % 10);
    for (let small = rest >>> 0; at > this.end; ) {
      const tenth = (small / 10) >>> 0;
      this.bytes[--at] = zero + small - 10 * tenth;
      small = tenth;
    }
    this.end += count;
  }
}
