/**
 * Search for many texts in one pass (Aho and Corasick; see src/shared/text-set.ts for the tables). While no text has
 * begun, the next place where one may is looked for: 16 places at a time by masks of half bytes (after "Teddy" of the
 * Hyperscan library), or with many texts by the pair of bytes that stands there. Each byte is looked at by the
 * automaton at most twice, so the time is linear in the text whatever the texts are.
 */

const MATCH: u32 = 0xffffffff;

let masked: bool = false;
let folds: bool = false;
let root: usize = 0;
let skip: usize = 0;
let first: usize = 0;
let fail: usize = 0;
let labels: usize = 0;

/**
 * Narrows `selection` (ascending row numbers) in place and returns how many are left. `bytes` are those of position 0;
 * what exists is `low .. size`, and 64 bytes behind it may be read.
 */
export function selectContainsAny(
  bytes: usize,
  low: u32,
  size: u32,
  offsets: usize,
  texts: usize,
  selection: usize,
  count: u32,
  negate: bool,
): u32 {
  masked = load<u32>(texts) != 0;
  folds = load<u32>(texts, 4) != 0;
  root = texts + load<u32>(texts, 8);
  skip = texts + load<u32>(texts, 12);
  first = texts + load<u32>(texts, 16);
  fail = texts + load<u32>(texts, 20);
  labels = texts + load<u32>(texts, 24);
  let to = selection;
  for (let i: u32 = 0; i < count; i++) {
    const row = load<u32>(selection + (<usize>i << 2));
    const slot = offsets + (<usize>row << 2);
    const end = min(load<u32>(slot, 4), size);
    const start = max(min(load<u32>(slot), end), low);
    if (containsAny(bytes + start, bytes + end) == negate) continue;
    store<u32>(to, row);
    to += 4;
  }
  return <u32>((to - selection) >> 2);
}

function containsAny(start: usize, end: usize): bool {
  let at = start;
  while (true) {
    at = masked ? skipMasked(at, end) : skipPairs(at, end);
    if (at >= end) return false;
    let state = load<u32>(root + (<usize>byteAt(at) << 2));
    at++;
    while (state != 0) {
      const back = load<u32>(fail + (<usize>state << 2));
      if (back == MATCH) return true;
      if (at >= end) return false;
      const next = childOf(state, byteAt(at));
      if (next != 0) {
        state = next;
        at++;
      } else state = back;
    }
  }
}

@inline
function byteAt(at: usize): u32 {
  const byte = <u32>load<u8>(at);
  return folds && byte - 0x41 < 26 ? byte | 0x20 : byte;
}

@inline
function childOf(state: u32, byte: u32): u32 {
  const slot = first + (<usize>state << 2);
  let child = load<u32>(slot);
  const end = load<u32>(slot, 4);
  const wanted = i8x16.splat(<i8>byte);
  for (; child < end; child += 16) {
    const found = i8x16.bitmask(i8x16.eq(v128.load(labels + child), wanted));
    if (found == 0) continue;
    const at = child + ctz(found);
    return at < end ? at : 0;
  }
  return 0;
}

/** The next place where the masks allow a text to begin. */
function skipMasked(start: usize, end: usize): usize {
  const low0 = v128.load(skip);
  const high0 = v128.load(skip, 16);
  const low1 = v128.load(skip, 32);
  const high1 = v128.load(skip, 48);
  const low2 = v128.load(skip, 64);
  const high2 = v128.load(skip, 80);
  const half = i8x16.splat(15);
  for (let at = start; at < end; at += 16) {
    const a = v128.load(at);
    const b = v128.load(at, 1);
    const c = v128.load(at, 2);
    const isA = v128.and(
      i8x16.swizzle(low0, v128.and(a, half)),
      i8x16.swizzle(high0, i8x16.shr_u(a, 4)),
    );
    const isB = v128.and(
      i8x16.swizzle(low1, v128.and(b, half)),
      i8x16.swizzle(high1, i8x16.shr_u(b, 4)),
    );
    const isC = v128.and(
      i8x16.swizzle(low2, v128.and(c, half)),
      i8x16.swizzle(high2, i8x16.shr_u(c, 4)),
    );
    const places = v128.and(v128.and(isA, isB), isC);
    if (!v128.any_true(places)) continue;
    const none = i8x16.bitmask(i8x16.eq(places, i8x16.splat(0)));
    return at + <usize>ctz(none ^ 0xffff);
  }
  return end;
}

/** The next place where a text begins with the two bytes that stand there. */
function skipPairs(start: usize, end: usize): usize {
  for (let at = start; at < end; at++) {
    const pair = <u32>load<u16>(at);
    if ((load<u8>(skip + (pair >> 3)) >> <u8>(pair & 7)) & 1) return at;
  }
  return end;
}
