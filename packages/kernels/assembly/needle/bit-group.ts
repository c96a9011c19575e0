import { packBits } from "./ribbon";

/**
 * Lays the bits of up to 64 blocks, `slots` (a multiple of 64) of each in `blocks` maps that stand one behind the other, slot by slot:
 * `bits` gets bit `slot * blocks + i` for block i. `words` has room for 8 bytes a slot.
 */
export function groupNeedleBits(maps: usize, blocks: u32, slots: u32, words: usize, bits: usize): void {
  const size = <usize>slots >> 3;
  for (let at: usize = 0; at < size; at += 8) {
    const to = words + (at << 6);
    for (let i: u32 = 0; i < blocks; i++) {
      store<u64>(to + (<usize>i << 3), load<u64>(maps + <usize>i * size + at));
    }
    if (blocks < 64) memory.fill(to + (<usize>blocks << 3), 0, <usize>(64 - blocks) << 3);
    transpose(to);
  }
  packBits(words, slots, blocks, bits);
}

/** Turns 64 words: bit i of word j becomes bit j of word i. */
function transpose(words: usize): void {
  let mask: u64 = 0xffffffff;
  for (let width: usize = 32; width != 0; width >>= 1, mask ^= mask << width) {
    for (let k: usize = 0; k < 64; k = ((k | width) + 1) & ~width) {
      const one = words + (k << 3);
      const two = words + ((k | width) << 3);
      const low = load<u64>(one);
      const high = load<u64>(two);
      const swap = ((low >> width) ^ high) & mask;
      store<u64>(one, low ^ (swap << width));
      store<u64>(two, high ^ swap);
    }
  }
}
