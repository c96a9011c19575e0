import type { RowMask } from "@skald/contracts";
import type { TimeRange } from "@skald/model";
import { type LabelTable, minuteNs } from "@skald/storage";
import { streamKey } from "../source/minutes.js";
import { emptyMask } from "../source/row-mask.js";
import type { Source } from "../source/source.js";
import { flagsOf, type ScanContext } from "../source/view.js";
import { type Agreement, agreementOf, HeadDigests, isSameBetween } from "./agreement.js";
import { compareRows, hashRow, RecentBlocks } from "./compare-rows.js";
import { type StreamRun, timesOf } from "./compared-source.js";
import { FoundRows } from "./found-rows.js";
import { RowTimes } from "./row-times.js";

/** Rows of equal time are compared pair by pair up to this many pairs; more are grouped by a hash first. */
const maxPairs = 64;
/** Rows between two looks at the cancellation. */
const rowsPerCheck = 4096;

/**
 * Finds the rows of `newer` that equal a row of `older` in stream, time, line and metadata: what an agent sent
 * twice, or replicas stored twice. With a range, rows outside it need not be told. Where both have digests of a stream,
 * minutes that are equal are told whole, and others need a look only where both have rows. Reads headers first, then
 * timestamps of runs that overlap in time within one stream, and lines only of rows with equal times.
 */
export function findDuplicates(
  older: Source,
  newer: Source,
  { check, range }: Pick<ScanContext, "check"> & { readonly range?: TimeRange | undefined },
): RowMask {
  if (older.baseNs !== newer.baseNs) return emptyMask;
  const found = new FoundRows();
  const pair = { older: new RecentBlocks(older), newer: new RecentBlocks(newer), found, check };
  const { from, to } = boundsOf(range, newer.baseNs);
  // Rows outside the time that both have, and streams without any inside, need not be looked at.
  const shared = sharedTime(older, newer, from, to);
  if (shared.from >= shared.to) return emptyMask;
  const newerRuns = runsByStream(newer, shared);
  if (newerRuns.size === 0) return emptyMask;
  const olderRuns = runsByStream(older, shared);
  const twinOf = twinsIn(older.streams, olderRuns.keys());
  const digests = agreements(older, newer);
  for (const [stream, b] of newerRuns) {
    check();
    const twin = twinOf(newer.streams, stream);
    if (twin === undefined) continue;
    const a = olderRuns.get(twin) as StreamRun[];
    const first = Math.max(earliest(a), earliest(b), from);
    const last = Math.min(latest(a), latest(b), to - 1);
    if (first > last) continue;
    const agreement = digests(twin, a, stream, b);
    if (agreement !== undefined) addSame(pair, agreement, b);
    for (const open of agreement?.open ?? [{ from: first, to: last + 1 }]) {
      const start = Math.max(first, open.from);
      const end = Math.min(last, open.to - 1);
      if (start <= end) compareStream(pair, rowsBetween(pair.older, a, start, end), b, start, end);
    }
  }
  return found.mask();
}

/** What the digests of a stream in both sources say, when both have some. */
function agreements(older: Source, newer: Source) {
  const heads = { older: new HeadDigests(older), newer: new HeadDigests(newer) };
  // A head has those of its selected rows only, and two heads are as quickly compared row by row.
  return (
    twin: number,
    a: readonly StreamRun[],
    stream: number,
    b: readonly StreamRun[],
  ): Agreement | undefined => {
    const known = { older: older.digests?.(twin), newer: newer.digests?.(stream) };
    if (known.older === undefined && known.newer === undefined) return undefined;
    const ofOlder = older.digests === undefined ? heads.older.of(a) : known.older;
    const ofNewer = newer.digests === undefined ? heads.newer.of(b) : known.newer;
    if (ofOlder === undefined || ofNewer === undefined) return undefined;
    return agreementOf(ofOlder, ofNewer);
  };
}

/** Names the rows of the minutes that are the same in both; times are read only of runs that have others too. */
function addSame(pair: Pair, agreement: Agreement, runs: readonly StreamRun[]): void {
  if (agreement.same.size === 0) return;
  for (const { block, from, to, minTime, maxTime } of runs) {
    pair.check();
    const isWhole = isSameBetween(agreement, minTime, maxTime);
    const times = isWhole ? undefined : pair.newer.block(block).timestamps();
    for (let row = from; row < to; row++) {
      if (times === undefined || agreement.same.has(Math.floor(times[row]! / minuteNs))) {
        pair.found.add(block, row);
      }
    }
  }
}

interface Pair {
  readonly older: RecentBlocks;
  readonly newer: RecentBlocks;
  readonly found: FoundRows;
  readonly check: () => void;
}

