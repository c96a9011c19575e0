import type { Kernels } from "../shared/kernels.js";
import {
  maxTimestampSeconds,
  noTimestampSeconds,
  PushFaultSignal,
  pushFault,
  pushFaultError,
} from "../shared/raw-push.js";
import { PushColumns } from "./push-columns.js";
import { decodeSnappy } from "./snappy.js";

/**
 * Decodes a logproto PushRequest in a raw snappy block into columns. Fields may come in any order; repeated
 * scalars and timestamps merge as protobuf says (the last one wins); unknown fields are skipped. Lines are not
 * checked for UTF-8: their bytes stay as they came.
 */
export const decodeSnappyProtobufPush: Kernels["decodeSnappyProtobufPush"] = (body, limits) => {
  const bytes = decodeSnappy(body, limits.maxDecodedBytes);
  const scan = new ProtobufPushScan(bytes, new PushColumns(limits));
  try {
    scan.readRequest();
  } catch (error) {
    if (!(error instanceof PushFaultSignal)) throw error;
    throw pushFaultError(error.fault, error.position, limits);
  }
  return scan.columns.finish(bytes);
};

const maxGroupDepth = 64;
const wireVarint = 0;
const wireBytes = 2;

class ProtobufPushScan {
  readonly columns: PushColumns;
  readonly #bytes: Uint8Array;
  #at = 0;
  #low = 0;
  #high = 0;
  #seconds = 0;
  #nanos = 0;

  constructor(bytes: Uint8Array, columns: PushColumns) {
    this.#bytes = bytes;
    this.columns = columns;
  }

  readRequest(): void {
    const end = this.#bytes.length;
    while (this.#at < end) {
      const tag = this.#readTag(end);
      if (tag >>> 3 !== 1) this.#skip(tag, end);
      else this.#readStream(this.#readBytesEnd(tag, end));
    }
  }

  #readStream(end: number): void {
    this.columns.startStream(this.#at);
    while (this.#at < end) {
      const tag = this.#readTag(end);
      const field = tag >>> 3;
      if (field === 2) {
        this.#readEntry(this.#readBytesEnd(tag, end));
      } else if (field === 1) {
        const valueEnd = this.#readBytesEnd(tag, end);
        this.columns.setLabels(this.#at, valueEnd - this.#at);
        this.#at = valueEnd;
      } else {
        this.#skip(tag, end);
      }
    }
  }

  #readEntry(end: number): void {
    const start = this.#at;
    let lineStart = start;
    let lineLength = 0;
    let timed = false;
    this.#seconds = 0;
    this.#nanos = 0;
    this.columns.startRow(start);
    while (this.#at < end) {
      const tag = this.#readTag(end);
      const field = tag >>> 3;
      if (field === 1) {
        timed = true;
        this.#readTimestamp(this.#readBytesEnd(tag, end));
      } else if (field === 2) {
        const valueEnd = this.#readBytesEnd(tag, end);
        lineStart = this.#at;
        lineLength = valueEnd - lineStart;
        this.#at = valueEnd;
      } else if (field === 3) {
        this.#readPair(this.#readBytesEnd(tag, end));
      } else {
        this.#skip(tag, end);
      }
    }
    const nanos = this.#nanos;
    if (nanos < 0 || nanos > 999_999_999) throw new PushFaultSignal(pushFault.protoNanos, start);
    if (Math.abs(this.#seconds) > maxTimestampSeconds) {
      throw new PushFaultSignal(pushFault.protoSeconds, start);
    }
    this.columns.setRow(timed ? this.#seconds : noTimestampSeconds, nanos, lineStart, lineLength);
  }

  #readTimestamp(end: number): void {
    while (this.#at < end) {
      const tag = this.#readTag(end);
      const field = tag >>> 3;
      if (field !== 1 && field !== 2) {
        this.#skip(tag, end);
        continue;
      }
      if ((tag & 7) !== wireVarint) throw new PushFaultSignal(pushFault.protoWireType, this.#at);
      this.#readVarint(end);
      if (field === 1) this.#seconds = (this.#high | 0) * 4294967296 + this.#low;
      else this.#nanos = this.#low | 0;
    }
  }

  #readPair(end: number): void {
    const start = this.#at;
    let nameStart = start;
    let nameLength = 0;
    let valueStart = start;
    let valueLength = 0;
    while (this.#at < end) {
      const tag = this.#readTag(end);
      const field = tag >>> 3;
      if (field !== 1 && field !== 2) {
        this.#skip(tag, end);
        continue;
      }
      const textEnd = this.#readBytesEnd(tag, end);
      if (field === 1) {
        nameStart = this.#at;
        nameLength = textEnd - nameStart;
      } else {
        valueStart = this.#at;
        valueLength = textEnd - valueStart;
      }
      this.#at = textEnd;
    }
    this.columns.addPair(start, nameStart, nameLength, valueStart, valueLength);
  }

  /** Reads a field tag: 32 bits with a field number above 0. */
  #readTag(end: number): number {
    const start = this.#at;
    this.#readVarint(end);
    if (this.#high !== 0 || this.#low < 8) throw new PushFaultSignal(pushFault.protoTag, start);
    return this.#low;
  }

  /** Reads the length of a field that must be of bytes, and returns where its value ends. */
  #readBytesEnd(tag: number, end: number): number {
    if ((tag & 7) !== wireBytes) throw new PushFaultSignal(pushFault.protoWireType, this.#at);
    this.#readVarint(end);
    if (this.#high !== 0 || this.#low > end - this.#at) {
      throw new PushFaultSignal(pushFault.protoTruncated, this.#at);
    }
    return this.#at + this.#low;
  }

  #readVarint(end: number): void {
    let low = 0;
    let high = 0;
    for (let shift = 0; shift < 70; shift += 7) {
      if (this.#at >= end) throw new PushFaultSignal(pushFault.protoTruncated, this.#at);
      const byte = this.#bytes[this.#at++]!;
      const bits = byte & 0x7f;
      if (shift < 28) low |= bits << shift;
      else if (shift === 28) {
        low |= bits << 28;
        high = bits >>> 4;
      } else if (shift < 63) high |= bits << (shift - 32);
      else if (bits > 1) throw new PushFaultSignal(pushFault.protoVarint, this.#at);
      else high |= bits << 31;
      if (byte < 0x80) {
        this.#low = low >>> 0;
        this.#high = high >>> 0;
        return;
      }
    }
    throw new PushFaultSignal(pushFault.protoVarint, this.#at);
  }

  /** Skips the value of an unknown field; groups are skipped without recursion. */
  #skip(tag: number, end: number): void {
    let depth = 0;
    for (let next = tag; ; next = this.#readTag(end)) {
      const wire = next & 7;
      if (wire === wireVarint) this.#readVarint(end);
      else if (wire === 1) this.#advance(8, end);
      else if (wire === wireBytes) this.#at = this.#readBytesEnd(next, end);
      else if (wire === 5) this.#advance(4, end);
      else if (wire === 3) depth++;
      else if (wire === 4) depth--;
      else throw new PushFaultSignal(pushFault.protoTag, this.#at);
      if (depth === 0) return;
      if (depth < 0 || depth > maxGroupDepth)
        throw new PushFaultSignal(pushFault.protoGroup, this.#at);
    }
  }

  #advance(count: number, end: number): void {
    if (count > end - this.#at) throw new PushFaultSignal(pushFault.protoTruncated, this.#at);
    this.#at += count;
  }
}
