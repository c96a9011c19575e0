/** Places in the shared words that every thread of the pool gets by the job `share`. */
export const counterPlaces = { threads: 0, checks: 1 } as const;

export interface ShareJob {
  /** Words in shared memory, by `counterPlaces`. */
  readonly counters: Int32Array;
  readonly threads: number;
}
