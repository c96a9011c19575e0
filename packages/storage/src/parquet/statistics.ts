import type { Bounds } from "./footer.js";

/** Longer values are no bounds: readers keep those of all chunks in memory. */
const maxBoundBytes = 64;

/** Least and greatest of the values of a chunk, as unsigned bytes, for a column without bounds of pages. */
export class ValueBounds {
  #min: Uint8Array | undefined;
  #max: Uint8Array | undefined;

  /** Adds `count` values that lie one behind the other. */
  add(bytes: Uint8Array, lengths: ArrayLike<number>, count: number): void {
    let at = 0;
    for (let i = 0; i < count; i++) {
      const end = at + lengths[i]!;
      if (this.#min === undefined || compare(bytes, at, end, this.#min) < 0)
        this.#min = bytes.slice(at, end);
      if (this.#max === undefined || compare(bytes, at, end, this.#max) > 0)
        this.#max = bytes.slice(at, end);
      at = end;
    }
  }

  /** Undefined when there are no values, or one of the two is long. */
  get bounds(): Bounds | undefined {
    const [min, max] = [this.#min, this.#max];
    if (min === undefined || max === undefined) return undefined;
    return Math.max(min.length, max.length) > maxBoundBytes ? undefined : { min, max, pages: [] };
  }

  clear(): void {
    this.#min = undefined;
    this.#max = undefined;
  }
}

function compare(bytes: Uint8Array, from: number, to: number, other: Uint8Array): number {
  const shared = Math.min(to - from, other.length);
  for (let i = 0; i < shared; i++) {
    const difference = bytes[from + i]! - other[i]!;
    if (difference !== 0) return difference;
  }
  return to - from - other.length;
}

/**
 * Whether rows ascend by some columns. `ranks` has for each column the place of the value of each run of rows among the sorted values;
 * nulls are last.
 */
export function areSorted(ranks: readonly ArrayLike<number>[], runs: number): boolean {
  for (let run = 1; run < runs; run++) {
    const column = ranks.find((one) => one[run] !== one[run - 1]);
    if (column !== undefined && column[run]! < column[run - 1]!) return false;
  }
  return true;
}
