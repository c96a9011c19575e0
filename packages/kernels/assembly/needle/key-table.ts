/**
 * Tables of distinct keys. One is described by four words: u32 address of zeroed slots, u32 number of slots (a power of two), u32
 * address of the keys (room for as many as slots), u32 count.
 */

/**
 * Looks keys up in a table and writes those that are new behind its others; false when it is too full. Most plain keys
 * are known. Whether another one is cannot be foretold, so both cases do the same, and only a collision takes another way.
 */
@inline
function insert(table: usize, from: usize, to: usize, expectsKnown: bool): bool {
  const slots = <usize>load<u32>(table);
  const size = load<u32>(table, 4);
  const mask = size - 1;
  const keys = <usize>load<u32>(table, 8);
  const start = load<u32>(table, 12);
  let count = start;
  if (start + <u32>((to - from) >> 2) > <u32>((<u64>size * 7) / 10)) return false;
  for (let at = from; at < to; at += 4) {
    const raw = load<u32>(at);
    // 0 becomes 1
    const key = raw + u32(raw == 0);
    let slot = slots + (<usize>(key & mask) << 2);
    let found = load<u32>(slot);
    if (expectsKnown && found == key) continue;
    if (i32(found != 0) & i32(found != key)) {
      let next = key & mask;
      do {
        next = (next + 1) & mask;
        slot = slots + (<usize>next << 2);
        found = load<u32>(slot);
      } while (found != 0 && found != key);
    }
    store<u32>(slot, key);
    store<u32>(keys + (<usize>count << 2), key);
    count += u32(found == 0);
  }
  store<u32>(table, count, 12);
  return true;
}

export function insertPlain(table: usize, from: usize, to: usize): bool {
  return insert(table, from, to, true);
}

export function insertMixed(table: usize, from: usize, to: usize): bool {
  return insert(table, from, to, false);
}
