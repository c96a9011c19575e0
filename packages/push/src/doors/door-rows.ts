import {
  equalBytes,
  grown,
  noTimestampSeconds,
  type RawPush,
  type RawPushLimits,
  type TakeBytes,
} from "@skald/kernels";
import { formatLabels, invalidArgument, makeLabels, SkaldError } from "@skald/model";
import { ByteCache } from "../columns/byte-cache.js";
import { PushRows, TextArena } from "../columns/push-rows.js";
import { type FieldMapping, type FieldRole, FieldRoles } from "./mapping.js";
import { TimeText } from "./times.js";

/** A body of records as rows, and what became of each record. */
export interface DoorPush {
  readonly push: RawPush;
  /** Where the next piece begins, for a body in pieces. */
  readonly next: NextPiece;
  /** The record of each row. */
  readonly recordOfRow: Uint32Array;
  readonly records: number;
  /** Records that are no rows, in order. */
  readonly refused: readonly RefusedRecord[];
}

/** How a body goes on behind a piece. */
export interface NextPiece {
  /** Bytes of the piece that were read; the others are the start of the next one. */
  readonly read: number;
  /** Bytes behind those that belong to a refused record and may be dropped unread. */
  readonly skip: number;
  readonly within: PieceOfBody["within"];
}

/** Where a piece stands in its body. */
export interface PieceOfBody {
  readonly isLast: boolean;
  /** Where it begins: with a record, within a refused record, or within a line of one. */
  readonly within: "" | "record" | "line";
}

/** A body of one piece. */
export const wholeBody: PieceOfBody = { isLast: true, within: "" };
/** The whole body was read. */
const nothingNext: NextPiece = { read: 0, skip: 0, within: "" };

export interface RefusedRecord {
  readonly record: number;
  readonly reason: string;
}

/** A body with more unreadable records is refused as a whole: its sender means another format. */
const maxRefused = 10_000;
/** No limit allows longer label values, and label texts as a whole have a bound. */
const maxLabelBytes = 64 * 1024;
const spareBytes = 4096;

export interface DoorRowsOptions {
  readonly body: Uint8Array;
  readonly mapping: FieldMapping;
  readonly limits: RawPushLimits;
  readonly take?: TakeBytes | undefined;
}

/** A range of the arena. */
interface Range {
  readonly start: number;
  readonly length: number;
}

/**
 * Collects the records of a body as rows. The reader of a format calls `begin`, then `field` for the fields of a record,
 * then `end`, or `refuse`. All ranges are of the arena, which begins with the body.
 */
export class DoorRows {
  readonly arena: TextArena;
  /** The body; it stays at its place when the arena grows. */
  readonly body: Uint8Array;
  readonly roles: FieldRoles;
  readonly #columns: PushRows;
  readonly #extra: readonly (readonly [name: Range, value: Range])[];
  readonly #time = new TimeText();
  readonly #streams = new ByteCache<number>(streamBounds);
  readonly #refused: RefusedRecord[] = [];
  #recordOfRow = new Uint32Array(64);
  #records = 0;
  #untimed = 0;
  // Of the record that is read:
  #arenaEnd = 0;
  #firstPair = 0;
  #firstWholePair = 0;
  #hasTime = false;
  #labels: FieldSlots;
  readonly #messages: FieldSlots;
  readonly #times: FieldSlots;
  /** The labels of the row before, which mostly are those of the next. */
  #lastLabels: FieldSlots;
  #lastStream = -1;

  constructor({ body, mapping, limits, take }: DoorRowsOptions) {
    const { maxDecodedBytes } = limits;
    const room = Math.min(body.length + (body.length >> 3) + spareBytes, maxDecodedBytes);
    this.arena = new TextArena(room, maxDecodedBytes, take);
    this.arena.copy(body, 0, body.length);
    this.body = this.arena.bytes.subarray(0, body.length);
    this.roles = new FieldRoles(mapping);
    this.#columns = new PushRows(body.length, limits, take);
    this.#labels = new FieldSlots(mapping.labels.length);
    this.#lastLabels = new FieldSlots(mapping.labels.length);
    this.#messages = new FieldSlots(mapping.message.length);
    this.#times = new FieldSlots(mapping.time.length);
    this.#extra = mapping.extra.map(([name, value]) => [this.write(name), this.write(value)]);
  }

  get records(): number {
    return this.#records;
  }

