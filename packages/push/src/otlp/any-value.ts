import { invalidArgument } from "@skald/model";
import { sequenceLength } from "../columns/metadata.js";
import type { TextArena } from "../columns/push-rows.js";
import { FieldReader } from "./proto-fields.js";

/** The numbers of the fields of an AnyValue, of which one is set; 0 for none. */
export const valueKind = {
  none: 0,
  text: 1,
  bool: 2,
  int: 3,
  double: 4,
  array: 5,
  map: 6,
  bytes: 7,
} as const;

/** Deeper nested values are refused; agents send a tenth of this. */
export const maxValueDepth = 64;

const two32 = 0x1_0000_0000;
const double = new Float64Array(1);
const halves = new Uint32Array(double.buffer);

/** Reads AnyValue messages and finds their texts: strings stay in place, other values are written to an arena. */
export class AnyValues {
  /** The range of the text that `text` found. */
  start = 0;
  length = 0;
  /** The result of `read`: the kind, the range of texts, bytes and lists, or the halves of a number. */
  kind = 0;
  from = 0;
  size = 0;
  low = 0;
  high = 0;
  readonly #arena: TextArena;
  readonly #reader: FieldReader;

  /** Values are ranges of `bytes`, texts ranges of the arena, which begins with the same bytes. */
  constructor(bytes: Uint8Array, arena: TextArena) {
    this.#arena = arena;
    this.#reader = new FieldReader(bytes, 0, 0);
  }

  /** Reads the AnyValue in a range. */
  read(start: number, end: number): void {
    const reader = this.#reader;
    reader.at = start;
    reader.end = end;
    this.kind = valueKind.none;
    for (let tag = reader.tag(); tag !== 0; tag = reader.tag()) {
      switch (tag) {
        case 0x0a:
        case 0x2a:
        case 0x32:
        case 0x3a:
          this.size = reader.length();
          this.from = reader.at;
          reader.at += this.size;
          break;
        case 0x10:
        case 0x18:
          reader.varint64();
          this.#number();
          break;
        case 0x21:
          reader.fixed64();
          this.#number();
          break;
        default:
          reader.skip(tag);
          continue;
      }
      this.kind = tag >> 3;
    }
  }

  #number(): void {
    this.low = this.#reader.low;
    this.high = this.#reader.high;
  }

  /** Finds the text of the value in a range: strings as they are, lists as JSON, bytes in base 64. */
  text(start: number, end: number): void {
    this.read(start, end);
    if (this.kind === valueKind.text) {
      this.start = this.from;
      this.length = this.size;
      return;
    }
    const begin = this.#arena.end;
    if (this.kind === valueKind.bytes) this.#base64(this.from, this.size);
    else if (this.kind === valueKind.double) this.#arena.ascii(doubleText(this.low, this.high));
    else if (this.kind !== valueKind.none) this.#json(0);
    this.start = begin;
    this.length = this.#arena.end - begin;
  }

  /** Writes the last value that `read` found as JSON. */
  #json(depth: number): void {
    const arena = this.#arena;
    if (depth > maxValueDepth) throw valueTooDeep();
    if (this.kind === valueKind.bool) {
      arena.ascii(this.low === 0 && this.high === 0 ? "false" : "true");
    } else if (this.kind === valueKind.int) this.#int();
    else if (this.kind === valueKind.double) {
      const text = doubleText(this.low, this.high);
      arena.ascii(/\d$/.test(text) ? text : "null");
    } else if (this.kind === valueKind.text) this.#quoted(this.from, this.size);
    else if (this.kind === valueKind.bytes) {
      arena.byte(0x22);
      this.#base64(this.from, this.size);
      arena.byte(0x22);
    } else if (this.kind === valueKind.array) this.#array(this.from, this.from + this.size, depth);
    else if (this.kind === valueKind.map) this.#map(this.from, this.from + this.size, depth);
    else arena.ascii("null");
  }

  #array(start: number, end: number, depth: number): void {
    const reader = new FieldReader(this.#reader.bytes, start, end);
    const arena = this.#arena;
    arena.byte(0x5b);
    let isFirst = true;
    for (let tag = reader.tag(); tag !== 0; tag = reader.tag()) {
      if (tag !== 0x0a) {
        reader.skip(tag);
        continue;
      }
      const length = reader.length();
      if (!isFirst) arena.byte(0x2c);
      isFirst = false;
      this.read(reader.at, reader.at + length);
      this.#json(depth + 1);
      reader.at += length;
    }
    arena.byte(0x5d);
  }

  #map(start: number, end: number, depth: number): void {
    const { bytes } = this.#reader;
    const members = new Map<string, KeyValue>();
    forEachKeyValue(bytes, start, end, (pair) => {
      members.set(utf8Of(bytes, pair.keyStart, pair.keyLength), pair);
    });
    const arena = this.#arena;
    arena.byte(0x7b);
    let isFirst = true;
    for (const [, pair] of [...members].sort(([a], [b]) =>
      Buffer.compare(Buffer.from(a), Buffer.from(b)),
    )) {
      if (!isFirst) arena.byte(0x2c);
      isFirst = false;
      this.#quoted(pair.keyStart, pair.keyLength);
      arena.byte(0x3a);
      this.read(pair.valueStart, pair.valueEnd);
      this.#json(depth + 1);
    }
    arena.byte(0x7d);
  }

  #int(): void {
    const value = (this.high | 0) * two32 + this.low;
    if (value >= 0 && value < Number.MAX_SAFE_INTEGER) {
      this.#arena.decimal(value);
      return;
    }
    const exact = BigInt.asIntN(64, (BigInt(this.high) << 32n) | BigInt(this.low));
    this.#arena.ascii(exact.toString());
  }

  #base64(start: number, length: number): void {
    const { bytes } = this.#reader;
    this.#arena.ascii(
      Buffer.from(bytes.buffer, bytes.byteOffset + start, length).toString("base64"),
    );
  }

  /** Writes a JSON string. Characters that could end a script tag are escaped too; invalid UTF-8 is replaced. */
  #quoted(start: number, length: number): void {
    const { bytes } = this.#reader;
    const arena = this.#arena;
    const end = start + length;
    arena.byte(0x22);
    let at = start;
    while (at < end) {
      const byte = bytes[at]!;
      if (byte < 0x80) {
        const escaped = jsonEscapes[byte];
        if (escaped === undefined) arena.byte(byte);
        else arena.ascii(escaped);
        at++;
        continue;
      }
      const width = sequenceLength(bytes, at, end);
      if (width === 0) arena.ascii("\\ufffd");
      else if (isLineSeparator(bytes, at))
        arena.ascii(`\\u202${(bytes[at + 2]! & 15).toString(16)}`);
      else arena.copy(bytes, at, width);
      at += width === 0 ? 1 : width;
    }
    arena.byte(0x22);
  }
}

