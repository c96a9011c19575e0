/** A growing list of row ranges: range i is the rows `from[i] .. to[i])` of block `block[i]`. */
export class RowRanges {
  count = 0;
  block = new Uint32Array(64);
  from = new Uint32Array(64);
  to = new Uint32Array(64);

  clear(): void {
    this.count = 0;
  }

  push(block: number, from: number, to: number): void {
    if (this.count === this.block.length) this.#grow();
    const at = this.count++;
    this.block[at] = block;
    this.from[at] = from;
    this.to[at] = to;
  }

  /** Adds one row; extends the last range when the row follows it. */
  pushRow(block: number, row: number): void {
    const last = this.count - 1;
    if (last >= 0 && this.block[last] === block && this.to[last] === row) this.to[last] = row + 1;
    else this.push(block, row, row + 1);
  }

  emit(stream: number, sink: RowSink): void {
    for (let i = 0; i < this.count; i++) {
      sink.take(stream, this.block[i]!, this.from[i]!, this.to[i]!);
    }
  }

  #grow(): void {
    const twice = (old: Uint32Array) => {
      const grown = new Uint32Array(old.length * 2);
      grown.set(old);
      return grown;
    };
    this.block = twice(this.block);
    this.from = twice(this.from);
    this.to = twice(this.to);
  }
}

/** Takes rows in their final order: rows `from .. to)` of a block, all of one stream. */
export interface RowSink {
  take(stream: number, block: number, from: number, to: number): void;
}
