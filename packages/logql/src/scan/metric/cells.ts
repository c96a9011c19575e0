import { grown } from "@skald/kernels";
import { HashIndex } from "../../pipeline/intern/hash-index.js";
import { tooManyCells } from "../../plan/limits.js";
import type { LeafMode } from "../../plan/plan.js";

const initialCells = 256;
/** Ids below this are remembered while rows of one bucket are added. */
const maxRememberedIds = 8192;
const noStamps = new Float64Array(0);
const noCells = new Uint32Array(0);

/**
 * Accumulators by series and bucket, only for the pairs that have rows: a hash table whose columns grow
 * together. A cell keeps its number.
 */
export class CellTable {
  count = 0;
  series = new Uint32Array(initialCells);
  bucket = new Uint32Array(initialCells);
  /** Rows, and what the mode keeps besides; see MetricPartial. */
  rows = new Float64Array(initialCells);
  /** Has a length only in modes that use it; so have `extra` and `stream`. */
  value: Float64Array;
  extra: Float64Array;
  stream: Float64Array;
  readonly #index = new HashIndex();
  readonly #maxCells: number;
  /** `#cellOfId[id]` is meant while `#stamps[id]` is the present stamp, which changes with the bucket. */
  #stamps = noStamps;
  #cellOfId = noCells;
  #rememberedBucket = -1;
  #stamp = 0;

  constructor(mode: LeafMode, maxCells: number) {
    this.#maxCells = maxCells;
    const hasValue = mode !== "count" && mode !== "samples";
    this.value = new Float64Array(hasValue ? initialCells : 0);
    this.extra = new Float64Array(hasExtra(mode) ? initialCells : 0);
    this.stream = new Float64Array(keepsEnd(mode) ? initialCells : 0);
  }

  /** The cell of a pair; a new one has `rows` 0. */
  find(series: number, bucket: number): number {
    let cell = this.#index.first(hash(series, bucket));
    while (cell >= 0 && (this.series[cell] !== series || this.bucket[cell] !== bucket)) {
      cell = this.#index.next();
    }
    return cell >= 0 ? cell : this.#add(series, bucket);
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
    const isRemembered = id < this.#stamps.length && this.#stamps[id] === this.#stamp;
    if (isRemembered) return this.#cellOfId[id]!;
    const cell = this.find(seriesOf(id), bucket);
    if (id < maxRememberedIds) {
      if (id >= this.#stamps.length) this.#remember(id);
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
    for (let i = 0; i < count; i++) width = Math.max(width, bucket[i]! + 1);
    // Plain numbers sort several times faster than cells through a comparison.
    const keys = new Float64Array(count);
    for (let i = 0; i < count; i++) keys[i] = series[i]! * width + bucket[i]!;
    keys.sort();
    const order = new Uint32Array(count);
    for (let i = 0; i < count; i++) {
      const key = keys[i]!;
      const owner = Math.floor(key / width);
      order[i] = this.find(owner, key - owner * width);
    }
    return order;
  }

  #add(series: number, bucket: number): number {
    if (this.count >= this.#maxCells) throw tooManyCells(this.#maxCells);
    if (this.count === this.series.length) this.#grow();
    const cell = this.#index.add();
    this.series[cell] = series;
    this.bucket[cell] = bucket;
    this.count = cell + 1;
    return cell;
  }

  #remember(id: number): void {
    const length = Math.min(maxRememberedIds, Math.max(64, 2 ** Math.ceil(Math.log2(id + 1))));
    this.#stamps = grown(this.#stamps, length);
    this.#cellOfId = grown(this.#cellOfId, length);
  }

  #grow(): void {
    const length = this.series.length * 2;
    this.series = grown(this.series, length);
    this.bucket = grown(this.bucket, length);
    this.rows = grown(this.rows, length);
    if (this.value.length > 0) this.value = grown(this.value, length);
    if (this.extra.length > 0) this.extra = grown(this.extra, length);
    if (this.stream.length > 0) this.stream = grown(this.stream, length);
  }
}

/** True when a cell has more than its rows and one value. */
export function hasExtra(mode: LeafMode): boolean {
  return mode === "moments" || keepsEnd(mode);
}

/** True when a cell is one of its rows. */
export function keepsEnd(mode: LeafMode): boolean {
  return mode === "first" || mode === "last";
}

function hash(series: number, bucket: number): number {
  const mixed = Math.imul(series, 0x9e3779b1) ^ Math.imul(bucket + 1, 0x85ebca6b);
  return mixed ^ (mixed >>> 15);
}
