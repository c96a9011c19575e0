import { floorDiv } from "@skald/model";
import type { LeafPlan } from "./plan.js";

/**
 * The part of a leaf that decides its buckets. Only times in [fromNs, toNs) are in one: a leaf that is scanned in parts
 * has the same windows in each part.
 */
export type WindowSpec = Pick<LeafPlan, "fromNs" | "toNs" | "windows">;

/**
 * Time cut at the edges of all windows of a leaf into buckets, numbered upwards, so that every window is a run of
 * whole buckets. There are at most four buckets per point.
 *
 * Long windows: the last begins before the first ends. A bucket lies between two begins, one between the last begin
 * and the first end, and one between two ends; the window of point p has the buckets p .. points - 1 + p.
 *
 * Short windows: begins lie at L + k * step, where L is the begin of the first, and ends lie `rest` = range mod step
 * behind a begin. With rest 0 a bucket is one step long; else a step has two buckets, cut at the end.
 */
export class WindowGrid {
  readonly bucketCount: number;
  readonly #spec: WindowSpec;
  readonly #isLong: boolean;
  /** Begin and exclusive end of the first window, ns since the epoch. */
  readonly #firstBegin: bigint;
  readonly #firstEnd: bigint;
  readonly #rest: bigint;
  /** Whole steps in the range. */
  readonly #steps: number;

  constructor(spec: WindowSpec) {
    const { startNs, stepNs, count, rangeNs } = spec.windows;
    this.#spec = spec;
    this.#firstBegin = startNs;
    this.#firstEnd = startNs + rangeNs;
    this.#isLong = rangeNs === 0n || rangeNs > stepNs * BigInt(count - 1);
    this.#rest = this.#isLong ? 0n : rangeNs % stepNs;
    this.#steps = this.#isLong ? 0 : Number(rangeNs / stepNs);
    this.bucketCount = rangeNs === 0n ? 0 : this.lastBucket(count - 1) + 1;
  }

  firstBucket(point: number): number {
    return this.#rest === 0n ? point : 2 * point;
  }

  /** Inclusive. */
  lastBucket(point: number): number {
    if (this.#isLong) return this.#spec.windows.count - 1 + point;
    return this.#rest === 0n ? point + this.#steps - 1 : 2 * (point + this.#steps);
  }

  /** A cursor over the times of a block. */
  cursor(baseNs: bigint): BucketCursor {
    const from = Number(this.#spec.fromNs - baseNs);
    const to = Number(this.#spec.toNs - baseNs);
    const locate = this.#isLong ? this.#locateLong(baseNs) : this.#locateShort(baseNs);
    return new BucketCursor({ locate, from, to, bucketCount: this.bucketCount });
  }

  #locateLong(baseNs: bigint): Locate {
    const { stepNs, count } = this.#spec.windows;
    const begins = new Edges(this.#firstBegin, stepNs, baseNs);
    const ends = new Edges(this.#firstEnd, stepNs, baseNs);
    const lastBegin = begins.at(count - 1);
    const firstEnd = ends.at(0);
    return (time, set) => {
      if (time < lastBegin) {
        const window = begins.lastUpTo(time);
        set(window, begins.at(window), begins.at(window + 1));
      } else if (time < firstEnd) {
        set(count - 1, lastBegin, firstEnd);
      } else {
        const window = ends.lastUpTo(time);
        set(count + window, ends.at(window), ends.at(window + 1));
      }
    };
  }

  #locateShort(baseNs: bigint): Locate {
    const { stepNs } = this.#spec.windows;
    const begins = new Edges(this.#firstBegin, stepNs, baseNs);
    const ends = new Edges(this.#firstBegin + this.#rest, stepNs, baseNs);
    const isCut = this.#rest !== 0n;
    const gap = this.#steps === 0;
    return (time, set) => {
      const step = begins.lastUpTo(time);
      const end = ends.at(step);
      if (!isCut) set(step, begins.at(step), begins.at(step + 1));
      else if (time < end) set(2 * step, begins.at(step), end);
      else set(gap ? -1 : 2 * step + 1, end, begins.at(step + 1));
    };
  }
}

/**
 * The times first + k * step, in ns since the base of a block. They are counted from the one next to the base, which
 * keeps those near the block exact however long a step is and however far the first one.
 */
class Edges {
  readonly #step: number;
  /** Number and time of the edge next to the base. */
  readonly #near: number;
  readonly #nearTime: number;

  constructor(firstNs: bigint, stepNs: bigint, baseNs: bigint) {
    // One point has no step, and needs none.
    const step = stepNs === 0n ? 1n : stepNs;
    const near = floorDiv(2n * (baseNs - firstNs) + step, 2n * step);
    this.#step = Number(stepNs);
    this.#near = Number(near);
    this.#nearTime = Number(firstNs + near * stepNs - baseNs);
  }

  at(edge: number): number {
    return this.#nearTime + (edge - this.#near) * this.#step;
  }

  /** The number of the last edge that is not behind a time. */
  lastUpTo(time: number): number {
    return this.#near + Math.floor((time - this.#nearTime) / this.#step);
  }
}

/** Sets the bucket of a time and the borders [low, high) of the bucket; all times in ns since the base of a block. */
type Locate = (time: number, set: (bucket: number, low: number, high: number) => void) => void;

interface Placement {
  readonly locate: Locate;
  /** Times outside [from, to) are in no bucket. */
  readonly from: number;
  readonly to: number;
  readonly bucketCount: number;
}

/** Finds the bucket of a time, and the times that share it, so that a loop over rows compares instead of dividing. */
export class BucketCursor {
  /** The bucket found last, -1 when the time is in none. */
  bucket = -1;
  /** Times t with low <= t < high have that bucket; ns since the base of the block. */
  low = 0;
  high = 0;
  readonly #placement: Placement;

  constructor(placement: Placement) {
    this.#placement = placement;
  }

  /** Moves to the bucket of a time given in ns since the base. */
  seek(time: number): void {
    const { from, to, locate } = this.#placement;
    if (time < from) this.#set(-1, Number.NEGATIVE_INFINITY, from);
    else if (time >= to) this.#set(-1, to, Number.POSITIVE_INFINITY);
    else locate(time, this.#setWithin);
  }

  /** Moves to the bucket of `first`; true when `last` shares it. */
  covers(first: number, last: number): boolean {
    if (!(first >= this.low && first < this.high)) this.seek(first);
    return last < this.high;
  }

  readonly #setWithin = (bucket: number, low: number, high: number): void => {
    const { from, to, bucketCount } = this.#placement;
    const isKnown = bucket >= 0 && bucket < bucketCount;
    this.#set(isKnown ? bucket : -1, Math.max(low, from), Math.min(high, to));
  };

  #set(bucket: number, low: number, high: number): void {
    this.bucket = bucket;
    this.low = low;
    this.high = high;
  }
}
