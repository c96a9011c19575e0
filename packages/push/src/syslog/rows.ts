import type { RawPush } from "@skald/kernels";
import { formatLabels, makeLabels } from "@skald/model";
import { ByteCache } from "../columns/byte-cache.js";
import { PushRows, TextArena } from "../columns/push-rows.js";
import { type Part, SyslogMessage } from "./message.js";
import { WallClock } from "./timestamp.js";

/** Fields of messages that may become labels; each has few values on a network that is run with care. */
export const syslogLabelFields = ["host", "app", "facility", "severity"] as const;
export type SyslogLabelField = (typeof syslogLabelFields)[number];

/** What becomes of the messages of a listener. */
export interface SyslogMapping {
  /** Labels of every row. */
  readonly labels: Readonly<Record<string, string>>;
  /** Fields that become labels; the others become structured metadata. */
  readonly labelFields: readonly SyslogLabelField[];
  /** The zone of senders who do not name theirs, as `WallClock` takes it. */
  readonly timeZone: string;
  /** Whether a message has the time that it names, else that of its arrival. */
  readonly usesNamedTime: boolean;
}

const facilities = [
  ...["kern", "user", "mail", "daemon", "auth", "syslog", "lpr", "news", "uucp", "cron"],
  ...["authpriv", "ftp", "ntp", "security", "console", "clock"],
  ...Array.from({ length: 8 }, (_, i) => `local${i}`),
];
const severities = ["emerg", "alert", "crit", "err", "warning", "notice", "info", "debug"];
/** The level of each severity. */
const levels = ["fatal", "fatal", "critical", "error", "warn", "info", "info", "debug"];
const metadataNames = [
  ...syslogLabelFields,
  ...(["procid", "msgid", "detected_level"] as const),
] as const;
/** Texts that every batch begins with. */
const fixedTexts = [...new Set([...metadataNames, ...facilities, ...severities, ...levels])];
const limits = {
  maxDecodedBytes: 128 * 1024 * 1024,
  maxStreams: 128 * 1024,
  maxRows: 4 * 1024 * 1024,
  maxPairs: 8 * 1024 * 1024,
};
const minArenaBytes = 16 * 1024;
const streamBounds = { maxEntries: 16 * 1024, maxKeyBytes: 4 * 1024 * 1024 };
/** Times of which it is known how many rows have them. */
const maxKnownTimes = 4096;
const absent = -1;

/**
 * Collects messages as the rows of a push. Rows with equal times are a nanosecond apart, in the order of their arrival, because the
 * times of most senders are whole seconds and equal rows of one time would count once.
 */
export class SyslogRows {
  /** Messages whose header could not be read since the last `take`. */
  malformed = 0;
  readonly #mapping: SyslogMapping;
  readonly #message: SyslogMessage;
  readonly #isLabel: Readonly<Record<SyslogLabelField, boolean>>;
  readonly #streams = new ByteCache<number>(streamBounds);
  #streamKey = new Uint8Array(1024);
  readonly #times = new Map<number, number>();
  #arenaBytes = minArenaBytes;
  #arena!: TextArena;
  #columns!: PushRows;
  #streamCount = 0;
  #fixed!: ReadonlyMap<string, number>;

