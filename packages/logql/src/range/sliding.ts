/**
 * Folds windows that move forward over a list of items, each item combined a bounded number of times however wide
 * the windows are, and without subtraction: sums keep their precision, NaN and infinities leave with their item.
 *
 * Items before `#middle` are folded from the right, once when the window reaches them; later ones from the left.
 */
export class SlidingFold<T> {
  readonly #item: (i: number) => T;
  readonly #combine: (a: T, b: T) => T;
  /** `#suffixes[i]` folds the items i .. #middle - 1. */
  readonly #suffixes: T[];
  #middle = 0;
  /** Folds the items #middle .. #end - 1; undefined when there are none. */
  #tail: T | undefined;
  #end = 0;

  constructor(length: number, item: (i: number) => T, combine: (a: T, b: T) => T) {
    this.#item = item;
    this.#combine = combine;
    this.#suffixes = new Array<T>(length);
  }

  /** The fold of the items from .. to - 1, at least one; neither end may go back. */
  fold(from: number, to: number): T {
    if (from >= this.#middle) this.#turn(from, to);
    for (; this.#end < to; this.#end++) {
      const item = this.#item(this.#end);
      this.#tail = this.#tail === undefined ? item : this.#combine(this.#tail, item);
    }
    const head = this.#suffixes[from] as T;
    return this.#tail === undefined ? head : this.#combine(head, this.#tail);
  }

  #turn(from: number, to: number): void {
    let folded = this.#item(to - 1);
    this.#suffixes[to - 1] = folded;
    for (let i = to - 2; i >= from; i--) {
      folded = this.#combine(this.#item(i), folded);
      this.#suffixes[i] = folded;
    }
    this.#middle = to;
    this.#end = to;
    this.#tail = undefined;
  }
}
