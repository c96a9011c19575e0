/** The needle filters of a group of blocks: a homogeneous ribbon of the keys of each. The twin says what it means. */

const MIX1: u32 = 0x21f0aaad;
const MIX2: u32 = 0x735a2d97;

@inline
function mix(value: u32): u32 {
  let hash = value;
  hash ^= hash >> 16;
  hash *= MIX1;
  hash ^= hash >> 15;
  hash *= MIX2;
  hash ^= hash >> 15;
  return hash;
}

/**
 * Solves the filters of `blocks` blocks, whose keys stand one behind the other, `counts` (u32) of each. `rows` has
 * room for two u64 a slot and 16 bytes more, `words` for one and 8 bytes more, `scratch` for a batch of equations;
 * `bits` gets bit `slot * blocks + i` for block i.
 */
export function solveNeedleFilter(
  keys: usize,
  counts: usize,
  blocks: u32,
  slots: u32,
  firstBlock: u32,
  rows: usize,
  words: usize,
  bits: usize,
  scratch: usize,
): void {
  memory.fill(words, 0, <usize>slots << 3);
  const rowsBytes = (<usize>slots << 3) + 8;
  const others = rows + rowsBytes;
  let at = keys;
  for (let i: u32 = 0; i < blocks; i += 2) {
    memory.fill(rows, 0, rowsBytes << 1);
    const place = counts + (<usize>i << 2);
    const middle = at + (<usize>load<u32>(place) << 2);
    eliminate(at, middle, slots, rows, scratch);
    at = middle;
    const isPair = i + 1 < blocks;
    if (isPair) {
      at = middle + (<usize>load<u32>(place, 4) << 2);
      eliminate(middle, at, slots, others, scratch);
    }
    solve(rows, others, slots, firstBlock + i + 1, words, i, isPair ? 1 : 0);
  }
  packBits(words, slots, blocks, bits);
}

/** Writes the lower `width` bits of each word behind those of the one before. */
export function packBits(words: usize, slots: u32, width: u32, bits: usize): void {
  let to = bits;
  let open: u64 = 0;
  let used: u32 = 0;
  for (let slot: u32 = 0; slot < slots; slot++) {
    const word = load<u64>(words + (<usize>slot << 3));
    open |= word << used;
    store<u64>(to, open);
    used += width;
    if (used < 64) continue;
    used -= 64;
    to += 8;
    // what did not fit; a shift by 64 would be one by 0
    open = used == 0 ? 0 : word >> (width - used);
  }
  store<u64>(to, open);
}

/** Keys whose equations are made at once. */
const BATCH: u32 = 2048;

/**
 * Takes the keys into the rows. Four equations go on by turns: what becomes of one cannot be foretold and each of its
 * steps waits for the one before, so all of them do the same whether they found their place or not.
 */
function eliminate(from: usize, to: usize, slots: u32, rows: usize, scratch: usize): void {
  const equations = scratch;
  const starts = scratch + ((BATCH + 8) << 3);
  for (let at = from; at < to; at += BATCH << 2) {
    const count = min(BATCH, <u32>((to - at) >> 2));
    prepare(at, count, slots, rows, equations, starts);
    let a = load<u64>(equations);
    let b = load<u64>(equations, 8);
    let c = load<u64>(equations, 16);
    let d = load<u64>(equations, 24);
    let rowA = <usize>load<u32>(starts);
    let rowB = <usize>load<u32>(starts, 4);
    let rowC = <usize>load<u32>(starts, 8);
    let rowD = <usize>load<u32>(starts, 12);
    let next: usize = 4;
    while (next < count) {
      let found = load<u64>(rowA);
      let rest = found ^ a;
      let done = i32(found == 0) | i32(rest == 0);
      store<u64>(rowA, select<u64>(found, a, found != 0));
      let shift = ctz(rest);
      a = select<u64>(load<u64>(equations + (next << 3)), rest >> shift, done);
      rowA = select<usize>(load<u32>(starts + (next << 2)), rowA + (<usize>shift << 3), done);
      next += done;
      found = load<u64>(rowB);
      rest = found ^ b;
      done = i32(found == 0) | i32(rest == 0);
      store<u64>(rowB, select<u64>(found, b, found != 0));
      shift = ctz(rest);
      b = select<u64>(load<u64>(equations + (next << 3)), rest >> shift, done);
      rowB = select<usize>(load<u32>(starts + (next << 2)), rowB + (<usize>shift << 3), done);
      next += done;
      found = load<u64>(rowC);
      rest = found ^ c;
      done = i32(found == 0) | i32(rest == 0);
      store<u64>(rowC, select<u64>(found, c, found != 0));
      shift = ctz(rest);
      c = select<u64>(load<u64>(equations + (next << 3)), rest >> shift, done);
      rowC = select<usize>(load<u32>(starts + (next << 2)), rowC + (<usize>shift << 3), done);
      next += done;
      found = load<u64>(rowD);
      rest = found ^ d;
      done = i32(found == 0) | i32(rest == 0);
      store<u64>(rowD, select<u64>(found, d, found != 0));
      shift = ctz(rest);
      d = select<u64>(load<u64>(equations + (next << 3)), rest >> shift, done);
      rowD = select<usize>(load<u32>(starts + (next << 2)), rowD + (<usize>shift << 3), done);
      next += done;
    }
    finish(a, rowA);
    finish(b, rowB);
    finish(c, rowC);
    finish(d, rowD);
  }
}

