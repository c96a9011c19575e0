import type { RowMask, SharedTask } from "@skald/contracts";
import { streamKey } from "../source/minutes.js";
import type { Source } from "../source/source.js";
import type { ScanContext } from "../source/view.js";
import {
  type ComparedSource,
  SharedBlocks,
  type SharedRun,
  type Times,
  timesOf,
} from "./compared-source.js";
import { FoundRows } from "./found-rows.js";
import { findSameMinutes } from "./same-minutes.js";
import { compareTied, StretchRows } from "./tied-rows.js";

/** What of all that several segments share is wanted. */
export interface SharedOptions
  extends Pick<ScanContext, "check">,
    Partial<Pick<SharedTask, "wantedFrom">> {
  readonly part?: SharedTask["part"] | undefined;
}

/**
 * Finds the rows of each of some segments, in order of arrival, that equal a row of an earlier one in stream, time, line and
 * metadata: those of the segments from the place `wantedFrom` on. Each segment is opened once, however many it meets. Minutes whose
 * digests are equal are told whole; else times are read where two segments have rows of one stream, and lines where times are equal.
 */
export function findShared(
  sources: readonly Source[],
  { check, wantedFrom = 0, part }: SharedOptions,
): RowMask[] {
  const context = { blocks: new SharedBlocks(), rows: new StretchRows(), check };
  const compared = sources.map((source, place): ComparedSource => {
    const isWanted = place >= wantedFrom;
    return { source, place, isWanted, found: new FoundRows() };
  });
  // Times are counted from the start of the day.
  for (const baseNs of new Set(sources.map((source) => source.baseNs))) {
    const own = compared.filter(({ source }) => source.baseNs === baseNs);
    for (const runs of sharedStreams(own, { check, part })) {
      check();
      const open = findSameMinutes(runs, context.blocks);
      if (open !== "nothing") compareTied(runs, open, context);
    }
  }
  return compared.slice(wantedFrom).map(({ found }) => found.mask());
}

/** The runs of each stream that several of the segments have, within the times that they share. */
function* sharedStreams(
  sources: readonly ComparedSource[],
  { check, part }: SharedOptions,
): Generator<SharedRun[]> {
  const shared = keysOfSeveral(sources, { check, part });
  if (shared.size === 0) return;
  const times = othersTimes(sources.map(({ source }) => timesOf(source)));
  const byStream = new Map<number, SharedRun[]>();
  sources.forEach((of, i) => {
    check();
    const { from, to } = times[i]!;
    const { source } = of;
    for (let block = 0; block < source.blockCount; block++) {
      const { count, stream, rowStart, minTime, maxTime } = source.runs(block);
      for (let r = 0; r < count; r++) {
        if (maxTime[r]! < from || minTime[r]! > to) continue;
        const key = streamKey(source.streams, stream[r]!);
        if (!shared.has(key)) continue;
        const run = {
          of,
          stream: stream[r]!,
          block,
          from: rowStart[r]!,
          to: rowStart[r + 1]!,
          minTime: minTime[r]!,
          maxTime: maxTime[r]!,
        };
        const runs = byStream.get(key);
        if (runs === undefined) byStream.set(key, [run]);
        else runs.push(run);
      }
    }
  });
  for (const runs of byStream.values()) yield* ofOneStream(runs);
}

/** Keys of the streams that are in more than one segment. */
function keysOfSeveral(
  sources: readonly ComparedSource[],
  { check, part = { index: 0, count: 1 } }: SharedOptions,
): Set<number> {
  const once = new Set<number>();
  const several = new Set<number>();
  for (const { source } of sources) {
    check();
    for (let stream = 0; stream < source.streams.count; stream++) {
      const key = streamKey(source.streams, stream);
      if (key % part.count !== part.index) continue;
      if (once.has(key)) several.add(key);
      else once.add(key);
    }
  }
  return several;
}

/** The runs, by stream where two streams have the same key, which is a part of their hash. */
function* ofOneStream(runs: SharedRun[]): Generator<SharedRun[]> {
  const rest = ({ of, stream }: SharedRun) => of.source.streams.hashes[2 * stream + 1]!;
  for (let left = runs; left.length > 1; ) {
    const first = rest(left[0]!);
    const same = left.filter((run) => rest(run) === first);
    if (same.some(({ of }) => of !== same[0]!.of) && same.some(({ of }) => of.isWanted)) yield same;
    if (same.length === left.length) return;
    left = left.filter((run) => rest(run) !== first);
  }
}

/** For each of some spans, from where to where the others reach. */
function othersTimes(spans: readonly Times[]): Times[] {
  const begins = spans.map(({ from }) => from).sort((a, b) => a - b);
  const ends = spans.map(({ to }) => to).sort((a, b) => b - a);
  return spans.map(({ from, to }) => ({
    from: (from === begins[0] ? begins[1] : begins[0]) ?? Number.POSITIVE_INFINITY,
    to: (to === ends[0] ? ends[1] : ends[0]) ?? Number.NEGATIVE_INFINITY,
  }));
}
