/**
 * Writes where the value of each row ends among the values copied together: that of row r is value `picks[r] - 1` of
 * `values`, or empty where that is 0. Returns the bytes of all, or -1 when a pick or an offset is out of range.
 */
export function placeValues(
  offsets: usize,
  values: u32,
  size: u32,
  picks: usize,
  rows: u32,
  ends: usize,
): f64 {
  let end: u64 = 0;
  store<u32>(ends, 0);
  for (let row: u32 = 0; row < rows; row++) {
    const slot = <usize>row << 2;
    const pick = load<u32>(picks + slot);
    if (pick > values) return -1;
    if (pick > 0) {
      const at = offsets + (<usize>pick << 2);
      const from = load<u32>(at - 4);
      const to = load<u32>(at);
      if (from > to || to > size) return -1;
      end += to - from;
    }
    store<u32>(ends + slot, <u32>end, 4);
  }
  return <f64>end;
}

/** Copies the values to where `placeValues` put them, 16 bytes at a time: what is copied too much is padding or overwritten. */
export function gatherValues(
  bytes: usize,
  offsets: usize,
  picks: usize,
  rows: u32,
  ends: usize,
  out: usize,
): void {
  for (let row: u32 = 0; row < rows; row++) {
    const slot = <usize>row << 2;
    const pick = load<u32>(picks + slot);
    if (pick == 0) continue;
    let from = bytes + load<u32>(offsets + (<usize>pick << 2) - 4);
    let to = out + load<u32>(ends + slot);
    const end = out + load<u32>(ends + slot, 4);
    for (; to < end; to += 16, from += 16) v128.store(to, v128.load(from));
  }
}
