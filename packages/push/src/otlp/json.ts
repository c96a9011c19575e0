import type { RawPush, RawPushLimits, TakeBytes } from "@skald/kernels";
import type { OtlpReading } from "@skald/model";
import { asciiOf, JsonScanner, maxOtlpJsonDepth } from "../columns/json-scanner.js";
import { TextArena } from "../columns/push-rows.js";
import { decodeOtlpArena } from "./decode-otlp.js";
import { wire } from "./proto-fields.js";

/** Bytes of a written length. It is fixed, because the value is known only behind the content. */
const lengthBytes = 5;
const spareBytes = 4096;

/**
 * Decodes an ExportLogsServiceRequest in JSON. It becomes protobuf first, so that one reader knows its meaning. Throws
 * invalid_argument for malformed input and too_large beyond a limit.
 */
export function decodeOtlpJson(
  body: Uint8Array,
  reading: OtlpReading,
  limits: RawPushLimits,
  take?: TakeBytes,
): RawPush {
  const { maxDecodedBytes } = limits;
  const arena = new TextArena(
    Math.min(body.length + spareBytes, maxDecodedBytes),
    maxDecodedBytes,
    take,
  );
  const transcoder = new Transcoder(body, arena);
  transcoder.transcode();
  return decodeOtlpArena(arena, reading, limits, take);
}

class Transcoder {
  readonly #scanner: JsonScanner;
  readonly #arena: TextArena;

  constructor(body: Uint8Array, arena: TextArena) {
    this.#scanner = new JsonScanner(body);
    this.#arena = arena;
  }

  transcode(): void {
    if (!this.#scanner.acceptNull()) this.#object(exportLogsRequest, 0);
    this.#scanner.end();
  }

  #object(message: JsonMessage, depth: number): void {
    const scanner = this.#scanner;
    if (depth > maxOtlpJsonDepth) throw scanner.tooDeep();
    scanner.expect(0x7b);
    if (scanner.accept(0x7d)) return;
    let last = -1;
    do {
      scanner.expect(0x22);
      last = this.#find(message, last + 1);
      const field = message[last];
      if (field === undefined) scanner.skipText();
      scanner.expect(0x3a);
      if (field === undefined) scanner.skip(depth + 1);
      else if (field.isRepeated) this.#array(field, depth);
      else if (!scanner.acceptNull()) this.#field(field, depth);
    } while (scanner.accept(0x2c));
    scanner.expect(0x7d);
  }

  /** The index of the field whose name comes next, or -1; members mostly come in the order of the fields. */
  #find(message: JsonMessage, first: number): number {
    const { length } = message;
    for (let i = 0; i < length; i++) {
      const at = first + i < length ? first + i : first + i - length;
      if (this.#scanner.acceptText(message[at]!.names)) return at;
    }
    return -1;
  }

