import { grown } from "@skald/kernels";

const initialSlots = 512;

/**
 * Finds entries by their hashes: open addressing over entries numbered from 0 in the order of `add`. The keys stay with
 * the caller, which compares them: `for (let e = index.first(hash); e >= 0; e = index.next()) if (isEqual(e)) ...`.
 */
export class HashIndex {
  count = 0;
  /** Entry + 1; 0 = free. At most half of them are taken. */
  #slots = new Int32Array(initialSlots);
  /** By entry. */
  #hashes = new Int32Array(initialSlots / 2);
  #hash = 0;
  #slot = 0;

  /** The first entry that may have the key of this hash (32 bits, well mixed), or -1. */
  first(hash: number): number {
    this.#hash = hash;
    this.#slot = hash & (this.#slots.length - 1);
    return this.#slots[this.#slot]! - 1;
  }

  /** The next entry that may have the key of the last `first`, or -1. */
  next(): number {
    this.#slot = (this.#slot + 1) & (this.#slots.length - 1);
    return this.#slots[this.#slot]! - 1;
  }

  /** True when the entry has the hash of the last `first`: worth asking before long keys are compared. */
  hasHash(entry: number): boolean {
    return this.#hashes[entry] === (this.#hash | 0);
  }

  /** Adds the key of the last `first`, once that or `next` answered -1; answers its number. */
  add(): number {
    const entry = this.count++;
    this.#slots[this.#slot] = entry + 1;
    this.#hashes[entry] = this.#hash;
    if (this.count === this.#hashes.length) this.#grow();
    return entry;
  }

  #grow(): void {
    this.#hashes = grown(this.#hashes, this.#hashes.length * 2);
    const slots = new Int32Array(this.#slots.length * 2);
    const mask = slots.length - 1;
    for (let entry = 0; entry < this.count; entry++) {
      let slot = this.#hashes[entry]! & mask;
      while (slots[slot] !== 0) slot = (slot + 1) & mask;
      slots[slot] = entry + 1;
    }
    this.#slots = slots;
  }
}
