const blockSize = 256;

/**
 * The heights of rows: one for all, or one for each where lines wrap. Those that were not measured yet count as one line.
 * Sums are kept by blocks of rows, so that a place is found without walking over all of them.
 */
export class Heights {
  readonly rowHeight: number;
  #own: number[] | undefined;
  #blocks: number[] = [];

  constructor(rowHeight: number, count?: number) {
    this.rowHeight = rowHeight;
    if (count === undefined) return;
    this.#own = [];
    this.grow(count);
  }

  grow(count: number): void {
    const own = this.#own;
    if (own === undefined) return;
    if (count < own.length) {
      own.length = 0;
      this.#blocks = [];
    }
    while (own.length < count) {
      const block = Math.floor(own.length / blockSize);
      own.push(this.rowHeight);
      this.#blocks[block] = (this.#blocks[block] ?? 0) + this.rowHeight;
    }
  }

  set(index: number, height: number): void {
    const own = this.#own;
    const old = own?.[index];
    if (own === undefined || old === undefined || old === height) return;
    own[index] = height;
    const block = Math.floor(index / blockSize);
    this.#blocks[block] = (this.#blocks[block] ?? 0) + height - old;
  }

  heightOf(index: number): number {
    return this.#own?.[index] ?? this.rowHeight;
  }

  topOf(index: number): number {
    const own = this.#own;
    if (own === undefined) return index * this.rowHeight;
    let top = 0;
    const block = Math.floor(index / blockSize);
    for (let at = 0; at < block; at++) top += this.#blocks[at] ?? 0;
    for (let at = block * blockSize; at < Math.min(index, own.length); at++) top += own[at]!;
    return top;
  }

  /** The row at a distance from the top. */
  indexAt(top: number): number {
    const own = this.#own;
    if (own === undefined) return Math.floor(top / this.rowHeight);
    let left = top;
    let block = 0;
    while (block < this.#blocks.length - 1 && left >= this.#blocks[block]!) {
      left -= this.#blocks[block]!;
      block++;
    }
    let at = block * blockSize;
    while (at < own.length - 1 && left >= own[at]!) {
      left -= own[at]!;
      at++;
    }
    return at;
  }
}
