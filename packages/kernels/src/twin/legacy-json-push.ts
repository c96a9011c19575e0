import { corrupt, grown, paddedCopy } from "../shared/bytes.js";
import {
  noTimestampSeconds,
  PushFaultSignal,
  pushFaultError,
  type RawPush,
  type RawPushLimits,
  refuseJsonSize,
} from "../shared/raw-push.js";
import { JsonText } from "./json-text.js";
import { PushColumns } from "./push-columns.js";

/**
 * Scans a push body of the first API: `{"streams":[{"labels":"{a=\"b\"}","entries":[{"ts":"RFC 3339","line":"x",
 * "structuredMetadata":{..}}]}]}`. It is rare, so there is one form only, over JSON.parse; invalid UTF-8 becomes
 * U+FFFD, and what follows the body is not looked at.
 */
export function scanLegacyJsonPush(body: Uint8Array, limits: RawPushLimits): RawPush {
  refuseJsonSize(body, limits);
  const columns = new PushColumns(limits);
  const texts = new TextBytes(body.length);
  try {
    for (const stream of listOf(parse(body), "streams")) addStream(stream, columns, texts);
  } catch (error) {
    if (!(error instanceof PushFaultSignal)) throw error;
    throw pushFaultError(error.fault, error.position, limits);
  }
  return columns.finish(texts.finish());
}

type JsonObject = Readonly<Record<string, unknown>>;

function parse(body: Uint8Array): unknown {
  const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes);
  try {
    return JSON.parse(text(body)) ?? {};
  } catch {
    const document = new JsonText(paddedCopy(body));
    document.skipValue();
    try {
      return JSON.parse(text(body.subarray(0, document.at))) ?? {};
    } catch (error) {
      throw corrupt(`json: ${error instanceof Error ? error.message : "malformed body"}`);
    }
  }
}

function addStream(stream: unknown, columns: PushColumns, texts: TextBytes): void {
  columns.startStream(texts.length);
  const labels = textOf(stream, "labels");
  columns.setLabels(texts.length, texts.add(labels));
  for (const entry of listOf(stream, "entries")) addEntry(entry, columns, texts);
}

function addEntry(entry: unknown, columns: PushColumns, texts: TextBytes): void {
  const time = objectOf(entry, "entry").ts;
  const line = textOf(entry, "line");
  columns.startRow(texts.length);
  const { seconds, nanos } = time === undefined ? noTime : parseRfc3339(time);
  columns.setRow(seconds, nanos, texts.length, texts.add(line));
  const metadata = objectOf(entry, "entry").structuredMetadata ?? {};
  for (const [name, value] of Object.entries(objectOf(metadata, "structuredMetadata"))) {
    if (typeof value !== "string")
      throw corrupt("json: structured metadata values must be strings");
    const nameStart = texts.length;
    const nameLength = texts.add(name);
    const valueStart = texts.length;
    columns.addPair(texts.length, nameStart, nameLength, valueStart, texts.add(value));
  }
}

const noTime = { seconds: noTimestampSeconds, nanos: 0 };
const rfc3339 =
  /^(\d{4})-(\d\d)-(\d\d)[Tt](\d\d):(\d\d):(\d\d)(?:\.(\d{1,9})\d*)?(?:[Zz]|([+-])(\d\d):(\d\d))$/;

function parseRfc3339(time: unknown): { seconds: number; nanos: number } {
  const parts = typeof time === "string" && time.length <= 64 ? rfc3339.exec(time) : null;
  if (parts === null)
    throw corrupt("json: ts must be an RFC 3339 time such as 2024-01-02T03:04:05.6Z");
  const field = (i: number) => Number(parts[i] ?? 0);
  const date = new Date(0);
  date.setUTCFullYear(field(1), field(2) - 1, field(3));
  const days = date.getTime() / 86_400_000;
  const legal = date.getUTCDate() === field(3) && field(4) < 24 && field(5) < 60 && field(6) < 60;
  if (!legal || date.getUTCMonth() !== field(2) - 1 || field(9) > 23 || field(10) > 59) {
    throw corrupt(`json: ts ${parts[0]} is not a time of the calendar`);
  }
  const offsetSeconds = (parts[8] === "-" ? -1 : 1) * (field(9) * 3600 + field(10) * 60);
  const seconds = days * 86_400 + field(4) * 3600 + field(5) * 60 + field(6) - offsetSeconds;
  return { seconds, nanos: Number((parts[7] ?? "").padEnd(9, "0")) };
}

function objectOf(value: unknown, what: string): JsonObject {
  if (typeof value === "object" && value !== null && !Array.isArray(value)) {
    return value as JsonObject;
  }
  throw corrupt(`json: ${what} must be an object`);
}

function listOf(value: unknown, key: string): readonly unknown[] {
  const list = objectOf(value, key === "streams" ? "the body" : "stream")[key] ?? [];
  if (Array.isArray(list)) return list;
  throw corrupt(`json: ${key} must be an array`);
}

function textOf(value: unknown, key: string): string {
  const text = objectOf(value, key === "labels" ? "stream" : "entry")[key] ?? "";
  if (typeof text === "string") return text;
  throw corrupt(`json: ${key} must be a string`);
}

/** Texts written one behind the other as UTF-8 into a growing buffer. */
class TextBytes {
  #bytes: Uint8Array;
  #length = 0;
  readonly #encoder = new TextEncoder();

  constructor(expectedBytes: number) {
    this.#bytes = new Uint8Array(expectedBytes);
  }

  get length(): number {
    return this.#length;
  }

  /** Appends a text and returns its length in bytes; a lone surrogate becomes U+FFFD. */
  add(text: string): number {
    const needed = this.#length + text.length * 3;
    if (needed > this.#bytes.length) this.#grow(needed);
    const { written } = this.#encoder.encodeInto(text, this.#bytes.subarray(this.#length));
    this.#length += written;
    return written;
  }

  finish(): Uint8Array {
    return paddedCopy(this.#bytes.subarray(0, this.#length));
  }

  #grow(needed: number): void {
    this.#bytes = grown(this.#bytes, needed * 2);
  }
}
