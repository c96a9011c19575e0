/**
 * The first index in [from, to) at which a condition holds, by halving; `to` where there is none. From the first one on it
 * must hold everywhere.
 */
export function firstIndex(from: number, to: number, holds: (index: number) => boolean): number {
  let low = from;
  let high = to;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (holds(middle)) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** The place of the first of some ascending numbers that is not below the wanted one, in [from, to) or `to`. */
export function lowerBound(
  ascending: ArrayLike<number>,
  wanted: number,
  from = 0,
  to = ascending.length,
): number {
  return firstIndex(from, to, (index) => ascending[index]! >= wanted);
}

/** The place of a number among ascending ones; -1 when it is not there. */
export function placeAmong(ascending: ArrayLike<number>, wanted: number): number {
  const place = lowerBound(ascending, wanted);
  return ascending[place] === wanted ? place : -1;
}
