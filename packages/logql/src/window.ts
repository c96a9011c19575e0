import { floorDiv } from "@skald/model";

/** The part of a leaf that decides its windows: points t, and windows (t - offset - range, t - offset]. */
export interface WindowSpec {
  readonly points: {
    readonly startNs: bigint;
    readonly stepNs: bigint;
    readonly count: number;
  };
  readonly rangeNs: bigint;
  readonly offsetNs: bigint;
}

/**
 * Time cut at the edges of all windows of a leaf into buckets, numbered upwards, so that every window is a run of
 * whole buckets.
 *
 * Windows begin every step at L + k * step, where L is the begin of the first. Their ends lie `rest` = range mod step
 * behind such a begin. With rest 0 a bucket is one step long; else each step has two buckets: up to the end of a
 * window, and behind it.
 */
export class WindowGrid {
  readonly bucketCount: number;
  /** Begin of the first window, ns since the epoch: exclusive. */
  readonly #lowNs: bigint;
  readonly #stepNs: bigint;
  readonly #rest: bigint;
  /** Whole steps in the range. */
  readonly #steps: number;

  constructor({ points, rangeNs, offsetNs }: WindowSpec) {
    const stepNs = points.count === 1 ? rangeNs : points.stepNs;
    this.#stepNs = stepNs > 0n ? stepNs : 1n;
    this.#lowNs = points.startNs - offsetNs - rangeNs;
    this.#rest = rangeNs % this.#stepNs;
    this.#steps = Number(rangeNs / this.#stepNs);
    this.bucketCount = rangeNs === 0n ? 0 : this.lastBucket(points.count - 1) + 1;
  }

  firstBucket(point: number): number {
    return this.#rest === 0n ? point : 2 * point;
  }

  /** Inclusive; below the first when the range is 0. */
  lastBucket(point: number): number {
    return this.#rest === 0n ? point + this.#steps - 1 : 2 * (point + this.#steps);
  }

  /** A cursor over the times of a block. */
  cursor(baseNs: bigint): BucketCursor {
    return new BucketCursor(this.#placement(baseNs));
  }

  /** Distances are counted from the edge next to the base, which keeps them exact however long a step is. */
  #placement(baseNs: bigint): Placement {
    const distance = baseNs - this.#lowNs;
    let period = floorDiv(distance, this.#stepNs);
    let sinceEdge = distance - period * this.#stepNs;
    if (sinceEdge * 2n > this.#stepNs) {
      period += 1n;
      sinceEdge -= this.#stepNs;
    }
    return {
      period: Number(period),
      sinceEdge: Number(sinceEdge),
      step: Number(this.#stepNs),
      rest: Number(this.#rest),
      usesTail: this.#steps > 0,
      bucketCount: this.bucketCount,
    };
  }
}

interface Placement {
  /** Number of the step that begins at the edge. */
  readonly period: number;
  /** ns from the edge to the base of the block; negative when the edge is behind the base. */
  readonly sinceEdge: number;
  readonly step: number;
  readonly rest: number;
  /** False when windows do not touch: what lies between two is then in no bucket. */
  readonly usesTail: boolean;
  readonly bucketCount: number;
}

/** Finds the bucket of a time, and the times that share it, so that a loop over rows compares instead of dividing. */
export class BucketCursor {
  /** The bucket found last, -1 when the time is in none. */
  bucket = -1;
  /** Times t with low < t <= high have that bucket; ns since the base of the block. */
  low = 0;
  high = 0;
  readonly #placement: Placement;

  constructor(placement: Placement) {
    this.#placement = placement;
  }

  /** Moves to the bucket of a time given in ns since the base. */
  seek(time: number): void {
    const { period, sinceEdge, step, rest, usesTail, bucketCount } = this.#placement;
    const steps = Math.ceil((time + sinceEdge) / step) - 1;
    this.low = steps * step - sinceEdge;
    this.high = this.low + step;
    let bucket = period + steps;
    if (rest !== 0) {
      const end = this.low + rest;
      bucket *= 2;
      if (time <= end) {
        this.high = end;
      } else {
        this.low = end;
        bucket = usesTail ? bucket + 1 : -1;
      }
    }
    this.bucket = bucket >= 0 && bucket < bucketCount ? bucket : -1;
  }

  /** Moves to the bucket of `first`; true when `last` shares it. */
  covers(first: number, last: number): boolean {
    this.seek(first);
    return last <= this.high;
  }
}
