import { invalidArgument } from "@skald/model";
import {
  type DoorPush,
  DoorRows,
  type DoorRowsOptions,
  type PieceOfBody,
  wholeBody,
} from "./door-rows.js";
import { maxRecordBytes, recordTooLong } from "./json-lines.js";
import type { TextRange } from "./object-reader.js";

/**
 * Decodes entries of a journal in the export format (https://systemd.io/JOURNAL_EXPORT_FORMATS): fields `NAME=text`, or for
 * any bytes `NAME`, a line feed, the length in 64 bits, the bytes, a line feed; an empty line ends an entry. A field longer
 * than records may be refuses its entry, and is not read. Throws invalid_argument for what is no field, because nobody
 * knows then where the next entry begins.
 */
export function decodeJournal(options: DoorRowsOptions, piece = wholeBody): DoorPush {
  return new JournalDecoder(options, piece).decode();
}

const lineFeed = 0x0a;
const equals = 0x3d;
const lengthBytes = 8;
const two32 = 0x1_0000_0000;
/** Journals allow names of 64 characters. */
const maxNameBytes = 256;
/** The level that readers look for, by the value of `PRIORITY`. */
const levels = ["critical", "critical", "critical", "error", "warn", "info", "info", "debug"];
const priority = "PRIORITY";

class JournalDecoder {
  readonly #rows: DoorRows;
  readonly #body: Uint8Array;
  readonly #isLast: boolean;
  readonly #levelName: TextRange;
  readonly #levels: readonly TextRange[];
  #within: PieceOfBody["within"];
  #at = 0;
  /** Four numbers for each field of the entry that is read: ranges of name and value. */
  #fields: number[] = [];
  /** Bytes behind the piece that belong to a refused entry. */
  #skip = 0;

  constructor(options: DoorRowsOptions, { isLast, within }: PieceOfBody) {
    this.#rows = new DoorRows(options);
    this.#body = this.#rows.body;
    this.#isLast = isLast;
    this.#within = within;
    this.#levelName = this.#rows.write("level");
    this.#levels = levels.map((level) => this.#rows.write(level));
  }

  decode(): DoorPush {
    const { length } = this.#body;
    if (this.#within === "line" && !this.#skipLine()) return this.#finish(length);
    let entry = this.#at;
    for (let read = this.#next(); read !== "nothing"; read = this.#next()) {
      if (read !== "end") continue;
      this.#endEntry();
      entry = this.#at;
    }
    if (this.#within === "" && this.#isLast && length > entry) {
      this.#refuse(invalidArgument("the entry ends within a field, or without an empty line"));
    } else if (this.#within === "" && length - entry >= maxRecordBytes) {
      this.#refuse(recordTooLong());
    }
    if (this.#within === "") return this.#finish(entry);
    if (this.#skip > 0) return this.#finish(length);
    if (length - this.#at < maxRecordBytes) return this.#finish(this.#at);
    this.#within = "line";
    return this.#finish(length);
  }

  #finish(read: number): DoorPush {
    return this.#rows.finish({ read, skip: this.#skip, within: this.#within });
  }

  /** Reads the next field, or the line that ends an entry; `nothing` where the piece ends before it does. */
  #next(): "field" | "end" | "nothing" {
    const body = this.#body;
    const start = this.#at;
    const end = body.indexOf(lineFeed, start);
    if (end < 0 || this.#skip > 0) return "nothing";
    if (end === start) {
      this.#at = end + 1;
      return "end";
    }
    let split = start;
    const nameEnd = Math.min(end, start + maxNameBytes);
    while (split < nameEnd && body[split] !== equals) split++;
    if (split === start + maxNameBytes) {
      throw invalidArgument(`the name of a field has more than ${maxNameBytes} bytes`);
    }
    if (split === end) return this.#bytesField(start, end);
    this.#fields.push(start, split - start, split + 1, end - split - 1);
    this.#at = end + 1;
    return "field";
  }

  #bytesField(start: number, nameEnd: number): "field" | "nothing" {
    const body = this.#body;
    const from = nameEnd + 1 + lengthBytes;
    if (from > body.length) return "nothing";
    const view = new DataView(body.buffer, body.byteOffset + nameEnd + 1, lengthBytes);
    const length = view.getUint32(4, true) * two32 + view.getUint32(0, true);
    if (length > Number.MAX_SAFE_INTEGER / 2)
      throw invalidArgument("the length of a field makes no sense");
    const to = from + length;
    if (length > maxRecordBytes) {
      if (this.#within === "") this.#refuse(recordTooLong());
      this.#skip = Math.max(0, to + 1 - body.length);
      if (this.#skip > 0) return "nothing";
    } else if (to >= body.length) return "nothing";
    if (body[to] !== lineFeed) throw invalidArgument("a field does not end with a line feed");
    this.#fields.push(start, nameEnd - start, from, length);
    this.#at = to + 1;
    return "field";
  }

  /** Skips the rest of a line of a refused entry; false when the piece ends before it does. */
  #skipLine(): boolean {
    this.#at = this.#body.indexOf(lineFeed) + 1;
    if (this.#at === 0) return false;
    this.#within = "record";
    return true;
  }

  #refuse(error: Error): void {
    this.#rows.begin();
    this.#rows.refuse(error);
    this.#within = "record";
  }

  #endEntry(): void {
    const isStored = this.#within === "" && this.#fields.length > 0;
    if (isStored) this.#rows.record(this.#addEntry);
    this.#within = "";
    this.#fields = [];
  }

  readonly #addEntry = (): void => {
    const rows = this.#rows;
    const fields = this.#fields;
    for (let i = 0; i < fields.length; i += 4) {
      const name = { start: fields[i]!, length: fields[i + 1]! };
      const start = fields[i + 2]!;
      const length = fields[i + 3]!;
      rows.field(name.start, name.length, start, length);
      if (length !== 1 || !rows.isText(name, priority)) continue;
      const level = this.#levels[this.#body[start]! - 0x30];
      if (level === undefined) continue;
      rows.field(this.#levelName.start, this.#levelName.length, level.start, level.length);
    }
    rows.end();
  };
}
