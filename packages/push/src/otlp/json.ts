import type { RawPush, RawPushLimits, TakeBytes } from "@skald/kernels";
import type { OtlpReading } from "@skald/model";
import { Arena } from "./arena.js";
import { decodeOtlpArena } from "./decode-otlp.js";
import { asciiOf, JsonScanner, maxJsonDepth } from "./json-scanner.js";
import {
  exportLogsRequest,
  type JsonField,
  type JsonKind,
  type JsonMessage,
} from "./json-schema.js";
import { wire } from "./proto-reader.js";

/** Bytes that a length is written with, whatever it is: it is known only behind what it counts. */
const lengthBytes = 5;
const spareBytes = 4096;

/**
 * Decodes an ExportLogsServiceRequest in JSON: becomes protobuf first, so that one reader knows what it means. Throws
 * invalid_argument for malformed input and too_large beyond a limit.
 */
export function decodeOtlpJson(
  body: Uint8Array,
  reading: OtlpReading,
  limits: RawPushLimits,
  take?: TakeBytes,
): RawPush {
  const { maxDecodedBytes } = limits;
  const arena = new Arena(
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
  readonly #arena: Arena;

  constructor(body: Uint8Array, arena: Arena) {
    this.#scanner = new JsonScanner(body);
    this.#arena = arena;
  }

  transcode(): void {
    if (!this.#scanner.acceptNull()) this.#object(exportLogsRequest, 0);
    this.#scanner.end();
  }

  #object(message: JsonMessage, depth: number): void {
    const scanner = this.#scanner;
    if (depth > maxJsonDepth) throw scanner.tooDeep();
    scanner.expect(0x7b);
    if (scanner.accept(0x7d)) return;
    do {
      const field = message.get(scanner.string(this.#arena));
      scanner.expect(0x3a);
      if (field === undefined) scanner.skip(depth + 1);
      else if (field.isRepeated) this.#array(field, depth);
      else if (!scanner.acceptNull()) this.#field(field, depth);
    } while (scanner.accept(0x2c));
    scanner.expect(0x7d);
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

  /** Writes the tag of a field that has a length; returns where it begins. */
  #open({ number }: JsonField): number {
    const arena = this.#arena;
    arena.reserve(1 + lengthBytes);
    arena.bytes[arena.end] = (number << 3) | wire.bytes;
    arena.end += 1 + lengthBytes;
    return arena.end;
  }

  /** Writes the length of what began there. */
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
    const text = asciiOf(arena.bytes, start, arena.end);
    const isValid = (kind === "hex" ? hexText : base64Text).test(text);
    if (!isValid) throw this.#scanner.error(`expected ${kind === "hex" ? "hex digits" : "base64"}`);
    const decoded = Buffer.from(text, kind);
    arena.end = start;
    arena.copy(decoded, 0, decoded.length);
    this.#close(start);
  }

  #number({ number }: JsonField, kind: Exclude<JsonKind, object>): void {
    const type =
      kind === "fixed32"
        ? wire.fixed32
        : kind === "fixed64" || kind === "double"
          ? wire.fixed64
          : 0;
    this.#arena.byte((number << 3) | type);
    if (kind === "bool") this.#arena.byte(this.#scanner.bool() ? 1 : 0);
    else if (kind === "double") this.#double();
    else if (kind === "severity") this.#varint(this.#severity());
    else if (kind === "int64") this.#varint(this.#integer(-(2n ** 63n), 2n ** 63n));
    else if (kind === "uint32") this.#varint(this.#integer(0n, 2n ** 32n));
    else if (kind === "fixed32") this.#fixed(this.#integer(0n, 2n ** 32n), 4);
    else this.#fixed(this.#integer(0n, 2n ** 64n), 8);
  }

  #severity(): bigint {
    const { bytes, at } = this.#scanner;
    const isName = this.#scanner.peek() === 0x22 && (bytes[at + 1] ?? 0) >= 0x41;
    if (!isName) return this.#integer(-(2n ** 31n), 2n ** 31n);
    const value = severityValue(this.#scanner.string(this.#arena));
    if (value < 0) throw this.#scanner.error("unknown severity");
    return BigInt(value);
  }

  #integer(from: bigint, to: bigint): bigint {
    const text = this.#scanner.number();
    if (!/^-?\d{1,20}$/.test(text)) throw this.#scanner.error("expected a whole number");
    const value = BigInt(text);
    if (value < from || value >= to) throw this.#scanner.error("number out of range");
    return value;
  }

  #double(): void {
    const text = this.#scanner.number();
    const isNumber = /^-?\d+(\.\d+)?([eE][+-]?\d+)?$/.test(text);
    if (!isNumber && !/^(NaN|-?Infinity)$/.test(text))
      throw this.#scanner.error("expected a number");
    scratch.setFloat64(0, Number(text), true);
    this.#arena.copy(scratchBytes, 0, 8);
  }

  #varint(value: bigint): void {
    let rest = BigInt.asUintN(64, value);
    while (rest > 0x7fn) {
      this.#arena.byte(Number(rest & 0x7fn) | 0x80);
      rest >>= 7n;
    }
    this.#arena.byte(Number(rest));
  }

  #fixed(value: bigint, length: number): void {
    scratch.setBigUint64(0, value, true);
    this.#arena.copy(scratchBytes, 0, length);
  }
}

const scratchBytes = new Uint8Array(8);
const scratch = new DataView(scratchBytes.buffer);
const hexText = /^([0-9a-fA-F]{2})*$/;
const base64Text = /^[A-Za-z0-9+/_-]*={0,2}$/;

const severities = ["TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL"];

/** The number of `SEVERITY_NUMBER_WARN2`; -1 when there is none. */
function severityValue(name: string): number {
  if (name === "SEVERITY_NUMBER_UNSPECIFIED") return 0;
  const m = /^SEVERITY_NUMBER_([A-Z]+)([234]?)$/.exec(name);
  const at = severities.indexOf(m?.[1] ?? "");
  return at < 0 ? -1 : 4 * at + Number(m?.[2] || 1);
}
