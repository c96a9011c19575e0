import { ABSENT, PLAIN } from "./fields";

/** The parts of JSON lines that are read without judging more than must be; see src/twin/fields.ts. */

/**
 * Behind the bracket that closes the one at `from`, counting only these two kinds outside of strings; 0 without one.
 * In 16 places at once: a prefix sum over the quotes tells which of them lie within strings.
 */
export function blockEnd(from: usize, end: usize, open: u32, close: u32): usize {
  const opens = i8x16.splat(<i8>open);
  const closes = i8x16.splat(<i8>close);
  let level: i32 = 0;
  let inside: u32 = 0;
  let p = from;
  while (p < end) {
    const text = v128.load(p);
    if (v128.any_true(i8x16.eq(text, i8x16.splat(0x5c)))) {
      const stop = min(p + 16, end);
      while (p < stop) {
        const byte = <u32>load<u8>(p++);
        if (inside != 0) {
          if (byte == 0x22) inside = 0;
          else if (byte == 0x5c) p++;
        } else if (byte == 0x22) inside = 0xffff;
        else if (byte == open) level++;
        else if (byte == close && --level == 0) return p;
      }
      continue;
    }
    let strings = <u32>i8x16.bitmask(i8x16.eq(text, i8x16.splat(0x22)));
    strings ^= strings << 1;
    strings ^= strings << 2;
    strings ^= strings << 4;
    strings ^= strings << 8;
    strings = (strings ^ inside) & 0xffff;
    inside = 0 - (strings >> 15) & 0xffff;
    const left = end - p;
    const outside = ~strings & (left >= 16 ? 0xffff : (1 << left) - 1);
    let ups = <u32>i8x16.bitmask(i8x16.eq(text, opens)) & outside;
    let downs = <u32>i8x16.bitmask(i8x16.eq(text, closes)) & outside;
    if (<i32>popcnt(downs) < level) {
      level += popcnt(ups) - popcnt(downs);
    } else {
      while (downs != 0) {
        const before = (downs & (0 - downs)) - 1;
        level += popcnt(ups & before) - 1;
        if (level == 0) return p + ctz(downs) + 1;
        ups &= ~before;
        downs &= downs - 1;
      }
      level += popcnt(ups);
    }
    p += 16;
  }
  return 0;
}

/** 1 for the bytes that end a number or word: blanks, comma, closing brackets. */
const wordEnds = memory.data<u8>([
  0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 0, 0, 1, 0, 0,
  0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
  1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0,
  0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
  0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
  0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0,
  0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
  0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0,
  0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
  0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
  0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
  0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
  0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
  0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
  0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
  0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
]);

@inline
export function wordEnd(from: usize, end: usize): usize {
  let at = from;
  while (at < end && load<u8>(wordEnds + load<u8>(at)) == 0) at++;
  return at;
}

export const UNKNOWN: u32 = 255;

/** Kind of a value that is no string, object or array; ABSENT for null, UNKNOWN for what is no value. */
export function kindOfWord(from: usize, to: usize): u32 {
  const length = to - from;
  const first = <u32>load<u8>(from);
  if (length > 0 && (first == 0x2d || first - 0x30 < 10)) return PLAIN;
  const four = load<u32>(from);
  if (length == 4) return four == 0x65757274 ? PLAIN : four == 0x6c6c756e ? ABSENT : UNKNOWN;
  return length == 5 && four == 0x736c6166 && load<u8>(from, 4) == 0x65 ? PLAIN : UNKNOWN;
}

@inline
export function skipBlanks(from: usize, end: usize): usize {
  return load<u8>(from) > 0x20 ? from : skipManyBlanks(from, end);
}

function skipManyBlanks(from: usize, end: usize): usize {
  let at = from;
  while (at < end) {
    const byte = <u32>load<u8>(at);
    if (byte != 0x20 && byte != 0x0a && byte != 0x0d && byte != 0x09) return at;
    at++;
  }
  return at;
}
