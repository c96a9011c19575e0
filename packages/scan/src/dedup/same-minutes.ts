import { minuteNs, type StreamDigests } from "@skald/storage";
import type { ComparedSource, SharedBlocks, SharedRun } from "./compared-source.js";

/** Minutes of the day with rows of a stream that only a look at them tells apart; "all" where that is not known. */
export type OpenMinutes = ReadonlySet<number> | "all";

interface Digest {
  readonly rows: number;
  readonly low: number;
  readonly high: number;
}

/**
 * Names the rows of one stream in minutes of which an earlier segment has the same digest, and takes them out of the list of runs
 * where a run has no others. Tells what is left to compare.
 */
export function findSameMinutes(runs: SharedRun[], blocks: SharedBlocks): OpenMinutes | "nothing" {
  const digests = digestsOf(runs);
  const known = [...digests.values()].filter((own) => own !== undefined);
  if (known.length < 2) return "all";
  const seen = new Map<number, Digest[]>();
  const same = new Map<ComparedSource, Set<number>>();
  for (const [of, own] of digests) {
    if (own !== undefined) same.set(of, namedMinutes(own, seen));
  }
  const left = runs.filter((run) => !nameRows(run, digests.get(run.of), same.get(run.of), blocks));
  runs.length = 0;
  runs.push(...left.map((run) => ({ ...run, named: same.get(run.of) })));
  if (known.length < digests.size) return "all";
  const open = new Set<number>();
  for (const [minute, different] of seen) if (different.length > 1) open.add(minute);
  return open.size === 0 ? "nothing" : open;
}

/** In order of arrival, as the runs are. */
function digestsOf(runs: readonly SharedRun[]): Map<ComparedSource, StreamDigests | undefined> {
  const digests = new Map<ComparedSource, StreamDigests | undefined>();
  for (const { of, stream } of runs) {
    if (!digests.has(of)) digests.set(of, of.source.digests?.(stream));
  }
  return digests;
}

/** The minutes that were seen with the same digest; the others are seen from now on. */
function namedMinutes(own: StreamDigests, seen: Map<number, Digest[]>): Set<number> {
  const named = new Set<number>();
  own.minutes.forEach((minute, i) => {
    const digest = { rows: own.rows[i]!, low: own.sums[2 * i]!, high: own.sums[2 * i + 1]! };
    const before = seen.get(minute);
    if (before === undefined) seen.set(minute, [digest]);
    else if (before.some((one) => isEqual(one, digest))) named.add(minute);
    else before.push(digest);
  });
  return named;
}

function isEqual(a: Digest, b: Digest): boolean {
  return a.rows === b.rows && a.low === b.low && a.high === b.high;
}

/** Names the rows of a run in some minutes; true when those are all. Times are read only of a run that has others too. */
function nameRows(
  run: SharedRun,
  digests: StreamDigests | undefined,
  named: ReadonlySet<number> | undefined,
  blocks: SharedBlocks,
): boolean {
  const own = [...(digests?.minutes ?? [])].filter((minute) => isIn(run, minute));
  const count = own.filter((minute) => named?.has(minute)).length;
  if (count === 0) return false;
  const { of, block, from, to } = run;
  if (of.isWanted) {
    const times = count === own.length ? undefined : blocks.of(of, block).timestamps();
    for (let row = from; row < to; row++) {
      const isNamed = times === undefined || named!.has(Math.floor(times[row]! / minuteNs));
      if (isNamed) of.found.add(block, row);
    }
  }
  return count === own.length;
}

function isIn({ minTime, maxTime }: SharedRun, minute: number): boolean {
  return minute >= Math.floor(minTime / minuteNs) && minute <= Math.floor(maxTime / minuteNs);
}
