/** Ordinals of refused rows, added in ascending order. */
export class DroppedRows {
  #rows = new Uint32Array(0);
  #count = 0;

  get count(): number {
    return this.#count;
  }

  add(row: number): void {
    if (this.#count === this.#rows.length) this.#grow(1);
    this.#rows[this.#count++] = row;
  }

  /** Adds the rows `from .. to`, the end excluded. */
  addRange(from: number, to: number): void {
    if (this.#count + to - from > this.#rows.length) this.#grow(to - from);
    for (let row = from; row < to; row++) this.#rows[this.#count++] = row;
  }

  finish(): Uint32Array {
    return this.#rows.slice(0, this.#count);
  }

  #grow(least: number): void {
    const longer = new Uint32Array(Math.max(64, this.#rows.length * 2, this.#count + least));
    longer.set(this.#rows);
    this.#rows = longer;
  }
}