function finish(open: u64, start: usize): void {
  let equation = open;
  let row = start;
  for (;;) {
    const found = load<u64>(row);
    if (found == 0) break;
    equation ^= found;
    if (equation == 0) return;
    const shift = ctz(equation);
    equation >>= shift;
    row += <usize>shift << 3;
  }
  store<u64>(row, equation);
}

/** Writes the equations of keys and the places of their first rows; behind them four that end in the row behind all. */
function prepare(
  keys: usize,
  count: u32,
  slots: u32,
  rows: usize,
  equations: usize,
  starts: usize,
): void {
  const range = i32x4.splat(slots - 63);
  const base = i32x4.splat(<i32>rows);
  for (let i: usize = 0; i < count; i += 4) {
    const key = v128.load(keys + (i << 2));
    const low = v128.or(mixFour(i32x4.add(key, i32x4.splat(0x6c8e9cf5))), i32x4.splat(1));
    const high = mixFour(v128.xor(key, i32x4.splat(0x2545f491)));
    const to = equations + (i << 3);
    v128.store(to, v128.shuffle<u32>(low, high, 0, 4, 1, 5));
    v128.store(to, v128.shuffle<u32>(low, high, 2, 6, 3, 7), 16);
    const one = i64x2.extmul_low_i32x4_u(key, range);
    const two = i64x2.extmul_high_i32x4_u(key, range);
    const start = v128.shuffle<u32>(one, two, 1, 3, 5, 7);
    v128.store(starts + (i << 2), i32x4.add(i32x4.shl(start, 3), base));
  }
  const behind = <u32>(rows + (<usize>slots << 3));
  for (let i: usize = count; i < <usize>count + 4; i++) {
    store<u64>(equations + (i << 3), 1);
    store<u32>(starts + (i << 2), behind);
  }
}

@inline
function mixFour(value: v128): v128 {
  let hash = i32x4.mul(v128.xor(value, i32x4.shr_u(value, 16)), i32x4.splat(MIX1));
  hash = i32x4.mul(v128.xor(hash, i32x4.shr_u(hash, 15)), i32x4.splat(MIX2));
  return v128.xor(hash, i32x4.shr_u(hash, 15));
}

/**
 * Puts the bits of two blocks into the words, or of one; `number` seeds those of the first that no key decides. Each bit waits
 * for those behind it, so that two blocks take little longer than one.
 */
function solve(
  rows: usize,
  others: usize,
  slots: u32,
  number: u32,
  words: usize,
  block: u32,
  otherMask: u64,
): void {
  const seed = mix(number);
  const otherSeed = mix(number + 1);
  let window: u64 = 0;
  let otherWindow: u64 = 0;
  for (let slot = <i32>slots - 1; slot >= 0; slot--) {
    const place = <usize>slot << 3;
    const bit = bitOf(load<u64>(rows + place), (window <<= 1), slot ^ seed);
    const otherBit = bitOf(load<u64>(others + place), (otherWindow <<= 1), slot ^ otherSeed);
    window |= bit;
    otherWindow |= otherBit;
    const word = (bit << block) | ((otherBit & otherMask) << (block + 1));
    store<u64>(words + place, load<u64>(words + place) | word);
  }
}

@inline
function bitOf(row: u64, window: u64, seed: u32): u64 {
  return row == 0 ? <u64>mix(seed) & 1 : popcnt(row & window) & 1;
}
