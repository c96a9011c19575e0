import { grown } from "../shared/bytes.js";
import {
  PushFaultSignal,
  pushFault,
  type RawPush,
  type RawPushLimits,
} from "../shared/raw-push.js";

/** The growing columns of a push while a twin scans it; refuses what goes beyond the limits. */
export class PushColumns {
  readonly #limits: RawPushLimits;
  #streamCount = 0;
  #rowCount = 0;
  #pairCount = 0;
  #streamLabelStart = new Uint32Array(16);
  #streamLabelLength = new Uint32Array(16);
  #streamRowStart = new Uint32Array(16);
  #seconds = new Float64Array(64);
  #nanos = new Uint32Array(64);
  #lineStart = new Uint32Array(64);
  #lineLength = new Uint32Array(64);
  #metaStart = new Uint32Array(64);
  #metaNameStart = new Uint32Array(16);
  #metaNameLength = new Uint32Array(16);
  #metaValueStart = new Uint32Array(16);
  #metaValueLength = new Uint32Array(16);

  constructor(limits: RawPushLimits) {
    this.#limits = limits;
  }

  get streamCount(): number {
    return this.#streamCount;
  }

  get rowCount(): number {
    return this.#rowCount;
  }

  get pairCount(): number {
    return this.#pairCount;
  }

  startStream(position: number): void {
    const stream = this.#streamCount;
    if (stream >= this.#limits.maxStreams) {
      throw new PushFaultSignal(pushFault.tooManyStreams, position);
    }
    if (stream === this.#streamRowStart.length) this.#growStreams();
    this.#streamLabelStart[stream] = 0;
    this.#streamLabelLength[stream] = 0;
    this.#streamRowStart[stream] = this.#rowCount;
    this.#streamCount = stream + 1;
  }

  /** Sets the labels of the stream started last; the last call wins. */
  setLabels(start: number, length: number): void {
    this.#streamLabelStart[this.#streamCount - 1] = start;
    this.#streamLabelLength[this.#streamCount - 1] = length;
  }

  /** Opens a row: pairs added from now on belong to it. */
  startRow(position: number): void {
    const row = this.#rowCount;
    if (row >= this.#limits.maxRows) throw new PushFaultSignal(pushFault.tooManyRows, position);
    if (row === this.#nanos.length) this.#growRows();
    this.#metaStart[row] = this.#pairCount;
    this.#rowCount = row + 1;
  }

  /** Fills the row opened last. */
  setRow(seconds: number, nanos: number, lineStart: number, lineLength: number): void {
    const row = this.#rowCount - 1;
    this.#seconds[row] = seconds;
    this.#nanos[row] = nanos;
    this.#lineStart[row] = lineStart;
    this.#lineLength[row] = lineLength;
  }

  addPair(
    position: number,
    nameStart: number,
    nameLength: number,
    valueStart: number,
    valueLength: number,
  ): void {
    const pair = this.#pairCount;
    if (pair >= this.#limits.maxPairs) throw new PushFaultSignal(pushFault.tooManyPairs, position);
    if (pair === this.#metaNameStart.length) this.#growPairs();
    this.#metaNameStart[pair] = nameStart;
    this.#metaNameLength[pair] = nameLength;
    this.#metaValueStart[pair] = valueStart;
    this.#metaValueLength[pair] = valueLength;
    this.#pairCount = pair + 1;
  }

  /** Forgets everything behind these counts, because a JSON key came again and its last value wins. */
  truncate(streamCount: number, rowCount: number, pairCount: number): void {
    this.#streamCount = streamCount;
    this.#rowCount = rowCount;
    this.#pairCount = pairCount;
  }

  finish(bytes: Uint8Array): RawPush {
    const streams = this.#streamCount;
    const rows = this.#rowCount;
    const pairs = this.#pairCount;
    return {
      bytes,
      streamCount: streams,
      rowCount: rows,
      pairCount: pairs,
      streamLabelStart: this.#streamLabelStart.slice(0, streams),
      streamLabelLength: this.#streamLabelLength.slice(0, streams),
      streamRowStart: closed(this.#streamRowStart, streams, rows),
      seconds: this.#seconds.slice(0, rows),
      nanos: this.#nanos.slice(0, rows),
      lineStart: this.#lineStart.slice(0, rows),
      lineLength: this.#lineLength.slice(0, rows),
      metaStart: closed(this.#metaStart, rows, pairs),
      metaNameStart: this.#metaNameStart.slice(0, pairs),
      metaNameLength: this.#metaNameLength.slice(0, pairs),
      metaValueStart: this.#metaValueStart.slice(0, pairs),
      metaValueLength: this.#metaValueLength.slice(0, pairs),
    };
  }

  #growStreams(): void {
    const streams = this.#streamRowStart.length * 2;
    this.#streamLabelStart = grown(this.#streamLabelStart, streams);
    this.#streamLabelLength = grown(this.#streamLabelLength, streams);
    this.#streamRowStart = grown(this.#streamRowStart, streams);
  }

  #growRows(): void {
    const rows = this.#nanos.length * 2;
    this.#seconds = grown(this.#seconds, rows);
    this.#nanos = grown(this.#nanos, rows);
    this.#lineStart = grown(this.#lineStart, rows);
    this.#lineLength = grown(this.#lineLength, rows);
    this.#metaStart = grown(this.#metaStart, rows);
  }

  #growPairs(): void {
    const pairs = this.#metaNameStart.length * 2;
    this.#metaNameStart = grown(this.#metaNameStart, pairs);
    this.#metaNameLength = grown(this.#metaNameLength, pairs);
    this.#metaValueStart = grown(this.#metaValueStart, pairs);
    this.#metaValueLength = grown(this.#metaValueLength, pairs);
  }
}

/** The first `count` values and the end of the last range. */
function closed(column: Uint32Array, count: number, end: number): Uint32Array {
  const result = new Uint32Array(count + 1);
  result.set(column.subarray(0, count));
  result[count] = end;
  return result;
}
