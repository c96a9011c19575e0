import { type ProtoReader, wire } from "./proto-reader.js";

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

/** What a LogRecord has beside its attributes. */
export class RecordFields {
  /** Ranges of the fields of `recordField`. */
  readonly starts = new Uint32Array(fieldCount);
  readonly lengths = new Uint32Array(fieldCount);
  severity = 0;
  dropped = 0;
  flags = 0;
  /** Halves of the times, ns since the epoch; 0 for none. */
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

  /** Reads the record that a reader has entered; `onAttribute` reads the message of each attribute. */
  read(reader: ProtoReader, onAttribute: (reader: ProtoReader) => void): void {
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

  #readNumber(reader: ProtoReader, tag: number): void {
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

const two32 = 0x1_0000_0000;
const nanosPerSecond = 1e9;

/** Whole seconds of a time in ns, given in halves. */
export function secondsOf(low: number, high: number): number {
  const rest = restOfHigh(high);
  const seconds = Math.round((high * two32 - rest) / nanosPerSecond);
  return seconds + Math.floor((rest + low) / nanosPerSecond);
}

/** What is left of a time beyond its whole seconds, ns. */
export function nanosOf(low: number, high: number): number {
  return (restOfHigh(high) + low) % nanosPerSecond;
}

// The upper half alone is exact as a double, and so is its remainder.
function restOfHigh(high: number): number {
  return (high * two32) % nanosPerSecond;
}
