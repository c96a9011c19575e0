import { invalidArgument } from "@skald/model";

/** Wire types of protobuf. */
export const wire = { varint: 0, fixed64: 1, bytes: 2, fixed32: 5 } as const;

const maxVarintBytes = 10;

/** Reads the fields of protobuf messages in place. Throws invalid_argument for malformed messages. */
export class FieldReader {
  readonly bytes: Uint8Array;
  at: number;
  /** End of the message that is being read. */
  end: number;
  /** Halves of the last 64-bit number. */
  low = 0;
  high = 0;

  constructor(bytes: Uint8Array, start: number, end: number) {
    this.bytes = bytes;
    this.at = start;
    this.end = end;
  }

  /** The next tag, field number and wire type; 0 at the end of the message. */
  tag(): number {
    if (this.at >= this.end) return 0;
    const byte = this.bytes[this.at]!;
    if (byte >= 0x08 && byte < 0x80) {
      this.at++;
      return byte;
    }
    const tag = this.varint();
    if (tag < 0x08 || tag > 0xffffffff) throw invalidArgument("proto: illegal tag");
    return tag;
  }

  /** A varint; exact up to 2^53. */
  varint(): number {
    const byte = this.bytes[this.at]!;
    if (byte < 0x80 && this.at < this.end) {
      this.at++;
      return byte;
    }
    this.varint64();
    return this.high * 0x1_0000_0000 + this.low;
  }

  /** A signed 32-bit varint; higher bits are cut off. */
  int32(): number {
    const value = this.varint();
    return value < 0x8000_0000 ? value : this.low | 0;
  }

  /** A varint into `low` and `high`. */
  varint64(): void {
    let low = 0;
    let high = 0;
    for (let i = 0; i < maxVarintBytes; i++) {
      if (this.at >= this.end) throw unexpectedEnd();
      const byte = this.bytes[this.at++]!;
      const bits = byte & 0x7f;
      if (i < 4) low |= bits << (7 * i);
      else if (i === 4) {
        low |= bits << 28;
        high |= bits >>> 4;
      } else high |= bits << (7 * i - 32);
      if (byte < 0x80) {
        this.low = low >>> 0;
        this.high = high >>> 0;
        return;
      }
    }
    throw invalidArgument("proto: integer overflow");
  }

  /** A fixed 64-bit number into `low` and `high`. */
  fixed64(): void {
    this.low = this.fixed32();
    this.high = this.fixed32();
  }

  fixed32(): number {
    const { bytes, at } = this;
    if (at + 4 > this.end) throw unexpectedEnd();
    this.at = at + 4;
    return (
      (bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 24)) >>> 0
    );
  }

  /** Reads the length of the bytes, text or message that follows. */
  length(): number {
    const length = this.varint();
    if (length > this.end - this.at) throw unexpectedEnd();
    return length;
  }

  /** Enters the message that comes next; pass the result to `leave`. */
  enter(): number {
    const outer = this.end;
    const length = this.length();
    this.end = this.at + length;
    return outer;
  }

  leave(outer: number): void {
    this.at = this.end;
    this.end = outer;
  }

  /** Reads each message that has the wanted tag, with the reader at its start, and skips other fields. */
  each(wanted: number, read: (reader: FieldReader) => void): void {
    for (let tag = this.tag(); tag !== 0; tag = this.tag()) {
      if (tag !== wanted) {
        this.skip(tag);
        continue;
      }
      const outer = this.enter();
      read(this);
      this.leave(outer);
    }
  }

  /** Skips the value of a tag. */
  skip(tag: number): void {
    const type = tag & 7;
    if (type === wire.varint) this.varint();
    else if (type === wire.bytes) this.leave(this.enter());
    else if (type === wire.fixed64) this.fixed64();
    else if (type === wire.fixed32) this.fixed32();
    else throw invalidArgument(`proto: illegal wireType ${type}`);
  }
}

function unexpectedEnd(): Error {
  return invalidArgument("unexpected EOF");
}

/** Numbers of the fields of a LogRecord that are texts, bytes or messages. */
export const recordField = {
  severityText: 3,
  body: 5,
  traceId: 9,
  spanId: 10,
  eventName: 12,
} as const;

const fieldCount = 16;
const attributeTag = 0x32;

/** The fields of a LogRecord without its attributes. */
export class RecordFields {
  /** Ranges of the fields of `recordField`. */
  readonly starts = new Uint32Array(fieldCount);
  readonly lengths = new Uint32Array(fieldCount);
  severity = 0;
  dropped = 0;
  flags = 0;
  /** Halves of the times, ns since the epoch; 0 when there is none. */
  timeLow = 0;
  timeHigh = 0;
  observedLow = 0;
  observedHigh = 0;

  get isTimed(): boolean {
    return this.timeLow !== 0 || this.timeHigh !== 0;
  }

  get isObserved(): boolean {
    return this.observedLow !== 0 || this.observedHigh !== 0;
  }

  /** Reads the record that a reader has entered; `onAttribute` must read the message of each attribute. */
  read(reader: FieldReader, onAttribute: (reader: FieldReader) => void): void {
    this.#clear();
    for (let tag = reader.tag(); tag !== 0; tag = reader.tag()) {
      if (tag === attributeTag) onAttribute(reader);
      else if ((tag & 7) === wire.bytes) {
        const length = reader.length();
        const field = tag >>> 3;
        if (field < fieldCount) {
          this.starts[field] = reader.at;
          this.lengths[field] = length;
        }
        reader.at += length;
      } else this.#readNumber(reader, tag);
    }
  }

  #readNumber(reader: FieldReader, tag: number): void {
    if (tag === 0x09) {
      this.timeLow = reader.fixed32();
      this.timeHigh = reader.fixed32();
    } else if (tag === 0x59) {
      this.observedLow = reader.fixed32();
      this.observedHigh = reader.fixed32();
    } else if (tag === 0x10) this.severity = reader.int32();
    else if (tag === 0x38) this.dropped = reader.int32() >>> 0;
    else if (tag === 0x45) this.flags = reader.fixed32();
    else reader.skip(tag);
  }

  #clear(): void {
    this.lengths.fill(0);
    this.starts.fill(0);
    this.severity = 0;
    this.dropped = 0;
    this.flags = 0;
    this.timeLow = 0;
    this.timeHigh = 0;
    this.observedLow = 0;
    this.observedHigh = 0;
  }
}
