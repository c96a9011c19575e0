/** Keeps the smallest `limit` of the numbers that are added, in memory for twice as many. */
export class BestKeys {
  /** Numbers above this are not among the smallest; it falls as numbers are added. */
  worst = Number.POSITIVE_INFINITY;
  readonly #limit: number;
  readonly #keys: Float64Array;
  #count = 0;

  constructor(limit: number) {
    this.#limit = limit;
    this.#keys = new Float64Array(limit * 2);
  }

  add(key: number): void {
    if (key > this.worst) return;
    this.#keys[this.#count++] = key;
    if (this.#count === this.#keys.length) this.#prune();
  }

  /** The largest of the smallest `limit`; undefined when fewer were added. */
  finish(): number | undefined {
    if (this.#count < this.#limit) return undefined;
    this.#prune();
    return this.worst;
  }

  #prune(): void {
    this.#keys.subarray(0, this.#count).sort();
    this.#count = this.#limit;
    this.worst = this.#keys[this.#limit - 1] as number;
  }
}
