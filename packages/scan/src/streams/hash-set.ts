const initialSize = 1024;

/** Hashes of two 32-bit numbers each: a table with open addressing that is at most half full. */
export class HashSet {
  #size = 0;
  #slots = new Uint32Array(2 * initialSize);
  #used = new Uint8Array(initialSize);

  get size(): number {
    return this.#size;
  }

  /** False when it is there already. */
  add(first: number, second: number): boolean {
    if (2 * this.#size >= this.#used.length) this.#grow();
    const mask = this.#used.length - 1;
    let slot = first & mask;
    while (this.#used[slot] === 1) {
      if (this.#slots[2 * slot] === first && this.#slots[2 * slot + 1] === second) return false;
      slot = (slot + 1) & mask;
    }
    this.#used[slot] = 1;
    this.#slots[2 * slot] = first;
    this.#slots[2 * slot + 1] = second;
    this.#size++;
    return true;
  }

  #grow(): void {
    const slots = this.#slots;
    const used = this.#used;
    this.#slots = new Uint32Array(2 * slots.length);
    this.#used = new Uint8Array(2 * used.length);
    this.#size = 0;
    for (let slot = 0; slot < used.length; slot++) {
      if (used[slot] === 1) this.add(slots[2 * slot]!, slots[2 * slot + 1]!);
    }
  }
}
