import { tooManyCells } from "../../plan/limits.js";
import type { LeafMode } from "../../plan/plan.js";

const initialCells = 256;
/** Ids below this are remembered while rows of one bucket are added. */
const maxRememberedIds = 8192;

/**
 * Accumulators by series and bucket, only for the pairs that have rows: a hash table with open addressing whose
 * columns grow together. A cell keeps its number.
 */
export class CellTable {
  count = 0;
  series = new Uint32Array(initialCells);
  bucket = new Uint32Array(initialCells);
  /** Rows, and what the mode keeps besides; see MetricPartial. */
  rows = new Float64Array(initialCells);
  /** Has a length only in modes that use it; so has `extra`. */
  value: Float64Array;
  extra: Float64Array;
  /** Cell number + 1 by hash; 0 = free. Twice as long as the columns at least. */
  #slots = new Uint32Array(initialCells * 2);
  readonly #maxCells: number;
  /** `#cellOfId[id]` is meant while `#stamps[id]` is the present stamp, which changes with the bucket. */
  readonly #stamps = new Float64Array(maxRememberedIds);
  readonly #cellOfId = new Uint32Array(maxRememberedIds);
  #rememberedBucket = -1;
  #stamp = 0;

  constructor(mode: LeafMode, maxCells: number) {
    this.#maxCells = maxCells;
    const hasValue = mode !== "count" && mode !== "samples";
    this.value = new Float64Array(hasValue ? initialCells : 0);
    this.extra = new Float64Array(hasExtra(mode) ? initialCells : 0);
  }

  /** The cell of a pair; a new one has `rows` 0. */
  find(series: number, bucket: number): number {
    const mask = this.#slots.length - 1;
    let at = hash(series, bucket) & mask;
    for (;;) {
      const cell = (this.#slots[at] as number) - 1;
      if (cell < 0) return this.#add(series, bucket, at);
      if (this.series[cell] === series && this.bucket[cell] === bucket) return cell;
      at = (at + 1) & mask;
    }
  }

  /**
   * The cell of a row whose series is known by another id: rows of one bucket in any mix of series find theirs without
   * hashing. Call `startRows` before, wherever ids may mean other series than before.
   */
  findById(id: number, bucket: number, seriesOf: (id: number) => number): number {
    if (bucket !== this.#rememberedBucket) {
      this.#rememberedBucket = bucket;
      this.#stamp++;
    }
    if (this.#stamps[id] === this.#stamp) return this.#cellOfId[id] as number;
    const cell = this.find(seriesOf(id), bucket);
    if (id < maxRememberedIds) {
      this.#stamps[id] = this.#stamp;
      this.#cellOfId[id] = cell;
    }
    return cell;
  }

  startRows(): void {
    this.#rememberedBucket = -1;
  }

  /** Cell numbers ordered by series, then bucket. */
  order(): Uint32Array {
    const { count, series, bucket } = this;
    let width = 1;
    for (let i = 0; i < count; i++) width = Math.max(width, (bucket[i] as number) + 1);
    // Plain numbers sort several times faster than cells through a comparison.
    const keys = new Float64Array(count);
    for (let i = 0; i < count; i++) keys[i] = (series[i] as number) * width + (bucket[i] as number);
    keys.sort();
    const order = new Uint32Array(count);
    for (let i = 0; i < count; i++) {
      const key = keys[i] as number;
      const owner = Math.floor(key / width);
      order[i] = this.find(owner, key - owner * width);
    }
    return order;
  }

  #add(series: number, bucket: number, at: number): number {
    const cell = this.count;
    if (cell >= this.#maxCells) throw tooManyCells(this.#maxCells);
    if (cell === this.series.length) {
      this.#grow();
      return this.find(series, bucket);
    }
    this.#slots[at] = cell + 1;
    this.series[cell] = series;
    this.bucket[cell] = bucket;
    this.count = cell + 1;
    return cell;
  }

  #grow(): void {
    const length = this.series.length * 2;
    this.series = grownWords(this.series, length);
    this.bucket = grownWords(this.bucket, length);
    this.rows = grownNumbers(this.rows, length);
    if (this.value.length > 0) this.value = grownNumbers(this.value, length);
    if (this.extra.length > 0) this.extra = grownNumbers(this.extra, length);
    const slots = new Uint32Array(length * 2);
    const mask = slots.length - 1;
    for (let cell = 0; cell < this.count; cell++) {
      let at = hash(this.series[cell] as number, this.bucket[cell] as number) & mask;
      while (slots[at] !== 0) at = (at + 1) & mask;
      slots[at] = cell + 1;
    }
    this.#slots = slots;
  }
}

/** True when a cell has more than its rows and one value. */
export function hasExtra(mode: LeafMode): boolean {
  return mode === "moments" || mode === "first" || mode === "last";
}

export function grownWords(array: Uint32Array, length: number): Uint32Array<ArrayBuffer> {
  const grown = new Uint32Array(length);
  grown.set(array);
  return grown;
}

export function grownNumbers(array: Float64Array, length: number): Float64Array<ArrayBuffer> {
  const grown = new Float64Array(length);
  grown.set(array);
  return grown;
}

function hash(series: number, bucket: number): number {
  const mixed = Math.imul(series, 0x9e3779b1) ^ Math.imul(bucket + 1, 0x85ebca6b);
  return mixed ^ (mixed >>> 15);
}
