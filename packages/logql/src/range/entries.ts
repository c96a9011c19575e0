/** The columns of one series of a MetricPartial. */
export interface Entries {
  readonly bucket: Uint32Array;
  readonly count: Float64Array;
  readonly value: Float64Array;
  readonly extra: Float64Array;
}

/** Value of the window that has the entries from .. to - 1 (at least one); windows are asked for in order. */
export type WindowFunction = (from: number, to: number, point: number) => number;
