/** Count, mean and sum of squared differences from the mean of some values. */
export interface Moments {
  readonly count: number;
  readonly mean: number;
  readonly squares: number;
}

/** The moments of two sets of values together. */
export function joinMoments(a: Moments, b: Moments): Moments {
  if (a.count === 0) return b;
  if (b.count === 0) return a;
  const count = a.count + b.count;
  const delta = b.mean - a.mean;
  return {
    count,
    mean: a.mean + (delta * b.count) / count,
    squares: a.squares + b.squares + (delta * delta * a.count * b.count) / count,
  };
}