/** Walks both lists by time and compares the rows of equal times. */
function compareStream(
  pair: Pair,
  a: RowTimes,
  newerRuns: readonly StreamRun[],
  first: number,
  last: number,
): void {
  if (a.count === 0) return;
  const b = rowsBetween(pair.newer, newerRuns, first, last);
  let i = 0;
  let untilCheck = rowsPerCheck;
  for (let j = 0; j < b.count; ) {
    const time = b.timeAt(j);
    const end = b.endOfTie(j);
    while (i < a.count && a.timeAt(i) < time) i++;
    if (i === a.count) return;
    if (a.timeAt(i) === time) compareTie(pair, { a, from: i, to: a.endOfTie(i) }, b, j, end);
    untilCheck -= end - j;
    if (untilCheck <= 0) {
      pair.check();
      untilCheck = rowsPerCheck;
    }
    j = end;
  }
}

interface Tie {
  readonly a: RowTimes;
  readonly from: number;
  readonly to: number;
}

function compareTie(pair: Pair, { a, from, to }: Tie, b: RowTimes, first: number, end: number) {
  const isSmall = (to - from) * (end - first) <= maxPairs;
  const byHash = isSmall ? undefined : hashTie(pair, { a, from, to });
  const all = Array.from({ length: isSmall ? to - from : 0 }, (_, i) => from + i);
  for (let j = first; j < end; j++) {
    const block = pair.newer.block(b.blockAt(j));
    const row = b.rowAt(j);
    if (byHash !== undefined && (j - first) % rowsPerCheck === 0) pair.check();
    const twins = byHash === undefined ? all : (byHash.get(hashRow(block, row)) ?? []);
    const isTwin = (i: number) =>
      compareRows(pair.older.block(a.blockAt(i)), a.rowAt(i), block, row);
    if (twins.some(isTwin)) pair.found.add(b.blockAt(j), row);
  }
}

function hashTie(pair: Pair, { a, from, to }: Tie): Map<number, number[]> {
  const byHash = new Map<number, number[]>();
  for (let i = from; i < to; i++) {
    if ((i - from) % rowsPerCheck === 0) pair.check();
    const hash = hashRow(pair.older.block(a.blockAt(i)), a.rowAt(i));
    const rows = byHash.get(hash);
    if (rows === undefined) byHash.set(hash, [i]);
    else rows.push(i);
  }
  return byHash;
}

function boundsOf(range: TimeRange | undefined, baseNs: bigint): { from: number; to: number } {
  if (range === undefined) return { from: Number.NEGATIVE_INFINITY, to: Number.POSITIVE_INFINITY };
  return { from: Number(range.fromNs - baseNs), to: Number(range.toNs - baseNs) };
}

/** The times within the bounds that both sources have rows around, `from .. to)`. */
function sharedTime(older: Source, newer: Source, from: number, to: number): NumberRange {
  const a = timesOf(older);
  const b = timesOf(newer);
  return { from: Math.max(a.from, b.from, from), to: Math.min(a.to + 1, b.to + 1, to) };
}

interface NumberRange {
  readonly from: number;
  readonly to: number;
}

/** Finds the stream of a table, among some, that has the same labels as a stream of another table. */
function twinsIn(table: LabelTable, streams: Iterable<number>) {
  const byHash = new Map<number, number>();
  for (const stream of streams) byHash.set(streamKey(table, stream), stream);
  return (other: LabelTable, stream: number): number | undefined => {
    const twin = byHash.get(streamKey(other, stream));
    if (twin === undefined) return undefined;
    return table.hashes[2 * twin + 1] === other.hashes[2 * stream + 1] ? twin : undefined;
  };
}

/** The runs with rows in the range of the streams that the source knows. */
function runsByStream(source: Source, { from, to }: NumberRange): Map<number, StreamRun[]> {
  // A head knows only the streams that were asked for.
  const known =
    source.kind === "head" ? flagsOf(source.streams.match([]), source.streams.count) : undefined;
  const byStream = new Map<number, StreamRun[]>();
  for (let block = 0; block < source.blockCount; block++) {
    const { count, stream, rowStart, minTime, maxTime } = source.runs(block);
    for (let r = 0; r < count; r++) {
      if (maxTime[r]! < from || minTime[r]! >= to) continue;
      const number = stream[r] as number;
      if (known !== undefined && known[number] !== 1) continue;
      const run = {
        block,
        from: rowStart[r] as number,
        to: rowStart[r + 1] as number,
        minTime: minTime[r]!,
        maxTime: maxTime[r]!,
      };
      const runs = byStream.get(number);
      if (runs === undefined) byStream.set(number, [run]);
      else runs.push(run);
    }
  }
  return byStream;
}

function rowsBetween(
  blocks: RecentBlocks,
  runs: readonly StreamRun[],
  from: number,
  to: number,
): RowTimes {
  const rows = new RowTimes();
  for (const run of runs) {
    if (run.maxTime < from || run.minTime > to) continue;
    const times = blocks.block(run.block).timestamps();
    for (let row = run.from; row < run.to; row++) {
      const time = times[row] as number;
      if (time >= from && time <= to) rows.push(time, run.block, row);
    }
  }
  rows.sort();
  return rows;
}

function earliest(runs: readonly StreamRun[]): number {
  return runs.reduce((least, run) => Math.min(least, run.minTime), Number.POSITIVE_INFINITY);
}

function latest(runs: readonly StreamRun[]): number {
  return runs.reduce((most, run) => Math.max(most, run.maxTime), Number.NEGATIVE_INFINITY);
}