  /** Begins the next record. */
  begin(): void {
    this.#records++;
    this.#arenaEnd = this.arena.end;
    this.#firstPair = this.#columns.pairCount;
    this.#firstWholePair = this.#firstPair;
    this.#labels.clear();
    this.#messages.clear();
    this.#times.clear();
    this.#hasTime = false;
    for (const [name, value] of this.#extra)
      this.field(name.start, name.length, value.start, value.length);
  }

  /** Says that the fields from now on are part of the range that `end` gets. */
  beginWhole(): void {
    this.#firstWholePair = this.#columns.pairCount;
  }

  /** Gives the record a field. An empty value is none. */
  field(nameStart: number, nameLength: number, start: number, length: number): void {
    const role = this.roles.of(this.arena.bytes, nameStart, nameLength);
    this.put(role, { start: nameStart, length: nameLength }, { start, length });
  }

  /** The same for a field whose role is known. Throws invalid_argument for a name that metadata cannot have. */
  put(role: FieldRole, name: Range, value: Range): void {
    if (value.length === 0) return;
    switch (role.kind) {
      case "label":
        this.#labels.put(role.at, name, value);
        return;
      case "message":
        this.#messages.put(role.rank, name, value);
        return;
      case "time":
        this.#times.put(role.rank, name, value);
        return;
      case "ignored":
        return;
      case "nameless":
        throw invalidArgument(
          `field '${this.#shown(name.start, name.length)}' has no ASCII letter or digit to make a name from; leave it out (ignore_fields), or keep whole records`,
        );
      case "other":
        this.#columns.addPair(name.start, name.length, value.start, value.length);
    }
  }

  /** Sets the time of the record, in place of the field that may have it. */
  time(seconds: number, nanos: number): void {
    this.#time.seconds = seconds;
    this.#time.nanos = nanos;
    this.#hasTime = true;
  }

  /** The same from a text; throws invalid_argument for one that is no time. */
  timeText(start: number, length: number): void {
    if (!this.#time.read(this.arena.bytes, start, length)) {
      throw invalidArgument(
        `time '${this.#shown(start, length)}' is neither RFC 3339 nor a Unix time in s, ms, us or ns; name the field that has it (time_field)`,
      );
    }
    this.#hasTime = true;
  }

  /** Ends the record. Its line is the message field, or `whole`; a record without both has an empty line. */
  end(whole?: Range): void {
    const columns = this.#columns;
    const time = this.#times.first();
    if (!this.#hasTime && time >= 0)
      this.timeText(this.#times.start(time), this.#times.length(time));
    const message = this.#messages.first();
    const isWhole = message < 0 && whole !== undefined;
    let line = whole ?? nothing;
    if (message >= 0) {
      line = { start: this.#messages.start(message), length: this.#messages.length(message) };
    }
    if (isWhole) columns.pairCount = this.#firstWholePair;
    else {
      this.#messages.addBehind(message, columns);
      this.#times.addBehind(time, columns);
    }
    const stream = this.#stream();
    const { seconds, nanos } = this.#time;
    if (this.#hasTime) columns.addRow(stream, seconds, nanos, line);
    else columns.addRow(stream, noTimestampSeconds, this.#untimed++, line);
    const row = columns.rowCount - 1;
    if (row === this.#recordOfRow.length) this.#recordOfRow = grown(this.#recordOfRow, 2 * row);
    this.#recordOfRow[row] = this.#records - 1;
  }

  /** Reads a record: what `read` refuses as invalid_argument is not stored. Returns whether it was read. */
  record(read: () => void): boolean {
    this.begin();
    try {
      read();
      return true;
    } catch (error) {
      this.refuse(error);
      return false;
    }
  }

  /** Leaves the record out. Throws `error` if it is not about the record, and invalid_argument after too many. */
  refuse(error: unknown): void {
    if (!(error instanceof SkaldError) || error.code !== "invalid_argument") throw error;
    if (this.#refused.length === maxRefused) {
      throw invalidArgument(
        `more than ${maxRefused} records cannot be read, so none of them is stored; one of them: ${error.message}`,
      );
    }
    this.#columns.pairCount = this.#firstPair;
    this.arena.end = this.#arenaEnd;
    this.#refused.push({ record: this.#records - 1, reason: error.message });
  }

  /** Whether a range has an ASCII text. */
  isText({ start, length }: Range, text: string): boolean {
    if (length !== text.length) return false;
    const { bytes } = this.arena;
    for (let i = 0; i < length; i++) if (bytes[start + i] !== text.charCodeAt(i)) return false;
    return true;
  }

  /** Writes a text behind the body. */
  write(text: string): Range {
    const start = this.arena.end;
    this.arena.utf8(text);
    return { start, length: this.arena.end - start };
  }

  finish(next: NextPiece = nothingNext): DoorPush {
    const push = this.#columns.finish(this.arena);
    const { order, rowCount } = this.#columns;
    const inOrder = this.#recordOfRow.subarray(0, rowCount);
    const recordOfRow = order === undefined ? inOrder : order.map((row) => inOrder[row]!);
    return { push, next, recordOfRow, records: this.#records, refused: this.#refused };
  }

  #shown(start: number, length: number): string {
    return utf8.decode(this.arena.bytes.subarray(start, start + Math.min(length, 64)));
  }

  #stream(): number {
    if (this.#lastStream >= 0 && this.#labels.equals(this.#lastLabels, this.arena.bytes))
      return this.#lastStream;
    const key = this.#labelKey();
    let stream = this.#streams.get(this, this.arena.bytes, key.start, key.length);
    if (stream === undefined) stream = this.#addStream(key);
    else this.arena.end = key.start;
    this.#lastStream = stream;
    [this.#labels, this.#lastLabels] = [this.#lastLabels, this.#labels];
    return stream;
  }

  /** Writes the values of the labels behind their lengths. */
  #labelKey(): Range {
    const { arena } = this;
    const start = arena.end;
    for (const [at, name] of this.roles.labelNames.entries()) {
      const length = this.#labels.length(at);
      if (length > maxLabelBytes) {
        throw invalidArgument(
          `the value of label ${name} has ${length} bytes; the limit is ${maxLabelBytes}`,
        );
      }
      arena.fixed32(length);
      arena.copy(arena.bytes, this.#labels.start(at), length);
    }
    return { start, length: arena.end - start };
  }

  #addStream(key: Range): number {
    const { bytes } = this.arena;
    const pairs = this.roles.labelNames.map((name, at) => {
      const start = this.#labels.start(at);
      return [name, utf8.decode(bytes.subarray(start, start + this.#labels.length(at)))] as const;
    });
    const labels = makeLabels(new Map(pairs.filter(([, value]) => value !== "")));
    const stream = this.#columns.addStream(this.write(formatLabels(labels)), false);
    this.#streams.set(this, this.arena.bytes, key.start, key.length, stream);
    return stream;
  }
}

const nothing: Range = { start: 0, length: 0 };
/** Bounds of the cache of streams by label values; beyond them a stream may come twice in a push, which costs no more than that. */
const streamBounds = { maxEntries: 64 * 1024, maxKeyBytes: 16 * 1024 * 1024 };
const utf8 = new TextDecoder("utf-8", { ignoreBOM: true });

/** The fields of a record that have a number: its labels, or the fields that may hold its line or its time. */
class FieldSlots {
  /** Four numbers each: start and length of the name, start and length of the value. */
  readonly #ranges: Uint32Array;

  constructor(count: number) {
    this.#ranges = new Uint32Array(4 * count);
  }

  clear(): void {
    this.#ranges.fill(0);
  }

  put(at: number, name: Range, value: Range): void {
    this.#ranges[4 * at] = name.start;
    this.#ranges[4 * at + 1] = name.length;
    this.#ranges[4 * at + 2] = value.start;
    this.#ranges[4 * at + 3] = value.length;
  }

  start(at: number): number {
    return this.#ranges[4 * at + 2]!;
  }

  /** 0 when the record lacks the field. */
  length(at: number): number {
    return this.#ranges[4 * at + 3]!;
  }

  /** The first field that the record has, or -1. */
  first(): number {
    for (let at = 0; 4 * at < this.#ranges.length; at++) if (this.length(at) > 0) return at;
    return -1;
  }

  /** Adds the fields behind one as metadata. */
  addBehind(at: number, columns: PushRows): void {
    if (at < 0) return;
    for (let i = 4 * (at + 1); i < this.#ranges.length; i += 4) {
      const [nameStart, nameLength, start, length] = this.#ranges.subarray(i, i + 4);
      columns.addPair(nameStart!, nameLength!, start!, length!);
    }
  }

  equals(other: FieldSlots, bytes: Uint8Array): boolean {
    const a = this.#ranges;
    const b = other.#ranges;
    for (let i = 2; i < a.length; i += 4) {
      const length = a[i + 1]!;
      if (length !== b[i + 1] || !equalBytes(bytes, a[i]!, bytes, b[i]!, length)) return false;
    }
    return true;
  }
}
