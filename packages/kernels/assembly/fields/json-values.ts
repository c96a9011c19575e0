import { ABSENT, BOOLEAN, NUMBER, UNSURE } from "./fields";

/** The parts of JSON lines that are read without judging more than must be; see src/twin/json-fields.ts. */

/** Whether the text read last had escapes, and bytes beyond ASCII. */
export let escaped: bool = false;
export let wide: bool = false;

/** Position of the quote that closes the text from `from` on, at or behind `end` without one. */
// @ts-ignore: decorator
@inline
export function textEnd(from: usize, end: usize): usize {
  const text = v128.load(from);
  const mask = i8x16.bitmask(
    v128.or(i8x16.eq(text, i8x16.splat(0x22)), i8x16.eq(text, i8x16.splat(0x5c))),
  );
  if (mask != 0) {
    const length = ctz(mask);
    if (load<u8>(from + length) == 0x22) {
      escaped = false;
      wide = (i8x16.bitmask(text) & ((1 << length) - 1)) != 0;
      return from + length;
    }
  }
  return longTextEnd(from, end);
}

function longTextEnd(from: usize, end: usize): usize {
  const quote = i8x16.splat(0x22);
  const slash = i8x16.splat(0x5c);
  let high: u32 = 0;
  escaped = false;
  let p = from;
  while (p < end) {
    const text = v128.load(p);
    const mask = i8x16.bitmask(v128.or(i8x16.eq(text, quote), i8x16.eq(text, slash)));
    if (mask == 0) {
      high |= i8x16.bitmask(text);
      p += 16;
      continue;
    }
    const length = ctz(mask);
    high |= i8x16.bitmask(text) & ((1 << length) - 1);
    p += length;
    if (load<u8>(p) == 0x22) break;
    escaped = true;
    p += 2;
  }
  wide = high != 0;
  return p;
}

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

// @ts-ignore: decorator
@inline
export function wordEnd(from: usize, end: usize): usize {
  let at = from;
  while (at < end && load<u8>(wordEnds + load<u8>(at)) == 0) at++;
  return at;
}

/** Kind of a value that is no string, object or array; ABSENT for null, UNSURE for anything unknown. */
export function kindOfWord(from: usize, to: usize): u32 {
  const length = to - from;
  const first = <u32>load<u8>(from);
  if (length > 0 && (first == 0x2d || first - 0x30 < 10)) return NUMBER;
  const four = load<u32>(from);
  if (length == 4) return four == 0x65757274 ? BOOLEAN : four == 0x6c6c756e ? ABSENT : UNSURE;
  return length == 5 && four == 0x736c6166 && load<u8>(from, 4) == 0x65 ? BOOLEAN : UNSURE;
}

// @ts-ignore: decorator
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
