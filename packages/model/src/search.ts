/** The place of the first of some ascending numbers that is not below the wanted one: how many of them are less. */
export function lowerBound(ascending: Uint32Array, wanted: number): number {
  let low = 0;
  let high = ascending.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (ascending[middle]! < wanted) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The place of a number among ascending ones; -1 when it is not there. */
export function placeAmong(ascending: Uint32Array, wanted: number): number {
  const place = lowerBound(ascending, wanted);
  return ascending[place] === wanted ? place : -1;
}
