/**
 * Wanted label names and the columns of what was found of them; see src/shared/fields.ts. The table of names is a
 * u32 count, then per name where it starts and its length, u32 each, starts count from the table; at most 32 names.
 */
let table: usize = 0;
let starts: usize = 0;
let lengths: usize = 0;
let kinds: usize = 0;
let stride: usize = 0;
let text: usize = 0;
let row: usize = 0;

/** One bit per wanted name: all of them, those found in the row, and those that are enough to leave it. */
export let allFields: u32 = 0;
export let found: u32 = 0;
let enough: u32 = 0;
/** Bit n says that a name is n bytes long; bit 31 stands for all longer ones. */
let nameLengths: u32 = 0;

export const ABSENT: u32 = 0;
export const PLAIN: u32 = 1;
export const CODED: u32 = 2;

/** `rows` is the length of each field's column; the columns of a field follow each other. */
export function openFields(
  bytes: usize,
  names: usize,
  startColumns: usize,
  lengthColumns: usize,
  kindColumns: usize,
  rows: u32,
  enoughFields: u32,
): void {
  text = bytes;
  table = names;
  starts = startColumns;
  lengths = lengthColumns;
  kinds = kindColumns;
  stride = rows;
  enough = enoughFields;
  const count = load<u32>(names);
  allFields = <u32>((<u64>1 << count) - 1);
  memory.fill(kinds, 0, stride * count);
  nameLengths = 0;
  for (let field: u32 = 0; field < count; field++) {
    nameLengths |= 1 << min(load<u32>(names + (<usize>field << 3), 8), 31);
  }
}

/** False when no wanted name is this long, or a byte longer: most keys need not be compared. */
@inline
export function isWantedLength(length: u32): bool {
  return ((nameLengths >> min(length, 30)) & 3) != 0;
}

export function openRow(index: u32): void {
  row = index;
  found = 0;
}

/** True when what was found is all that is asked for. */
@inline
export function hasEnough(): bool {
  return enough != 0 && (found & enough) == enough;
}

/** Forgets what was found in the row. */
export function clearRow(): void {
  for (let rest = found; rest != 0; rest &= rest - 1) {
    store<u8>(kinds + <usize>ctz(rest) * stride + row, 0);
  }
  found = 0;
}

/** Notes a value for each field of the mask. */
export function noteFields(mask: u32, kind: u32, start: usize, end: usize): void {
  found |= mask;
  for (let rest = mask; rest != 0; rest &= rest - 1) {
    const slot = <usize>ctz(rest) * stride + row;
    store<u8>(kinds + slot, kind);
    store<u32>(starts + (slot << 2), <u32>(start - text));
    store<u32>(lengths + (slot << 2), <u32>(end - start));
  }
}

/**
 * The fields among `live` whose names, from `position` on, are the key in the spelling of a label name; with
 * `within` those that have an underscore and more behind it. The key is ASCII; position 0 is the beginning of a name,
 * where a digit gets an underscore before it.
 */
export function matchFields(key: usize, keyEnd: usize, position: u32, live: u32, within: bool): u32 {
  const length = <u32>(keyEnd - key);
  const lead: u32 = position == 0 && length > 0 && isDigit(load<u8>(key)) ? 1 : 0;
  const needed = position + length + lead;
  if (needed == 0) return 0;
  let matches: u32 = 0;
  for (let rest = live; rest != 0; rest &= rest - 1) {
    const field = ctz(rest);
    const entry = table + 4 + (<usize>field << 3);
    const nameLength = load<u32>(entry, 4);
    const name = table + load<u32>(entry);
    if (within) {
      if (nameLength <= needed || load<u8>(name + needed) != 0x5f) continue;
    } else if (nameLength != needed) {
      continue;
    }
    if (lead == 1 && load<u8>(name + position) != 0x5f) continue;
    if (equalsName(key, name + position + lead, length)) matches |= 1 << field;
  }
  return matches;
}

/** The fields whose names are the key, byte by byte. */
export function matchKeys(key: usize, keyEnd: usize): u32 {
  const length = <u32>(keyEnd - key);
  let matches: u32 = 0;
  for (let rest = allFields; rest != 0; rest &= rest - 1) {
    const field = ctz(rest);
    const entry = table + 4 + (<usize>field << 3);
    if (load<u32>(entry, 4) != length) continue;
    if (equalsText(key, table + load<u32>(entry), length)) matches |= 1 << field;
  }
  return matches;
}

/** Compares two texts in steps of 16; both may be read beyond their ends. */
export function equalsText(one: usize, other: usize, length: u32): bool {
  for (let i: u32 = 0; i < length; i += 16) {
    const same = i8x16.bitmask(i8x16.eq(v128.load(one + i), v128.load(other + i)));
    const left = length - i;
    const wanted = left >= 16 ? 0xffff : (1 << left) - 1;
    if ((same & wanted) != wanted) return false;
  }
  return true;
}

/** Compares the key, spelled as a label name, in steps of 16; both may be read beyond their ends. */
function equalsName(key: usize, name: usize, length: u32): bool {
  for (let i: u32 = 0; i < length; i += 16) {
    const same = i8x16.bitmask(i8x16.eq(spell(v128.load(key + i)), v128.load(name + i)));
    const left = length - i;
    const wanted = left >= 16 ? 0xffff : (1 << left) - 1;
    if ((same & wanted) != wanted) return false;
  }
  return true;
}

/** Letters, digits and underscores as they are, underscores for the rest. */
@inline
function spell(bytes: v128): v128 {
  const lower = v128.or(bytes, i8x16.splat(0x20));
  const letters = i8x16.lt_u(i8x16.sub(lower, i8x16.splat(0x61)), i8x16.splat(26));
  const digits = i8x16.lt_u(i8x16.sub(bytes, i8x16.splat(0x30)), i8x16.splat(10));
  return v128.bitselect(bytes, i8x16.splat(0x5f), v128.or(letters, digits));
}

@inline
function isDigit(byte: u32): bool {
  return byte - 0x30 < 10;
}