  /** Throws a RangeError for an unknown time zone. */
  constructor(mapping: SyslogMapping) {
    this.#mapping = mapping;
    this.#message = new SyslogMessage(new WallClock(mapping.timeZone));
    const isLabel = (field: SyslogLabelField) => mapping.labelFields.includes(field);
    this.#isLabel = {
      host: isLabel("host"),
      app: isLabel("app"),
      facility: isLabel("facility"),
      severity: isLabel("severity"),
    };
    this.#begin();
  }

  get rowCount(): number {
    return this.#columns.rowCount;
  }

  get bytes(): number {
    return this.#arena.end;
  }

  get pairCount(): number {
    return this.#columns.pairCount;
  }

  get streamCount(): number {
    return this.#streamCount;
  }

  /** Adds a message; `peer` is the address of its sender, which is its host if it names none. */
  add(bytes: Uint8Array, start: number, end: number, peer: Uint8Array, nowMs: number): void {
    const message = this.#message;
    const arena = this.#arena;
    const base = arena.end;
    arena.copy(bytes, start, end - start);
    message.read(arena.bytes, base, arena.end, nowMs);
    if (message.isMalformed) this.malformed++;
    if (!message.host.isGiven) {
      message.host.set(arena.end, arena.end + peer.length);
      arena.copy(peer, 0, peer.length);
    }
    const stream = this.#streamOf(message);
    this.#addPairs(message);
    const { start: lineStart, end: lineEnd } = message.text;
    const line = { start: lineStart, length: lineEnd - lineStart };
    if (message.hasTime && this.#mapping.usesNamedTime) {
      this.#addRow(stream, message.seconds, message.nanos, line);
    } else {
      const seconds = Math.floor(nowMs / 1000);
      this.#addRow(stream, seconds, Math.floor((nowMs - seconds * 1000) * 1e6), line);
    }
  }

  /** Hands the rows out and begins anew. */
  take(): RawPush {
    const push = this.#columns.finish(this.#arena);
    this.#arenaBytes = Math.max(minArenaBytes, this.#arena.end);
    this.#begin();
    return push;
  }

  #begin(): void {
    this.malformed = 0;
    this.#arena = new TextArena(this.#arenaBytes, limits.maxDecodedBytes);
    this.#columns = new PushRows(this.#arenaBytes, limits);
    this.#streamCount = 0;
    const fixed = new Map<string, number>();
    for (const text of fixedTexts) {
      fixed.set(text, this.#arena.end);
      this.#arena.ascii(text);
    }
    this.#fixed = fixed;
  }

  #addRow(
    stream: number,
    seconds: number,
    nanos: number,
    line: { readonly start: number; readonly length: number },
  ): void {
    const time = seconds * 1e6 + Math.floor(nanos / 1000);
    const before = this.#times.get(time) ?? 0;
    if (this.#times.size === maxKnownTimes) this.#times.clear();
    this.#times.set(time, before + 1);
    const moved = nanos + before;
    const carried = moved >= 1e9 ? 1 : 0;
    this.#columns.addRow(stream, seconds + carried, moved - carried * 1e9, line);
  }

  /** The number of the stream that the labels of a message give. */
  #streamOf({ host, app, facility, severity }: SyslogMessage): number {
    const isLabel = this.#isLabel;
    const bytes = this.#arena.bytes;
    let key = this.#keyOf(isLabel.host ? host : undefined, isLabel.app ? app : undefined);
    const at = key;
    this.#streamKey[key++] = isLabel.facility ? facility & 0xff : 0;
    this.#streamKey[key++] = isLabel.severity ? severity & 0xff : 0;
    const known = this.#streams.get(this.#columns, this.#streamKey, 0, at + 2);
    if (known !== undefined) return known;
    const labels = formatLabels(
      makeLabels([
        ...Object.entries(this.#mapping.labels),
        ...(isLabel.host ? [["host", textOf(bytes, host)] as const] : []),
        ...(isLabel.app ? [["app", textOf(bytes, app)] as const] : []),
        ...(isLabel.facility ? [["facility", facilities[facility] ?? ""] as const] : []),
        ...(isLabel.severity ? [["severity", severities[severity] ?? ""] as const] : []),
      ]),
    );
    const start = this.#arena.end;
    this.#arena.utf8(labels);
    const range = { start, length: this.#arena.end - start };
    const stream = this.#columns.addStream(range, false);
    this.#streamCount++;
    this.#streams.set(this.#columns, this.#streamKey, 0, at + 2, stream);
    return stream;
  }

  /** Writes the texts of labels into the key, each behind its length; returns the length of the key. */
  #keyOf(host: Part | undefined, app: Part | undefined): number {
    const bytes = this.#arena.bytes;
    let at = 0;
    for (const part of [host, app]) {
      if (part === undefined) continue;
      const length = part.end - part.start;
      if (at + length + 16 > this.#streamKey.length) {
        const larger = new Uint8Array(2 * (at + length + 16));
        larger.set(this.#streamKey.subarray(0, at));
        this.#streamKey = larger;
      }
      for (let shift = 0; shift < 32; shift += 8) this.#streamKey[at++] = length >>> shift;
      this.#streamKey.set(bytes.subarray(part.start, part.end), at);
      at += length;
    }
    return at;
  }

  /** Adds the structured metadata of a message. */
  #addPairs(message: SyslogMessage): void {
    const { host, app, process, id, facility, severity } = message;
    const isLabel = this.#isLabel;
    if (!isLabel.host) this.#addPart("host", host);
    if (!isLabel.app) this.#addPart("app", app);
    if (!isLabel.facility && facility !== absent) this.#addFixed("facility", facilities[facility]!);
    if (severity !== absent) {
      if (!isLabel.severity) this.#addFixed("severity", severities[severity]!);
      this.#addFixed("detected_level", levels[severity]!);
    }
    this.#addPart("procid", process);
    this.#addPart("msgid", id);
    if (message.paramCount > 0) this.#addParams(message);
  }

  #addPart(name: (typeof metadataNames)[number], { start, end }: Part): void {
    this.#columns.addPair(this.#fixed.get(name)!, name.length, start, end - start);
  }

  #addFixed(name: (typeof metadataNames)[number], value: string): void {
    const at = this.#fixed.get(value)!;
    this.#columns.addPair(this.#fixed.get(name)!, name.length, at, value.length);
  }

  /** Adds `id_name="value"` for each parameter of the structured data. */
  #addParams(message: SyslogMessage): void {
    const arena = this.#arena;
    message.forEachParam((idStart, idEnd, nameStart, nameEnd, valueStart, valueEnd) => {
      const start = arena.end;
      arena.copy(arena.bytes, idStart, idEnd - idStart);
      arena.byte(underscore);
      arena.copy(arena.bytes, nameStart, nameEnd - nameStart);
      const length = arena.end - start;
      if (!hasNameByte(arena.bytes, start, arena.end)) return;
      const value = this.#unescaped(valueStart, valueEnd);
      this.#columns.addPair(start, length, value.start, value.end - value.start);
    });
  }

  /** The range of a value without the backslashes that protect `"`, `\` and `]`. */
  #unescaped(start: number, end: number): { readonly start: number; readonly end: number } {
    const arena = this.#arena;
    let at = start;
    while (at < end && arena.bytes[at] !== backslash) at++;
    if (at === end) return { start, end };
    const to = arena.end;
    for (at = start; at < end; at++) {
      const isEscape = arena.bytes[at] === backslash && isEscaped(arena.bytes[at + 1]!);
      arena.byte(arena.bytes[isEscape ? ++at : at]!);
    }
    return { start: to, end: arena.end };
  }
}

const underscore = 0x5f;
const backslash = 0x5c;

function isEscaped(byte: number): boolean {
  return byte === 0x22 || byte === backslash || byte === 0x5d;
}

/** Whether a metadata name can be made of the bytes; one that cannot would refuse its whole batch. */
function hasNameByte(bytes: Uint8Array, start: number, end: number): boolean {
  for (let at = start; at < end; at++) {
    const byte = bytes[at]!;
    const letter = byte | 0x20;
    if ((letter >= 0x61 && letter <= 0x7a) || (byte >= 0x30 && byte <= 0x39)) return true;
  }
  return false;
}

/** Invalid UTF-8 becomes U+FFFD: a label text with it would refuse its whole batch. */
function textOf(bytes: Uint8Array, { start, end }: Part): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset + start, end - start).toString();
}