  #array(field: JsonField, depth: number): void {
    const scanner = this.#scanner;
    if (scanner.acceptNull()) return;
    scanner.expect(0x5b);
    if (scanner.accept(0x5d)) return;
    do this.#element(field, depth);
    while (scanner.accept(0x2c));
    scanner.expect(0x5d);
  }

  #element(field: JsonField, depth: number): void {
    if (!this.#scanner.acceptNull()) this.#field(field, depth);
    else this.#close(this.#open(field));
  }

  #field(field: JsonField, depth: number): void {
    const { kind } = field;
    if (typeof kind === "object") {
      const start = this.#open(field);
      this.#object(kind.message(), depth + 1);
      this.#close(start);
      return;
    }
    if (kind === "text") {
      const start = this.#open(field);
      this.#scanner.text(this.#arena);
      this.#close(start);
      return;
    }
    if (kind === "hex" || kind === "base64") this.#bytes(field, kind);
    else this.#number(field, kind);
  }

  /** Writes the tag of a field that has a length; returns where its content begins. */
  #open({ number }: JsonField): number {
    const arena = this.#arena;
    arena.reserve(1 + lengthBytes);
    arena.bytes[arena.end] = (number << 3) | wire.bytes;
    arena.end += 1 + lengthBytes;
    return arena.end;
  }

  /** Writes the length of the content that began at `start`. */
  #close(start: number): void {
    const { bytes, end } = this.#arena;
    let rest = end - start;
    for (let i = start - lengthBytes; i < start - 1; i++) {
      bytes[i] = (rest & 0x7f) | 0x80;
      rest >>>= 7;
    }
    bytes[start - 1] = rest;
  }

  #bytes(field: JsonField, kind: "hex" | "base64"): void {
    const arena = this.#arena;
    const start = this.#open(field);
    this.#scanner.text(arena);
    const length = kind === "hex" ? fromHex(arena, start) : fromBase64(arena, start);
    if (length < 0) throw this.#scanner.error(`expected ${kind === "hex" ? "hex digits" : kind}`);
    arena.end = start + length;
    this.#close(start);
  }

  #number({ number }: JsonField, kind: Exclude<JsonKind, object>): void {
    this.#arena.byte((number << 3) | wireOf(kind));
    if (kind === "bool") this.#arena.byte(this.#scanner.bool() ? 1 : 0);
    else if (kind === "double") this.#double();
    else if (kind === "severity") this.#severity();
    else if (kind === "int64") this.#signed(0x8000_0000);
    else {
      const scanner = this.#scanner;
      const arena = this.#arena;
      if (scanner.integer()) throw scanner.error("number out of range");
      if (kind === "fixed64") arena.fixed32(scanner.low);
      else if (scanner.high > 0) throw scanner.error("number out of range");
      if (kind === "uint32") this.#varint(scanner.low, 0);
      else arena.fixed32(kind === "fixed64" ? scanner.high : scanner.low);
    }
  }

  /** Writes a signed number whose upper half must stay below a bound. */
  #signed(highBound: number): void {
    const scanner = this.#scanner;
    const isNegative = scanner.integer();
    const { low, high } = scanner;
    if (high >= highBound && !(isNegative && high === highBound && low === 0)) {
      throw scanner.error("number out of range");
    }
    if (isNegative) this.#varint(-low >>> 0, (low === 0 ? -high : ~high) >>> 0);
    else this.#varint(low, high);
  }

  #severity(): void {
    const { bytes, at } = this.#scanner;
    const isName = this.#scanner.peek() === 0x22 && (bytes[at + 1] ?? 0) >= 0x41;
    if (!isName) {
      this.#signed(1);
      return;
    }
    const value = severityValue(this.#scanner.string(this.#arena));
    if (value < 0) throw this.#scanner.error("unknown severity");
    this.#varint(value, 0);
  }

  #double(): void {
    const text = this.#scanner.number();
    const isNumber = /^-?\d+(\.\d+)?([eE][+-]?\d+)?$/.test(text);
    if (!isNumber && !/^(NaN|-?Infinity)$/.test(text)) {
      throw this.#scanner.error("expected a number");
    }
    scratch.setFloat64(0, Number(text), true);
    this.#arena.copy(scratchBytes, 0, 8);
  }

  #varint(low: number, high: number): void {
    const arena = this.#arena;
    let rest = low;
    let above = high;
    while (rest > 0x7f || above > 0) {
      arena.byte((rest & 0x7f) | 0x80);
      rest = ((rest >>> 7) | (above << 25)) >>> 0;
      above >>>= 7;
    }
    arena.byte(rest);
  }
}

const scratchBytes = new Uint8Array(8);
const scratch = new DataView(scratchBytes.buffer);

function wireOf(kind: Exclude<JsonKind, object>): number {
  if (kind === "fixed32") return wire.fixed32;
  return kind === "fixed64" || kind === "double" ? wire.fixed64 : wire.varint;
}

/** Decodes the hex digits at the end of an arena in place; returns the number of bytes, or -1. */
function fromHex({ bytes, end }: TextArena, start: number): number {
  if ((end - start) % 2 !== 0) return -1;
  let at = start;
  for (let i = start; i < end; i += 2) {
    const value = (hexValue(bytes[i]!) << 4) | hexValue(bytes[i + 1]!);
    if (value < 0) return -1;
    bytes[at++] = value;
  }
  return at - start;
}

