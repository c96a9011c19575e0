/**
 * The q-quantile of some values, by linear interpolation between the two nearest ranks; NaN sorts before every
 * number. -Inf for q below 0, +Inf above 1. Reorders the values.
 */
export function quantileOf(q: number, values: Float64Array): number {
  if (Number.isNaN(q) || values.length === 0) return Number.NaN;
  if (q < 0) return Number.NEGATIVE_INFINITY;
  if (q > 1) return Number.POSITIVE_INFINITY;
  const nans = moveNansToFront(values);
  const rank = q * (values.length - 1);
  const lower = Math.floor(rank);
  const upper = Math.min(lower + 1, values.length - 1);
  const weight = rank - lower;
  const below = lower < nans ? Number.NaN : select(values, lower, nans);
  const above = upper === lower ? below : leastFrom(values, upper, nans);
  return below * (1 - weight) + above * weight;
}

function moveNansToFront(values: Float64Array): number {
  let nans = 0;
  for (let i = 0; i < values.length; i++) {
    const value = values[i] as number;
    if (!Number.isNaN(value)) continue;
    values[i] = values[nans] as number;
    values[nans++] = value;
  }
  return nans;
}

/** The value of a rank among the values from `low` on; afterwards no value behind that place is smaller. */
function select(values: Float64Array, rank: number, low: number): number {
  let left = low;
  let right = values.length - 1;
  while (left < right) {
    const pivot = medianOfThree(values, left, right);
    let i = left - 1;
    let j = right + 1;
    for (;;) {
      do i++;
      while ((values[i] as number) < pivot);
      do j--;
      while ((values[j] as number) > pivot);
      if (i >= j) break;
      swap(values, i, j);
    }
    if (rank <= j) right = j;
    else left = j + 1;
  }
  return values[rank] as number;
}

function leastFrom(values: Float64Array, from: number, nans: number): number {
  if (from < nans) return Number.NaN;
  let least = Number.POSITIVE_INFINITY;
  for (let i = from; i < values.length; i++) least = Math.min(least, values[i] as number);
  return least;
}

function medianOfThree(values: Float64Array, left: number, right: number): number {
  const a = values[left] as number;
  const b = values[(left + right) >>> 1] as number;
  const c = values[right] as number;
  return Math.max(Math.min(a, b), Math.min(Math.max(a, b), c));
}

function swap(values: Float64Array, i: number, j: number): void {
  const value = values[i] as number;
  values[i] = values[j] as number;
  values[j] = value;
}