/** The ranges of a KeyValue message. */
export interface KeyValue {
  readonly keyStart: number;
  readonly keyLength: number;
  readonly valueStart: number;
  readonly valueEnd: number;
}

/** Calls `visit` for each KeyValue of a KeyValueList. */
export function forEachKeyValue(
  bytes: Uint8Array,
  start: number,
  end: number,
  visit: (pair: KeyValue) => void,
): void {
  const reader = new FieldReader(bytes, start, end);
  for (let tag = reader.tag(); tag !== 0; tag = reader.tag()) {
    if (tag !== 0x0a) {
      reader.skip(tag);
      continue;
    }
    const outer = reader.enter();
    visit(readKeyValue(reader));
    reader.leave(outer);
  }
}

/** Reads the KeyValue message that a reader has entered. */
export function readKeyValue(reader: FieldReader): KeyValue {
  let keyStart = reader.at;
  let keyLength = 0;
  let valueStart = reader.at;
  let valueEnd = reader.at;
  for (let tag = reader.tag(); tag !== 0; tag = reader.tag()) {
    if (tag === 0x0a) {
      keyLength = reader.length();
      keyStart = reader.at;
      reader.at += keyLength;
    } else if (tag === 0x12) {
      const length = reader.length();
      valueStart = reader.at;
      valueEnd = valueStart + length;
      reader.at = valueEnd;
    } else reader.skip(tag);
  }
  return { keyStart, keyLength, valueStart, valueEnd };
}

/** A range of bytes as text. */
export function utf8Of(bytes: Uint8Array, start: number, length: number): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset + start, length).toString();
}

export function valueTooDeep(): Error {
  return invalidArgument(`a value is nested more than ${maxValueDepth} levels deep`);
}

function doubleText(low: number, high: number): string {
  halves[0] = low;
  halves[1] = high;
  const value = double[0]!;
  if (value === Number.POSITIVE_INFINITY) return "+Inf";
  if (value === Number.NEGATIVE_INFINITY) return "-Inf";
  return Object.is(value, -0) ? "-0" : String(value);
}

function isLineSeparator(bytes: Uint8Array, at: number): boolean {
  return bytes[at] === 0xe2 && bytes[at + 1] === 0x80 && (bytes[at + 2]! & 0xfe) === 0xa8;
}

const shortEscapes: Readonly<Record<string, string>> = {
  '"': '\\"',
  "\\": "\\\\",
  "\b": "\\b",
  "\f": "\\f",
  "\n": "\\n",
  "\r": "\\r",
  "\t": "\\t",
};

const jsonEscapes = Array.from({ length: 0x80 }, (_, code) => {
  const char = String.fromCharCode(code);
  const isPlain = code >= 0x20 && !'"\\<>&'.includes(char);
  if (isPlain) return undefined;
  return shortEscapes[char] ?? `\\u${code.toString(16).padStart(4, "0")}`;
});
