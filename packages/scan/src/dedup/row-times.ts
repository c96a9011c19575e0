const initialRows = 256;

/** Rows of one stream with their times and places, in columns; ascending in time after `sort`. */
export class RowTimes {
  count = 0;
  #time = new Float64Array(initialRows);
  #block = new Uint32Array(initialRows);
  #row = new Uint32Array(initialRows);
  #ascends = true;

  push(time: number, block: number, row: number): void {
    if (this.count === this.#time.length) this.#grow();
    const at = this.count++;
    if (at > 0 && time < (this.#time[at - 1] as number)) this.#ascends = false;
    this.#time[at] = time;
    this.#block[at] = block;
    this.#row[at] = row;
  }

  /** Orders the rows by time; sealed rows already are. */
  sort(): void {
    if (this.#ascends) return;
    const time = this.#time;
    const order = Uint32Array.from({ length: this.count }, (_, i) => i);
    order.sort((a, b) => (time[a] as number) - (time[b] as number) || a - b);
    this.#time = Float64Array.from(order, (at) => time[at] as number);
    const block = this.#block;
    this.#block = order.map((at) => block[at] as number);
    const row = this.#row;
    this.#row = order.map((at) => row[at] as number);
    this.#ascends = true;
  }

  timeAt(at: number): number {
    return this.#time[at] as number;
  }

  blockAt(at: number): number {
    return this.#block[at] as number;
  }

  rowAt(at: number): number {
    return this.#row[at] as number;
  }

  /** The place behind the last row with the time of the row at `from`. */
  endOfTie(from: number): number {
    let end = from + 1;
    while (end < this.count && this.#time[end] === this.#time[from]) end++;
    return end;
  }

  #grow(): void {
    const length = this.#time.length * 2;
    const time = new Float64Array(length);
    time.set(this.#time);
    this.#time = time;
    this.#block = grown(this.#block, length);
    this.#row = grown(this.#row, length);
  }
}

function grown(from: Uint32Array, length: number): Uint32Array<ArrayBuffer> {
  const to = new Uint32Array(length);
  to.set(from);
  return to;
}
