import type { RowMask, SharedTask } from "@skald/contracts";
import type { TimeRange } from "@skald/model";
import { type LabelTable, minuteNs, type RowHashes, type StreamDigests } from "@skald/storage";
import type { ScanContext } from "../source/block-reader.js";
import { FoundRows, streamKey } from "../source/row-mask.js";
import type { Source } from "../source/source.js";
import { flagsOf } from "../source/view.js";
import { hashesOfBlock } from "./minute-digests.js";
import {
  type ComparedSource,
  compareTied,
  type OpenMinutes,
  SharedBlocks,
  type SharedRun,
  StretchRows,
  type Times,
} from "./tied-rows.js";

interface SharedOptions extends Pick<ScanContext, "check"> {
  /** Only rows of the sources from this place on are wanted; 0 when absent. */
  readonly wantedFrom?: number;
  /** One part of all streams, by hash; all when absent. */
  readonly part?: SharedTask["part"] | undefined;
  /** Rows outside are not compared. */
  readonly range?: TimeRange | undefined;
}

/**
 * Finds the rows of each source, in order of arrival, that equal a row of an earlier source in stream, time, line and metadata: agents send
 * rows twice, and replicas store them twice. It opens each source once, however many others it meets. Minutes with equal
 * digests are named whole. Otherwise it reads times where two sources have rows of one stream, and lines where times are equal.
 */
export function findShared(sources: readonly Source[], options: SharedOptions): RowMask[] {
  const { check, wantedFrom = 0, range } = options;
  const context = { blocks: new SharedBlocks(), rows: new StretchRows(), check };
  const compared = sources.map((source, place): ComparedSource => {
    return { source, place, isWanted: place >= wantedFrom, found: new FoundRows() };
  });
  // Times count from the start of the day.
  for (const baseNs of new Set(sources.map((source) => source.baseNs))) {
    const own = compared.filter(({ source }) => source.baseNs === baseNs);
    const digests = new HeadDigests();
    const bounds = range && {
      from: Number(range.fromNs - baseNs),
      to: Number(range.toNs - baseNs) - 1,
    };
    for (const runs of sharedStreams(own, bounds, options)) {
      check();
      const open = findSameMinutes(runs, context.blocks, digests);
      if (open !== "nothing") compareTied(runs, open, { ...context, bounds });
    }
  }
  return compared.slice(wantedFrom).map(({ found }) => found.mask());
}

/** The runs of each stream that several of the sources have, within the times that they share. */
function* sharedStreams(
  sources: readonly ComparedSource[],
  bounds: Times | undefined,
  { check, part }: SharedOptions,
): Generator<SharedRun[]> {
  const keys = keysOfSeveral(sources, { check, part });
  if (keys.size === 0) return;
  const times = othersTimes(sources.map(({ source }) => timesOf(source)));
  const streams = new SharedStreams(keys);
  sources.forEach((of, i) => {
    check();
    const from = Math.max(bounds?.from ?? Number.NEGATIVE_INFINITY, times[i]!.from);
    const to = Math.min(bounds?.to ?? Number.POSITIVE_INFINITY, times[i]!.to);
    const { source } = of;
    const runsOf = streams.runsIn(source);
    for (let block = 0; block < source.blockCount; block++) {
      const { count, stream, rowStart, minTime, maxTime } = source.runs(block);
      for (let r = 0; r < count; r++) {
        if (maxTime[r]! < from || minTime[r]! > to) continue;
        runsOf(stream[r]!)?.push({
          of,
          stream: stream[r]!,
          block,
          from: rowStart[r]!,
          to: rowStart[r + 1]!,
          minTime: minTime[r]!,
          maxTime: maxTime[r]!,
          named: undefined,
        });
      }
    }
  });
  for (const runs of streams.runs()) {
    // The runs are in order of their sources.
    const [first, last] = [runs[0]!.of, runs.at(-1)!.of];
    if (first !== last && last.isWanted) yield runs;
  }
}

