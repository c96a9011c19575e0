const noRows = new Uint32Array(0);

/** Ordinals of refused rows, added in ascending order. */
export class DroppedRows {
  #rows = noRows;
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
    return this.#count === 0 ? noRows : this.#rows.slice(0, this.#count);
  }

  #grow(least: number): void {
    const longer = new Uint32Array(Math.max(64, this.#rows.length * 2, this.#count + least));
    longer.set(this.#rows);
    this.#rows = longer;
  }
}

/** The values of a column of rows without those of the dropped ones. */
export function withoutDropped(levels: Uint8Array, dropped: Uint32Array): Uint8Array {
  if (dropped.length === 0) return levels;
  const kept = new Uint8Array(levels.length - dropped.length);
  let count = 0;
  let cut = 0;
  for (let row = 0; row < levels.length; row++) {
    if (cut < dropped.length && dropped[cut] === row) cut++;
    else kept[count++] = levels[row]!;
  }
  return kept;
}
