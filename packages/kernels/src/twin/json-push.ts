import { paddedCopy } from "../shared/bytes.js";
import type { Kernels } from "../shared/kernels.js";
import {
  noTimestampSeconds,
  PushFaultSignal,
  pushFault,
  pushFaultError,
  refuseJsonSize,
} from "../shared/raw-push.js";
import { JsonText } from "./json-text.js";
import { PushColumns } from "./push-columns.js";

/**
 * Scans a JSON push body: `{"streams":[{"stream":{..},"values":[["ns","line",{"k":"v"}]]}]}`. Keys come in any
 * order, unknown ones and further items of an entry are skipped, of equal keys the last wins (but each pair of the
 * metadata is kept), and what follows the body is not looked at. A missing `stream` has an empty label range, a missing timestamp is `noTimestampSeconds`, a missing line is empty.
 */
export const scanJsonPush: Kernels["scanJsonPush"] = (body, limits) => {
  refuseJsonSize(body, limits);
  const text = new JsonText(paddedCopy(body));
  const columns = new PushColumns(limits);
  try {
    new JsonPushScan(text, columns).readBody();
  } catch (error) {
    if (!(error instanceof PushFaultSignal)) throw error;
    throw pushFaultError(error.fault, error.position, limits);
  }
  return columns.finish(text.bytes);
};

const ascii = new TextEncoder();
const keyStreams = ascii.encode("streams");
const keyStream = ascii.encode("stream");
const keyValues = ascii.encode("values");

const quote = 0x22;
const openArray = 0x5b;
const closeArray = 0x5d;
const openObject = 0x7b;
const closeObject = 0x7d;
const letterN = 0x6e;
const wordNull = 0x6e756c6c;

class JsonPushScan {
  readonly #text: JsonText;
  readonly #columns: PushColumns;
  #seconds = 0;
  #nanos = 0;

  constructor(text: JsonText, columns: PushColumns) {
    this.#text = text;
    this.#columns = columns;
  }

  readBody(): void {
    const text = this.#text;
    if (!this.#takesNull()) {
      this.#open(openObject, pushFault.jsonBody);
      for (let first = true; text.hasNext(first, closeObject); first = false) {
        text.readKey();
        if (text.isString(keyStreams)) this.#readStreams();
        else text.skipValue();
      }
    }
  }

  #readStreams(): void {
    this.#columns.truncate(0, 0, 0);
    if (this.#takesNull()) return;
    this.#open(openArray, pushFault.jsonStreams);
    for (let first = true; this.#text.hasNext(first, closeArray); first = false) this.#readStream();
  }

  #readStream(): void {
    const text = this.#text;
    const columns = this.#columns;
    this.#open(openObject, pushFault.jsonStream);
    columns.startStream(text.at);
    const { streamCount, rowCount, pairCount } = columns;
    for (let first = true; text.hasNext(first, closeObject); first = false) {
      text.readKey();
      if (text.isString(keyStream)) {
        this.#readLabels();
      } else if (text.isString(keyValues)) {
        columns.truncate(streamCount, rowCount, pairCount);
        this.#readValues();
      } else {
        text.skipValue();
      }
    }
  }

  #readLabels(): void {
    const text = this.#text;
    this.#columns.setLabels(0, 0);
    if (this.#takesNull()) return;
    if (text.peek() !== openObject) text.fail(pushFault.jsonLabels);
    const start = text.at;
    text.skipValue();
    this.#columns.setLabels(start, text.at - start);
  }

  #readValues(): void {
    if (this.#takesNull()) return;
    this.#open(openArray, pushFault.jsonValues);
    for (let first = true; this.#text.hasNext(first, closeArray); first = false) this.#readEntry();
  }

  #readEntry(): void {
    const text = this.#text;
    this.#open(openArray, pushFault.jsonEntry);
    this.#columns.startRow(text.at);
    let lineStart = text.at;
    let lineLength = 0;
    this.#seconds = noTimestampSeconds;
    this.#nanos = 0;
    for (let item = 0; text.hasNext(item === 0, closeArray); item++) {
      if (item === 0) {
        if (text.peek() !== quote) text.fail(pushFault.jsonTimestampType);
        text.readString();
        this.#readTimestamp();
      } else if (item === 1) {
        if (text.peek() !== quote) text.fail(pushFault.jsonLine);
        text.readString();
        lineStart = text.start;
        lineLength = text.length;
      } else if (item === 2) {
        this.#readMetadata();
      } else {
        text.skipValue();
      }
    }
    this.#columns.setRow(this.#seconds, this.#nanos, lineStart, lineLength);
  }

  #readMetadata(): void {
    const text = this.#text;
    this.#open(openObject, pushFault.jsonMetadata);
    for (let first = true; text.hasNext(first, closeObject); first = false) {
      text.readKey();
      const { start, length } = text;
      if (text.peek() !== quote) text.fail(pushFault.jsonMetadataValue);
      text.readString();
      this.#columns.addPair(text.at, start, length, text.start, text.length);
    }
  }

  /** Splits the string read last, a 64-bit decimal count of nanoseconds, into seconds and the rest. */
  #readTimestamp(): void {
    const { bytes, start, length } = this.#text;
    const end = start + length;
    const negative = bytes[start] === 0x2d;
    let at = negative && length > 0 ? start + 1 : start;
    if (at === end) throw new PushFaultSignal(pushFault.jsonTimestamp, start);
    while (at < end - 1 && bytes[at] === 0x30) at++;
    if (end - at > 19) throw new PushFaultSignal(pushFault.jsonTimestamp, start);
    let seconds = 0;
    let nanos = 0;
    for (; at < end; at++) {
      const digit = bytes[at]! - 0x30;
      if (digit < 0 || digit > 9) throw new PushFaultSignal(pushFault.jsonTimestamp, start);
      if (end - at > 9) seconds = seconds * 10 + digit;
      else nanos = nanos * 10 + digit;
    }
    const most = negative ? 854_775_808 : 854_775_807;
    if (seconds > 9_223_372_036 || (seconds === 9_223_372_036 && nanos > most)) {
      throw new PushFaultSignal(pushFault.jsonTimestamp, start);
    }
    const borrow = negative && nanos > 0;
    this.#seconds = negative ? 0 - seconds - (borrow ? 1 : 0) : seconds;
    this.#nanos = borrow ? 1_000_000_000 - nanos : nanos;
  }

  #takesNull(): boolean {
    if (this.#text.peek() !== letterN) return false;
    this.#text.skipWord(wordNull, 0);
    return true;
  }

  #open(byte: number, fault: number): void {
    if (this.#text.peek() !== byte) this.#text.fail(fault);
    this.#text.at++;
  }
}