function hexValue(byte: number): number {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30;
  const letter = byte | 0x20;
  return letter >= 0x61 && letter <= 0x66 ? letter - 0x57 : -1;
}

function fromBase64({ bytes, end }: TextArena, start: number): number {
  const text = asciiOf(bytes, start, end);
  if (!/^[A-Za-z0-9+/_-]*={0,2}$/.test(text)) return -1;
  const decoded = Buffer.from(text, "base64");
  bytes.set(decoded, start);
  return decoded.length;
}

const severities = ["TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL"];

/** The number of `SEVERITY_NUMBER_WARN2`; -1 when there is none. */
function severityValue(name: string): number {
  if (name === "SEVERITY_NUMBER_UNSPECIFIED") return 0;
  const m = /^SEVERITY_NUMBER_([A-Z]+)([234]?)$/.exec(name);
  const at = severities.indexOf(m?.[1] ?? "");
  return at < 0 ? -1 : 4 * at + Number(m?.[2] || 1);
}

/** How a JSON value becomes a protobuf field. */
type JsonKind =
  | "text"
  | "bool"
  | "int64"
  | "uint32"
  | "severity"
  | "fixed64"
  | "fixed32"
  | "double"
  | "hex"
  | "base64"
  | { readonly message: () => JsonMessage };

interface JsonField {
  readonly number: number;
  readonly kind: JsonKind;
  readonly isRepeated: boolean;
  /** The name with the closing quote, in camel case and in snake case. */
  readonly names: readonly Uint8Array[];
}

/** The fields of a message. */
type JsonMessage = readonly JsonField[];

function message(fields: Record<string, readonly [number, JsonKind, "repeated"?]>): JsonMessage {
  return Object.entries(fields).map(([name, [number, kind, repeated]]) => {
    const snake = name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
    const names = [...new Set([name, snake])].map((text) => Buffer.from(`${text}"`));
    return { number, kind, isRepeated: repeated !== undefined, names };
  });
}

const anyValue: JsonMessage = message({
  stringValue: [1, "text"],
  boolValue: [2, "bool"],
  intValue: [3, "int64"],
  doubleValue: [4, "double"],
  arrayValue: [5, { message: () => arrayValue }],
  kvlistValue: [6, { message: () => keyValueList }],
  bytesValue: [7, "base64"],
});

const arrayValue = message({ values: [1, { message: () => anyValue }, "repeated"] });

const keyValue = message({ key: [1, "text"], value: [2, { message: () => anyValue }] });

const keyValueList = message({ values: [1, { message: () => keyValue }, "repeated"] });

const resource = message({ attributes: [1, { message: () => keyValue }, "repeated"] });

const scope = message({
  name: [1, "text"],
  version: [2, "text"],
  attributes: [3, { message: () => keyValue }, "repeated"],
  droppedAttributesCount: [4, "uint32"],
});

const logRecord = message({
  timeUnixNano: [1, "fixed64"],
  severityNumber: [2, "severity"],
  severityText: [3, "text"],
  body: [5, { message: () => anyValue }],
  attributes: [6, { message: () => keyValue }, "repeated"],
  droppedAttributesCount: [7, "uint32"],
  flags: [8, "fixed32"],
  traceId: [9, "hex"],
  spanId: [10, "hex"],
  observedTimeUnixNano: [11, "fixed64"],
  eventName: [12, "text"],
});

const scopeLogs = message({
  scope: [1, { message: () => scope }],
  logRecords: [2, { message: () => logRecord }, "repeated"],
});

const resourceLogs = message({
  resource: [1, { message: () => resource }],
  scopeLogs: [2, { message: () => scopeLogs }, "repeated"],
});

/** ExportLogsServiceRequest, without the fields that make no difference to the stored rows. */
const exportLogsRequest = message({
  resourceLogs: [1, { message: () => resourceLogs }, "repeated"],
});
