/** Codes of levels as text, see src/level-names.ts. */

const UNKNOWN: u32 = 1;
const TRACE: u32 = 2;
const DEBUG: u32 = 3;
const INFO: u32 = 4;
const WARN: u32 = 5;
const ERROR: u32 = 6;
const CRITICAL: u32 = 7;
const FATAL: u32 = 8;

/** Words as little-endian numbers of their lower-case letters. */
const trc: u64 = 0x637274;
const dbg: u64 = 0x676264;
const inf: u64 = 0x666e69;
const wrn: u64 = 0x6e7277;
const err: u64 = 0x727265;
const info: u64 = 0x6f666e69;
const warn: u64 = 0x6e726177;
const trace: u64 = 0x6563617274;
const debug: u64 = 0x6775626564;
const error: u64 = 0x726f727265;
const fatal: u64 = 0x6c61746166;
const warning: u64 = 0x676e696e726177;
const critical: u64 = 0x6c61636974697263;
const informat: u64 = 0x74616d726f666e69;
const ion: u64 = 0x6e6f69;

const bit5: u64 = 0x2020202020202020;

/** The first `count` letters (at most 8) at `from`, folded; up to 8 bytes are read. */
@inline
function letters(from: usize, count: u32): u64 {
  return (load<u64>(from) | bit5) & (<u64>-1 >> ((8 - count) << 3));
}

/** Code of the bytes as a level value in any case, 0 when they are none. */
export function levelOfBytes(from: usize, length: usize): u32 {
  if (length == 4) {
    const word = letters(from, 4);
    return word == info ? INFO : word == warn ? WARN : 0;
  }
  if (length == 5) {
    const word = letters(from, 5);
    if (word == error) return ERROR;
    return word == debug ? DEBUG : word == trace ? TRACE : word == fatal ? FATAL : 0;
  }
  if (length == 3) {
    const word = letters(from, 3);
    if (word == err) return ERROR;
    if (word == wrn) return WARN;
    return word == inf ? INFO : word == dbg ? DEBUG : word == trc ? TRACE : 0;
  }
  if (length == 7) return letters(from, 7) == warning ? WARN : 0;
  if (length == 8) return letters(from, 8) == critical ? CRITICAL : 0;
  if (length == 11) return letters(from, 8) == informat && letters(from + 8, 3) == ion ? INFO : 0;
  return 0;
}

/** Bits of a byte that may stand left (1) or right (2) of a word. */
const sides = memory.data<u8>([
  0, 0, 0, 0, 0, 0, 0, 0, 0, 3, 3, 0, 0, 0, 0, 0,
  0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
  3, 2, 3, 0, 0, 0, 0, 3, 3, 2, 0, 0, 2, 0, 0, 0,
  0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 3, 0, 0,
  0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
  0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3, 0, 2, 0, 0,
  0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
  0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3, 3, 2, 0, 0,
  0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
  0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
  0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
  0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
  0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
  0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
  0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
  0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
]);

/**
 * Code of the first level word that stands by itself in the range, else UNKNOWN. Seven beginnings of three letters
 * are looked for in 16 places at once: each has a bit (tra 1, deb 2, fat 4, cri 8, err 16, war 32, inf 64), and for
 * each letter two tables, by low and by high half of the byte, say whose it may be. High halves 4 and 5 are the
 * upper case of 6 and 7.
 */
export function findKeyword(from: usize, end: usize): u32 {
  const low = i8x16.splat(0x0f);
  // t1 d2 f4 c8 e16 w32 i64, by low half: 4 -> t d, 6 -> f, 3 -> c, 5 -> e, 7 -> w, 9 -> i
  const low1 = i8x16(0, 0, 0, 8, 3, 16, 4, 32, 0, 64, 0, 0, 0, 0, 0, 0);
  const high1 = i8x16(0, 0, 0, 0, 94, 33, 94, 33, 0, 0, 0, 0, 0, 0, 0, 0);
  // r(1 8 16) e(2) a(4 32) n(64)
  const low2 = i8x16(0, 36, 25, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 64, 0);
  const high2 = i8x16(0, 0, 0, 0, 102, 25, 102, 25, 0, 0, 0, 0, 0, 0, 0, 0);
  // a(1) b(2) t(4) i(8) r(16 32) f(64)
  const low3 = i8x16(0, 1, 50, 0, 4, 0, 64, 0, 0, 8, 0, 0, 0, 0, 0, 0);
  const high3 = i8x16(0, 0, 0, 0, 75, 52, 75, 52, 0, 0, 0, 0, 0, 0, 0, 0);
  for (let p = from; p < end; p += 16) {
    const a = v128.load(p);
    const b = v128.load(p, 1);
    const c = v128.load(p, 2);
    const first = v128.and(
      v128.swizzle(low1, v128.and(a, low)),
      v128.swizzle(high1, i8x16.shr_u(a, 4)),
    );
    const second = v128.and(
      v128.swizzle(low2, v128.and(b, low)),
      v128.swizzle(high2, i8x16.shr_u(b, 4)),
    );
    const third = v128.and(
      v128.swizzle(low3, v128.and(c, low)),
      v128.swizzle(high3, i8x16.shr_u(c, 4)),
    );
    const hits = v128.and(v128.and(first, second), third);
    if (!v128.any_true(hits)) continue;
    let mask = i8x16.bitmask(i8x16.ne(hits, i8x16.splat(0)));
    while (mask != 0) {
      const at = p + ctz(mask);
      mask &= mask - 1;
      if (at > from && (load<u8>(sides + load<u8>(at - 1)) & 1) == 0) continue;
      const level = keywordAt(at, end);
      if (level != 0) return level;
    }
  }
  return UNKNOWN;
}

/** Code of the word that begins at `at` and has a boundary behind it, else 0. */
function keywordAt(at: usize, end: usize): u32 {
  const text = load<u64>(at) | bit5;
  const five = text & 0xffffffffff;
  if (five == error && closes(at + 5, end)) return ERROR;
  if (five == trace) return closes(at + 5, end) ? TRACE : 0;
  if (five == debug) return closes(at + 5, end) ? DEBUG : 0;
  if (five == fatal) return closes(at + 5, end) ? FATAL : 0;
  const four = text & 0xffffffff;
  if (four == info) return closes(at + 4, end) ? INFO : 0;
  if (four == warn) {
    if (closes(at + 4, end)) return WARN;
    return (text & 0xffffffffffffff) == warning && closes(at + 7, end) ? WARN : 0;
  }
  if (text == critical) return closes(at + 8, end) ? CRITICAL : 0;
  // What follows may belong to another row: `err` may end where `error` seemed to stand.
  return (text & 0xffffff) == err && closes(at + 3, end) ? ERROR : 0;
}

@inline
function closes(at: usize, end: usize): bool {
  return at == end || (at < end && (load<u8>(sides + load<u8>(at)) & 2) != 0);
}
