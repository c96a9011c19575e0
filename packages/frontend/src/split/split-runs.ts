import { floorDiv } from "@skald/model";
import type { PointRun } from "../results-cache/stretches.js";

/** Cuts runs of points at multiples of an interval of time since the epoch; 0n leaves them as they are. */
export function splitRuns(
  runs: readonly PointRun[],
  { startNs, stepNs }: { readonly startNs: bigint; readonly stepNs: bigint },
  intervalNs: bigint,
): PointRun[] {
  if (intervalNs <= 0n) return [...runs];
  return runs.flatMap(({ from, to }) => {
    const parts: PointRun[] = [];
    for (let begin = from; begin <= to; ) {
      const ns = startNs + stepNs * BigInt(begin);
      const edge = (floorDiv(ns, intervalNs) + 1n) * intervalNs;
      const last = Math.min(to, begin + Number((edge - 1n - ns) / stepNs));
      parts.push({ from: begin, to: last });
      begin = last + 1;
    }
    return parts;
  });
}
