/**
 * Steps that the times of a day may be cut into, ns: windows of queries begin and end at multiples of the small one most often. A slice of a
 * step holds the times behind its begin up to its end, as windows do.
 */
export const sliceStepsNs = [5_000_000_000, 60_000_000_000] as const;

/** The rows of a run by slices of time: those of slice `first + i`, of times `> (first + i) * stepNs`, stand at `from + i`. */
export interface TimeSlices {
  readonly stepNs: number;
  readonly first: number;
  /** Of many runs; those of this one are `from .. to)`. */
  readonly rows: Uint32Array;
  /** Bytes of the lines. */
  readonly lineBytes: Uint32Array;
  readonly from: number;
  readonly to: number;
}

/** The slice of a time, ns since the begin of the day. */
export function sliceOf(time: number, stepNs: number): number {
  return Math.ceil(time / stepNs) - 1;
}

/** Whether every window of a query, `[startNs, startNs + rangeNs)` and so many steps later, is made of whole slices. */
export function areSliced(startNs: bigint, stepNs: bigint, rangeNs: bigint): boolean {
  const slice = BigInt(sliceStepsNs[0]);
  return [startNs - 1n, stepNs, rangeNs].every((ns) => ns % slice === 0n);
}