/** Runs by stream, over several sources. */
class SharedStreams {
  /** By key, one list for each stream with that key, which is a part of its hash. */
  readonly #byKey = new Map<number, { readonly hash: number; readonly runs: SharedRun[] }[]>();
  readonly #keys: ReadonlySet<number>;

  /** Knows the streams of some keys only. */
  constructor(keys: ReadonlySet<number>) {
    this.#keys = keys;
  }

  /** Finds the list of a stream of a source; undefined for a stream that no other source has. */
  runsIn(source: Source): (stream: number) => SharedRun[] | undefined {
    const { streams } = source;
    const known = knownStreams(source);
    const lists = new Array<SharedRun[] | "none" | undefined>(streams.count);
    return (stream) => {
      let runs = lists[stream];
      if (runs === undefined) {
        runs = known === undefined || known[stream] === 1 ? this.#find(streams, stream) : "none";
        lists[stream] = runs;
      }
      return runs === "none" ? undefined : runs;
    };
  }

  *runs(): Generator<SharedRun[]> {
    for (const all of this.#byKey.values()) for (const { runs } of all) yield runs;
  }

  #find(streams: LabelTable, stream: number): SharedRun[] | "none" {
    const key = streamKey(streams, stream);
    if (!this.#keys.has(key)) return "none";
    const hash = streams.hashes[2 * stream + 1]!;
    const all = this.#byKey.get(key) ?? [];
    this.#byKey.set(key, all);
    const found = all.find((one) => one.hash === hash) ?? { hash, runs: [] };
    if (!all.includes(found)) all.push(found);
    return found.runs;
  }
}

/** Flags of the streams that a head was selected for: it also has runs of others. Undefined for a segment. */
function knownStreams({ kind, streams }: Source): Uint8Array | undefined {
  return kind === "head" ? flagsOf(streams.match([]), streams.count) : undefined;
}

/** Keys of the streams that are in more than one source. */
function keysOfSeveral(
  sources: readonly ComparedSource[],
  { check, part = { index: 0, count: 1 } }: SharedOptions,
): Set<number> {
  const once = new Set<number>();
  const several = new Set<number>();
  for (const { source } of sources) {
    check();
    const known = knownStreams(source);
    for (let stream = 0; stream < source.streams.count; stream++) {
      if (known !== undefined && known[stream] !== 1) continue;
      const key = streamKey(source.streams, stream);
      if (key % part.count !== part.index) continue;
      if (once.has(key)) several.add(key);
      else once.add(key);
    }
  }
  return several;
}

/** The times of a source. A source without rows ends before it begins. */
function timesOf(source: Source): Times {
  let from = Number.POSITIVE_INFINITY;
  let to = Number.NEGATIVE_INFINITY;
  for (let block = 0; block < source.blockCount; block++) {
    const { count, minTime, maxTime } = source.runs(block);
    for (let run = 0; run < count; run++) {
      if (minTime[run]! < from) from = minTime[run]!;
      if (maxTime[run]! > to) to = maxTime[run]!;
    }
  }
  return { from, to };
}

/** For each span of time, from where to where the other spans reach. */
function othersTimes(spans: readonly Times[]): Times[] {
  const begins = spans.map(({ from }) => from).sort((a, b) => a - b);
  const ends = spans.map(({ to }) => to).sort((a, b) => b - a);
  return spans.map(({ from, to }) => ({
    from: (from === begins[0] ? begins[1] : begins[0]) ?? Number.POSITIVE_INFINITY,
    to: (to === ends[0] ? ends[1] : ends[0]) ?? Number.NEGATIVE_INFINITY,
  }));
}

interface Digest {
  readonly rows: number;
  readonly low: number;
  readonly high: number;
}

/**
 * Names the rows of one stream in minutes that have the same digest in an earlier source, and removes runs without other rows from
 * the list. Returns the minutes that are left to compare.
 */
function findSameMinutes(
  runs: SharedRun[],
  blocks: SharedBlocks,
  heads: HeadDigests,
): OpenMinutes | "nothing" {
  const digests = digestsOf(runs, heads);
  const known = [...digests.values()].filter((own) => own !== undefined);
  if (known.length < 2) return "all";
  const seen = new Map<number, Digest[]>();
  const same = new Map<ComparedSource, Set<number>>();
  for (const [of, own] of digests) {
    if (own !== undefined) same.set(of, namedMinutes(own, seen));
  }
  let left = 0;
  for (const run of runs) {
    const named = same.get(run.of);
    if (nameRows(run, digests.get(run.of), named, blocks)) continue;
    run.named = named;
    runs[left++] = run;
  }
  runs.length = left;
  if (known.length < digests.size) return "all";
  const open = new Set<number>();
  for (const [minute, different] of seen) if (different.length > 1) open.add(minute);
  return open.size === 0 ? "nothing" : open;
}

/**
 * The digests of one stream by source, in order of arrival, as the runs are. Heads have none of their own: they get some where a segment
 * has some to compare them with.
 */
function digestsOf(
  runs: readonly SharedRun[],
  heads: HeadDigests,
): Map<ComparedSource, StreamDigests | undefined> {
  const digests = new Map<ComparedSource, StreamDigests | undefined>();
  for (const { of, stream } of runs) {
    if (!digests.has(of)) digests.set(of, of.source.digests?.(stream));
  }
  if ([...digests.values()].every((own) => own === undefined)) return digests;
  for (const of of digests.keys()) {
    if (of.source.digests === undefined)
      digests.set(of, heads.of(runs.filter((run) => run.of === of)));
  }
  return digests;
}

/** Makes digests of rows in heads. */
class HeadDigests {
  readonly #hashes = new Map<Source, Map<number, RowHashes>>();

