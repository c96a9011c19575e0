/**
 * A window that moves forward over values and knows the value of each rank in it: a binary indexed tree counts the
 * values of the window by their place in the order of all values. Moving and asking take log(values) steps each.
 */
export class RankedWindow {
  /** Place of each value in `#sorted`, from 1. */
  readonly #place: Uint32Array;
  /** All values, NaN first. */
  readonly #sorted: Float64Array;
  readonly #tree: Uint32Array;
  readonly #highestStep: number;
  #from = 0;
  #to = 0;

  constructor(values: Float64Array) {
    const ascending = values.slice().sort();
    let numbers = ascending.length;
    while (numbers > 0 && Number.isNaN(ascending[numbers - 1])) numbers--;
    const nans = ascending.length - numbers;
    this.#sorted = new Float64Array(values.length).fill(Number.NaN, 0, nans);
    this.#sorted.set(ascending.subarray(0, numbers), nans);
    this.#place = Uint32Array.from(values, (value) => placeOf(this.#sorted, nans, value));
    this.#tree = new Uint32Array(values.length + 1);
    this.#highestStep = 2 ** Math.floor(Math.log2(Math.max(values.length, 1)));
  }

  /** Moves to the values from .. to - 1; neither end may go back. */
  move(from: number, to: number): void {
    if (from >= this.#to) {
      while (this.#from < this.#to) this.#add(this.#from++, -1);
      this.#from = from;
      this.#to = from;
    }
    while (this.#to < to) this.#add(this.#to++, 1);
    while (this.#from < from) this.#add(this.#from++, -1);
  }

  /** The value that has `rank` values of the window before it. */
  valueAt(rank: number): number {
    let place = 0;
    let left = rank;
    for (let step = this.#highestStep; step > 0; step >>>= 1) {
      const next = place + step;
      if (next < this.#tree.length && this.#tree[next]! <= left) {
        place = next;
        left -= this.#tree[next]!;
      }
    }
    return this.#sorted[place] as number;
  }

  #add(index: number, change: 1 | -1): void {
    for (let at = this.#place[index]!; at < this.#tree.length; at += at & -at) {
      this.#tree[at]! += change;
    }
  }
}

/** Equal values share the first of their places. */
function placeOf(sorted: Float64Array, nans: number, value: number): number {
  if (Number.isNaN(value)) return 1;
  let low = nans;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (sorted[middle]! < value) low = middle + 1;
    else high = middle;
  }
  return low + 1;
}
