import { equalsText, PLAIN } from "./fields";

/**
 * Finds what a pattern captures in the selected rows of a block; the rules are those of src/twin/pattern.ts. `texts`
 * has the text before the first capture, then the one behind each; `columns` the column of each capture, -1 without.
 */
export function scanPattern(
  bytes: usize,
  low: u32,
  size: u32,
  offsets: usize,
  selection: usize,
  count: u32,
  texts: usize,
  starts: usize,
  lengths: usize,
  kinds: usize,
  reads: usize,
  columns: usize,
  columnCount: u32,
): void {
  memory.fill(kinds, 0, <usize>columnCount * count);
  memory.fill(reads, 1, count);
  const captures = load<u32>(texts) - 1;
  const prefix = texts + load<u32>(texts, 4);
  const prefixLength = load<u32>(texts, 8);
  for (let i: u32 = 0; i < count; i++) {
    const row = offsets + (<usize>load<u32>(selection + (<usize>i << 2)) << 2);
    const stop = min(load<u32>(row, 4), size);
    const start = max(min(load<u32>(row), stop), low);
    if (start == stop || stop - start < prefixLength) continue;
    if (!equalsText(bytes + start, prefix, prefixLength)) continue;
    const end = bytes + stop;
    let at = bytes + start + prefixLength;
    for (let capture: u32 = 0; capture < captures; capture++) {
      const entry = texts + 12 + (<usize>capture << 3);
      const length = load<u32>(entry, 4);
      const found = length == 0 ? 0 : findText(at, end, texts + load<u32>(entry), length);
      const column = load<i32>(columns + (<usize>capture << 2));
      if (column >= 0) {
        const slot = <usize>column * count + i;
        store<u8>(kinds + slot, PLAIN);
        store<u32>(starts + (slot << 2), <u32>(at - bytes));
        store<u32>(lengths + (slot << 2), <u32>((found == 0 ? end : found) - at));
      }
      if (found == 0) break;
      at = found + length;
    }
  }
}

/** Where the text stands first, or 0. Its first and last byte are compared in 16 places at once. */
function findText(from: usize, end: usize, text: usize, length: u32): usize {
  if (from + length > end) return 0;
  const stop = end - length;
  const first = i8x16.splat(load<u8>(text));
  const last = i8x16.splat(load<u8>(text + length - 1));
  for (let p = from; p <= stop; p += 16) {
    const both = v128.and(
      i8x16.eq(v128.load(p), first),
      i8x16.eq(v128.load(p + length - 1), last),
    );
    for (let mask = i8x16.bitmask(both); mask != 0; mask &= mask - 1) {
      const place = p + ctz(mask);
      if (place > stop) return 0;
      if (length <= 2 || equalsText(place + 1, text + 1, length - 2)) return place;
    }
  }
  return 0;
}