  /** The digests of some runs of one stream in one source. */
  of(runs: readonly SharedRun[]): StreamDigests {
    const digests = new Map<number, { rows: number; low: number; high: number }>();
    for (const run of runs) {
      const times = run.of.source.block(run.block).timestamps();
      const { high, low } = this.#hashesOf(run);
      for (let row = run.from; row < run.to; row++) {
        const minute = Math.floor(times[row]! / minuteNs);
        const digest = digests.get(minute) ?? { rows: 0, low: 0, high: 0 };
        digest.rows++;
        digest.low = (digest.low + low[row]!) >>> 0;
        digest.high = (digest.high + high[row]!) >>> 0;
        digests.set(minute, digest);
      }
    }
    const minutes = Float64Array.from(digests.keys()).sort();
    const ordered = Array.from(minutes, (minute) => digests.get(minute)!);
    return {
      minutes,
      rows: Float64Array.from(ordered, ({ rows }) => rows),
      sums: Uint32Array.from(ordered.flatMap(({ low, high }) => [low, high])),
    };
  }

  #hashesOf({ of: { source }, block }: SharedRun): RowHashes {
    const known = this.#hashes.get(source) ?? new Map<number, RowHashes>();
    this.#hashes.set(source, known);
    const hashes = known.get(block) ?? hashesOfBlock(source, block);
    known.set(block, hashes);
    return hashes;
  }
}

/** The minutes that were seen with the same digest. The others are seen from now on. */
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

/** Names the rows of a run in some minutes; true when the run has no others. Times are read only for a run that has others. */
function nameRows(
  run: SharedRun,
  digests: StreamDigests | undefined,
  named: ReadonlySet<number> | undefined,
  blocks: SharedBlocks,
): boolean {
  if (digests === undefined || named === undefined || named.size === 0) return false;
  const first = Math.floor(run.minTime / minuteNs);
  const last = Math.floor(run.maxTime / minuteNs);
  let all = 0;
  let count = 0;
  for (let i = 0; i < digests.minutes.length; i++) {
    const minute = digests.minutes[i]!;
    if (minute < first || minute > last) continue;
    all++;
    if (named.has(minute)) count++;
  }
  if (count === 0) return false;
  const { of, block, from, to } = run;
  if (of.isWanted) {
    const times = count === all ? undefined : blocks.of(of, block).timestamps();
    for (let row = from; row < to; row++) {
      const isNamed = times === undefined || named.has(Math.floor(times[row]! / minuteNs));
      if (isNamed) of.found.add(block, row);
    }
  }
  return count === all;
}
