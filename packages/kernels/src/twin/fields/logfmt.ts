import { type FieldColumns, fieldKind, type LogfmtFieldOptions } from "../../fields/columns.js";
import type { RowSelection } from "../../search/selection.js";
import { quoteEnd } from "../quoted.js";
import { FieldNames, isWide, labelNameOf, matchesName } from "./names.js";

/**
 * Finds the fields with these label names in logfmt lines (`k=v k2="quoted v" flag`). Of a broken pair the rest of
 * the word is passed over; a quoted value is broken when it is not closed or an escape in it is wrong.
 */
export function scanLogfmtFields(
  bytes: Uint8Array,
  offsets: Uint32Array,
  selection: RowSelection,
  names: readonly string[],
  out: FieldColumns,
  options: LogfmtFieldOptions,
): void {
  const scan = new LogfmtFieldScan(bytes, new FieldNames(names, out, options.enough), options);
  for (let i = 0; i < selection.count; i++) {
    const row = selection.rows[i]!;
    const end = Math.min(offsets[row + 1]!, bytes.length);
    out.isRead[i] = scan.readRow(i, Math.min(offsets[row]!, end), end) ? 1 : 0;
  }
}

class LogfmtFieldScan {
  readonly #bytes: Uint8Array;
  readonly #fields: FieldNames;
  readonly #options: LogfmtFieldOptions;
  #at = 0;
  #end = 0;

  constructor(bytes: Uint8Array, fields: FieldNames, options: LogfmtFieldOptions) {
    this.#bytes = bytes;
    this.#fields = fields;
    this.#options = options;
  }

  readRow(row: number, start: number, end: number): boolean {
    this.#fields.startRow(row);
    this.#at = start;
    this.#end = end;
    const isRead = this.#readPairs();
    if (!isRead) this.#fields.clear();
    return isRead;
  }

  #readPairs(): boolean {
    const bytes = this.#bytes;
    for (;;) {
      while (this.#at < this.#end && bytes[this.#at]! <= 0x20) this.#at++;
      if (this.#at >= this.#end) return true;
      const key = this.#at;
      const keyEnd = this.#wordEnd(key);
      if (isWide(bytes, key, keyEnd)) return false;
      const stop = keyEnd < this.#end ? bytes[keyEnd]! : 0;
      let sound = true;
      if (stop === 0x22 || (stop === 0x3d && keyEnd === key)) {
        this.#at = keyEnd;
        sound = false;
      } else if (stop === 0x3d) {
        sound = this.#readValue(key, keyEnd);
      } else {
        this.#at = keyEnd;
        this.#note(key, keyEnd, false, keyEnd, keyEnd);
      }
      if (!sound && this.#options.strict) return false;
      if (!sound) while (this.#at < this.#end && bytes[this.#at]! > 0x20) this.#at++;
      if (this.#fields.hasEnough) return true;
    }
  }

  /** Reads the value behind the equals sign at `keyEnd`; false when it is broken, with the cursor where it breaks. */
  #readValue(key: number, keyEnd: number): boolean {
    const start = keyEnd + 1;
    if (start >= this.#end || this.#bytes[start] !== 0x22) {
      this.#at = this.#wordEnd(start);
      const stop = this.#at < this.#end ? this.#bytes[this.#at]! : 0;
      if (stop === 0x3d || stop === 0x22) return false;
      this.#note(key, keyEnd, false, start, this.#at);
      return true;
    }
    const close = quoteEnd(this.#bytes, start + 1, this.#end);
    this.#at = close < 0 ? this.#end : close + 1;
    if (close < 0) return false;
    const escaped = this.#bytes.subarray(start + 1, close).includes(0x5c);
    if (escaped && !this.#areEscapesSound(start + 1, close)) return false;
    this.#note(key, keyEnd, escaped, start + 1, close);
    return true;
  }

  #note(key: number, keyEnd: number, escaped: boolean, start: number, end: number): void {
    if (end === start && !this.#options.keepEmpty) return;
    const isCoded = escaped || isWide(this.#bytes, start, end);
    const kind = isCoded ? fieldKind.coded : fieldKind.plain;
    const name = labelNameOf(this.#bytes, key, keyEnd, []);
    for (const [field, wanted] of this.#fields.names.entries()) {
      if (!matchesName(wanted, name, false)) continue;
      if (this.#options.lastWins || !this.#fields.has(field))
        this.#fields.set(field, kind, start, end);
    }
  }

  /** True when every escape is known and, as there are escapes, no control character stands between them. */
  #areEscapesSound(start: number, end: number): boolean {
    const bytes = this.#bytes;
    for (let at = start; at < end; at++) {
      if (bytes[at]! < 0x20) return false;
      if (bytes[at] !== 0x5c) continue;
      at++;
      if (bytes[at] !== 0x75) {
        if (!knownEscapes.has(bytes[at]!)) return false;
        continue;
      }
      if (end - at <= 4) return false;
      for (const last = at + 4; at < last; at++) if (!isHex(bytes[at + 1]!)) return false;
    }
    return true;
  }

  /** End of a word: a blank, a control character, an equals sign or a quote. */
  #wordEnd(from: number): number {
    const bytes = this.#bytes;
    let at = from;
    while (at < this.#end && bytes[at]! > 0x20 && bytes[at] !== 0x3d && bytes[at] !== 0x22) at++;
    return at;
  }
}

const knownEscapes = new Set(new TextEncoder().encode("\"\\/'bfnrt"));

function isHex(byte: number): boolean {
  const lower = byte | 0x20;
  return (byte >= 0x30 && byte <= 0x39) || (lower >= 0x61 && lower <= 0x66);
}
