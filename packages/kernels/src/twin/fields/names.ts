import { checkFieldNames, type FieldColumns, fieldKind } from "../../fields/columns.js";

const encoder = new TextEncoder();

/** The wanted names and, while a row is scanned, what was found of them. */
export class FieldNames {
  readonly names: readonly Uint8Array[];
  readonly #columns: FieldColumns;
  readonly #enough: number;
  /** One bit per name. */
  #found = 0;
  #row = 0;

  constructor(names: readonly string[], columns: FieldColumns, enough: number) {
    checkFieldNames(names);
    this.names = names.map((name) => encoder.encode(name));
    this.#columns = columns;
    this.#enough = enough;
  }

  startRow(row: number): void {
    this.#row = row;
    this.clear();
  }

  clear(): void {
    this.#found = 0;
    for (let f = 0; f < this.names.length; f++) {
      this.#columns.kind[f * this.#columns.capacity + this.#row] = fieldKind.absent;
    }
  }

  has(field: number): boolean {
    return (this.#found & (1 << field)) !== 0;
  }

  /** True when what was found is all that is asked for. */
  get hasEnough(): boolean {
    const enough = this.#enough | 0;
    return enough !== 0 && (this.#found & enough) === enough;
  }

  set(field: number, kind: number, start: number, end: number): void {
    this.#found |= 1 << field;
    const slot = field * this.#columns.capacity + this.#row;
    this.#columns.kind[slot] = kind;
    this.#columns.start[slot] = start;
    this.#columns.length[slot] = end - start;
  }
}

/**
 * The key as a label name spells it, from `prefix` on: what is not a letter, digit or underscore becomes an
 * underscore, and a digit does not begin a name. The key is ASCII and has no blanks at its ends.
 */
export function labelNameOf(
  bytes: Uint8Array,
  start: number,
  end: number,
  prefix: readonly number[],
): number[] {
  const name = [...prefix];
  if (prefix.length === 0 && start < end && isDigit(bytes[start]!)) name.push(0x5f);
  for (let at = start; at < end; at++) name.push(isNameByte(bytes[at]!) ? bytes[at]! : 0x5f);
  return name;
}

/** True for a key whose label name the kernel does not work out: escapes, beyond ASCII, or blanks at its ends. */
export function isOddKey(bytes: Uint8Array, start: number, end: number): boolean {
  for (let at = start; at < end; at++) if (bytes[at] === 0x5c || bytes[at]! >= 0x80) return true;
  return end > start && (bytes[start]! <= 0x20 || bytes[end - 1]! <= 0x20);
}

/** True when the name is this text, or with `within` when it begins with the text and an underscore. */
export function matchesName(name: Uint8Array, text: readonly number[], within: boolean): boolean {
  if (within ? name.length <= text.length : name.length !== text.length) return false;
  for (let i = 0; i < text.length; i++) if (name[i] !== text[i]) return false;
  return !within || name[text.length] === 0x5f;
}

function isDigit(byte: number): boolean {
  return byte >= 0x30 && byte <= 0x39;
}

function isNameByte(byte: number): boolean {
  const lower = byte | 0x20;
  return isDigit(byte) || (lower >= 0x61 && lower <= 0x7a) || byte === 0x5f;
}

/** True when a byte of the range is beyond ASCII. */
export function isWide(bytes: Uint8Array, start: number, end: number): boolean {
  for (let at = start; at < end; at++) if (bytes[at]! >= 0x80) return true;
  return false;
}
