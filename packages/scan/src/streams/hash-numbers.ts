const initialSize = 1024;

/** The hashes whose second number has this remainder. */
export interface HashPart {
  readonly index: number;
  readonly count: number;
}

export const allHashes: HashPart = { index: 0, count: 1 };

/** Numbers by hashes of two 32-bit numbers each: a table with open addressing that is at most half full. */
export class HashNumbers {
  #size = 0;
  /** The hash of each slot, and its number plus one. */
  #slots = new Uint32Array(3 * initialSize);
  #mask = initialSize - 1;

  get size(): number {
    return this.#size;
  }

  /** Makes room for so many more. */
  reserve(more: number): void {
    while (2 * (this.#size + more) > this.#mask) this.#grow();
  }

  /** The number of a hash; where it has none, it gets the next one, which is the size before. */
  numberOf(first: number, second: number): number {
    if (2 * this.#size > this.#mask) this.#grow();
    return this.#place(first, second);
  }

  #place(first: number, second: number): number {
    const slots = this.#slots;
    let slot = first & this.#mask;
    for (;;) {
      const at = 3 * slot;
      const number = slots[at + 2]!;
      if (number === 0) {
        slots[at] = first;
        slots[at + 1] = second;
        slots[at + 2] = ++this.#size;
        return this.#size - 1;
      }
      if (slots[at] === first && slots[at + 1] === second) return number - 1;
      slot = (slot + 1) & this.#mask;
    }
  }

  #grow(): void {
    const old = this.#slots;
    const size = 2 * (this.#mask + 1);
    this.#slots = new Uint32Array(3 * size);
    this.#mask = size - 1;
    for (let at = 0; at < old.length; at += 3) {
      if (old[at + 2] === 0) continue;
      let slot = old[at]! & this.#mask;
      while (this.#slots[3 * slot + 2] !== 0) slot = (slot + 1) & this.#mask;
      this.#slots[3 * slot] = old[at]!;
      this.#slots[3 * slot + 1] = old[at + 1]!;
      this.#slots[3 * slot + 2] = old[at + 2]!;
    }
  }
}

/** Distinct streams by their hashes. */
export class StreamHashes {
  readonly #known = new HashNumbers();
  readonly #hashes: number[] = [];

  get count(): number {
    return this.#known.size;
  }

  add(first: number, second: number): void {
    const { size } = this.#known;
    if (this.#known.numberOf(first, second) === size) this.#hashes.push(first, second);
  }

  /** Two numbers for each. */
  take(): Uint32Array {
    return Uint32Array.from(this.#hashes);
  }
}
