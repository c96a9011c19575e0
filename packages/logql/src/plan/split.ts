import { floorDiv, fnv1a32 } from "@skald/model";
import type { MetricExpr } from "../syntax/ast.js";
import type { LeafPlan, Shard } from "./plan.js";

/**
 * How a query is cut into parts that are scanned on their own, in other threads or processes.
 *
 * Partials of any division of the rows merge into what one scan gives, whatever the aggregation: sums, extremes,
 * moments and samples all combine. So every leaf may be split by time and sharded by stream, and only the cost decides; partials of mode `samples` are as big as the rows, so cutting them finely does not pay.
 * What comes behind the leaves (vector aggregation, matching) is never split, only cut by points, each of which depends
 * on its own windows alone.
 */
export interface SplitOptions {
  /** Parts end at multiples of this since the epoch; 0n: not split by time. */
  readonly intervalNs: bigint;
  /** Number of shards of each part; 1: not sharded. */
  readonly shards: number;
}

/** Cuts a leaf. Give the partials of all parts, in this order, to `mergeMetricPartials` of the whole leaf. */
export function splitLeaf(leaf: LeafPlan, options: SplitOptions): LeafPlan[] {
  return rangesOf(leaf.fromNs, leaf.toNs, options.intervalNs).flatMap(([fromNs, toNs]) =>
    shardsOf(leaf, options.shards).map((shard) => ({ ...leaf, ...shard, fromNs, toNs })),
  );
}

/** True for the streams of a shard, by canonical label text; without a shard for all. */
export function isInShard(shard: Shard | undefined, streamText: string): boolean {
  return shard === undefined || fnv1a32(streamText) % shard.count === shard.index;
}

/** The range cut at multiples of the interval; both ends as they are. */
function rangesOf(from: bigint, to: bigint, interval: bigint): (readonly [bigint, bigint])[] {
  if (interval <= 0n) return [[from, to]];
  const ranges: (readonly [bigint, bigint])[] = [];
  let start = from;
  while (start < to || ranges.length === 0) {
    const edge = (floorDiv(start, interval) + 1n) * interval;
    const end = edge < to ? edge : to;
    ranges.push([start, end]);
    start = end;
  }
  return ranges;
}

function shardsOf(part: { readonly shard?: Shard }, count: number): { shard?: Shard }[] {
  if (count <= 1 || part.shard !== undefined) return [{}];
  return Array.from({ length: count }, (_, index) => ({ shard: { index, count } }));
}

/** The longest range of a metric query: parts by points should not be shorter, or rows are read several times. */
export function longestRangeNs(expr: MetricExpr): bigint {
  switch (expr.kind) {
    case "range_aggregation":
      return expr.rangeNs;
    case "vector_aggregation":
    case "label_replace":
      return longestRangeNs(expr.inner);
    case "binary": {
      const left = longestRangeNs(expr.left);
      const right = longestRangeNs(expr.right);
      if (left > right) return left;
      return right;
    }
    case "literal":
    case "vector":
      return 0n;
  }
}
