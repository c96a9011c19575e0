import type { Labels } from "@skald/model";
import { ProtoWriter } from "@skald/transport/protobuf";

/** One sample of a series. */
export interface TimedSample {
  readonly labels: Labels;
  /** Undefined ends the series. */
  readonly value: number | undefined;
  /** ms since the epoch */
  readonly timeMs: number;
}

const wire = { varint: 0, fixed64: 1, bytes: 2 };
/** The bits of the one NaN that says that a series has ended. */
const staleBits = 0x7ff0_0000_0000_0002n;

/** A `WriteRequest` of Prometheus remote write 1.0: a series for each sample, in their order. */
export function encodeWriteRequest(samples: readonly TimedSample[]): Uint8Array {
  const writer = new ProtoWriter(samples.length * 128);
  for (const sample of samples) {
    writer.tag(1, wire.bytes);
    writer.nested(sample, writeSeries);
  }
  return writer.finish();
}

function writeSeries(writer: ProtoWriter, sample: TimedSample): void {
  const { names, values } = sample.labels;
  for (let i = 0; i < names.length; i++) {
    writer.tag(1, wire.bytes);
    writer.nested([names[i]!, values[i] as string] as const, writeLabel);
  }
  writer.tag(2, wire.bytes);
  writer.nested(sample, writeSample);
}

function writeLabel(writer: ProtoWriter, [name, value]: readonly [string, string]): void {
  writer.tag(1, wire.bytes);
  writer.text(name);
  writer.tag(2, wire.bytes);
  writer.text(value);
}

function writeSample(writer: ProtoWriter, { value, timeMs }: TimedSample): void {
  writer.tag(1, wire.fixed64);
  if (value === undefined) writer.int64(staleBits);
  else writer.double(value);
  writer.tag(2, wire.varint);
  writer.varint(timeMs);
}

/** Matches lie within blocks of this size, so that offsets fit two bytes. */
const blockBytes = 65_536;
const minMatch = 4;
const tableBits = 14;

/** Compresses into one raw snappy block. */
export function compressSnappy(input: Uint8Array): Uint8Array {
  const out = new Output(input.length);
  const table = new Int32Array(1 << tableBits);
  const view = new DataView(input.buffer, input.byteOffset, input.byteLength);
  for (let start = 0; start < input.length; start += blockBytes) {
    table.fill(-1);
    compressBlock({ input, view, table, out }, start, Math.min(start + blockBytes, input.length));
  }
  return out.finish();
}

interface Work {
  readonly input: Uint8Array;
  readonly view: DataView;
  /** The last place of four bytes with a hash. */
  readonly table: Int32Array;
  readonly out: Output;
}

function compressBlock({ input, view, table, out }: Work, start: number, end: number): void {
  let pending = start;
  let at = start;
  while (at + minMatch <= end) {
    const four = view.getUint32(at, true);
    const slot = Math.imul(four, 0x1e35a7bd) >>> (32 - tableBits);
    const seen = table[slot]!;
    table[slot] = at;
    if (seen < 0 || view.getUint32(seen, true) !== four) {
      at++;
      continue;
    }
    let length = minMatch;
    while (at + length < end && input[seen + length] === input[at + length]) length++;
    out.literal(input.subarray(pending, at));
    out.copy(at - seen, length);
    at += length;
    pending = at;
  }
  out.literal(input.subarray(pending, end));
}

/** The elements of a snappy block. */
class Output {
  readonly #bytes: Uint8Array;
  #at = 0;

  constructor(length: number) {
    this.#bytes = new Uint8Array(32 + length + Math.ceil(length / 6));
    let left = length;
    while (left > 0x7f) {
      this.#bytes[this.#at++] = (left & 0x7f) | 0x80;
      left >>>= 7;
    }
    this.#bytes[this.#at++] = left;
  }

  /** Adds bytes as they are, at most a block. */
  literal(bytes: Uint8Array): void {
    if (bytes.length === 0) return;
    const length = bytes.length - 1;
    if (length < 60) this.#bytes[this.#at++] = length << 2;
    else if (length < 256) this.#put(60 << 2, length);
    else this.#put(61 << 2, length & 0xff, length >>> 8);
    this.#bytes.set(bytes, this.#at);
    this.#at += bytes.length;
  }

  copy(offset: number, length: number): void {
    for (let left = length; left > 0; ) {
      // The last piece is at least one byte; any length from 1 to 64 is allowed here.
      const piece = Math.min(left, 64);
      this.#put(((piece - 1) << 2) | 2, offset & 0xff, offset >>> 8);
      left -= piece;
    }
  }

  finish(): Uint8Array {
    return this.#bytes.subarray(0, this.#at);
  }

  #put(...bytes: readonly number[]): void {
    for (const byte of bytes) this.#bytes[this.#at++] = byte;
  }
}
