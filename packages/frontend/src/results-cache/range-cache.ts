import type { Querier, SpanChanges } from "@skald/contracts";
import type { MatrixSeries } from "@skald/logql";
import { type CacheStats, emptyCacheStats, type TimeRange } from "@skald/model";
import { type ResultStore, resultKey, unwrap, wrap } from "./result-store.js";
import {
  joinStretches,
  type Look,
  type Piece,
  type PointGrid,
  type PointRun,
  piecesOf,
  pieceWidth,
  runsWhere,
  type Stretch,
} from "./stretches.js";

/** Where points are kept, and who knows which of them are still valid. */
export interface RangeCacheDeps {
  readonly store: ResultStore;
  readonly changes: Querier<"changes">;
}

/** A range query, as the cache knows it. */
export interface CachedQuery {
  /** Sorted, at least one. */
  readonly tenants: readonly string[];
  readonly actors: readonly string[];
  /** Equal for queries that mean the same. */
  readonly text: string;
  readonly grid: PointGrid;
  readonly look: Look;
  /** Points that depend on older rows are neither kept nor taken: rows that are so old may go. ns since the epoch. */
  readonly oldestNs: bigint;
  /** Pieces are multiples of this. */
  readonly intervalNs: bigint;
}

/** What is known of a query, and what has to be asked for. */
export interface OpenedRange {
  /** In order of points. */
  readonly known: readonly Stretch[];
  readonly missing: readonly PointRun[];
  readonly stats: CacheStats;
  /** Keeps what was asked for; it is for those who ask the same again. */
  keep(fresh: readonly Stretch[]): CacheStats;
}

/** A piece as it is kept: of the points in `covered` all samples, counted from the first point of the piece. */
interface Entry {
  readonly token: string;
  readonly covered: readonly PointRun[];
  readonly series: readonly MatrixSeries[];
}

interface OpenPiece {
  readonly piece: Piece;
  readonly key: string;
  /** Asked for before the points that are missing are. */
  readonly token: string;
  /** What still holds, of the whole piece. */
  readonly valid: readonly PointRun[];
  readonly series: readonly MatrixSeries[];
}

/** More gaps than this are asked for as one, with what lies between. */
const maxGaps = 4;

/**
 * Keeps the points of range queries. Each piece of them has the state that the rows had before they were read, so that
 * what has been written, deleted or come to light since is known, and only the points that depend on it are asked for
 * again: what is given is what a query of now would give.
 */
export class RangeCache {
  readonly #deps: RangeCacheDeps;

  constructor(deps: RangeCacheDeps) {
    this.#deps = deps;
  }

  /** Undefined when nobody can tell what has changed. */
  async open(query: CachedQuery, signal: AbortSignal): Promise<OpenedRange | undefined> {
    const { tenants, actors, text, grid, look } = query;
    const widthNs = pieceWidth(grid.stepNs, query.intervalNs);
    const pieces = piecesOf(grid, widthNs, look);
    const phaseNs = ((grid.startNs % grid.stepNs) + grid.stepNs) % grid.stepNs;
    const keys = pieces.map(({ index }) =>
      resultKey("result", { tenants, text, step: grid.stepNs, phaseNs, widthNs, index }),
    );
    const started = performance.now();
    const values = await this.#deps.store.get(keys, signal);
    const bytesReceived = values.reduce((sum, value) => sum + (value?.byteLength ?? 0), 0);
    const entries = values.map((value) => unwrap(value) as Entry | undefined);
    const downloadSeconds = (performance.now() - started) / 1000;
    const spans = pieces.map(({ range }, i) => {
      const since = entries[i]?.token;
      return since === undefined ? range : { ...range, since };
    });
    const changes = await this.#deps.changes
      .run("changes", { tenants, spans, actors }, { signal })
      .catch(() => undefined);
    signal.throwIfAborted();
    if (changes === undefined) return undefined;
    const opened = pieces.map((piece, i): OpenPiece => {
      const entry = entries[i];
      const told = changes[i] as SpanChanges;
      const valid = entry === undefined ? [] : stillValid(query, piece, entry, told.changed);
      return { piece, key: keys[i]!, token: told.token, valid, series: entry?.series ?? [] };
    });
    const stats: CacheStats = {
      ...emptyCacheStats(),
      requests: 1,
      entriesRequested: pieces.length,
      entriesFound: opened.filter(({ valid }) => valid.length > 0).length,
      bytesReceived,
      downloadSeconds,
    };
    return this.#opened(query, opened, stats);
  }

  #opened(query: CachedQuery, opened: readonly OpenPiece[], stats: CacheStats): OpenedRange {
    const { count, stepNs } = query.grid;
    const known = opened.flatMap(({ piece: { shift }, valid, series }) =>
      valid.flatMap(({ from, to }): Stretch[] => {
        const run = { from: Math.max(0, from + shift), to: Math.min(count - 1, to + shift) };
        return run.from > run.to ? [] : [{ ...run, series, shift }];
      }),
    );
    const missing = gapsOf(known, count);
    // What is asked for all the same need not be taken from elsewhere.
    const taken = known.flatMap((stretch) => without(stretch, missing));
    const points = taken.reduce((sum, { from, to }) => sum + to - from + 1, 0);
    const servedSeconds = (points * Number(stepNs)) / 1e9;
    return {
      known: taken,
      missing,
      stats: { ...stats, servedSeconds },
      keep: (fresh) => this.#keep(query, opened, fresh),
    };
  }

  #keep(query: CachedQuery, opened: readonly OpenPiece[], fresh: readonly Stretch[]): CacheStats {
    const { store } = this.#deps;
    let entriesStored = 0;
    let bytesSent = 0;
    for (const { piece, key, token, valid, series } of opened) {
      const { shift, count } = piece;
      const first = firstLasting(query, piece);
      const own = fresh.flatMap((stretch): Stretch[] => {
        const run = {
          from: Math.max(stretch.from - shift, first),
          to: Math.min(stretch.to - shift, count - 1),
        };
        return run.from > run.to ? [] : [{ ...stretch, ...run, shift: stretch.shift - shift }];
      });
      if (own.length === 0) continue;
      const older = valid.map((run): Stretch => ({ ...run, series, shift: 0 }));
      const kept = older.flatMap((stretch) => without(stretch, own));
      const all = [...kept, ...own].sort((a, b) => a.from - b.from);
      const covered = uniteRuns(all);
      const entry: Entry = { token, covered, series: joinStretches(all) };
      const value = wrap(entry, { compress: store.compress, maxBytes: store.maxValueBytes });
      if (value === undefined) continue;
      entriesStored++;
      bytesSent += value.byteLength;
      store.put(key, value);
    }
    return { ...emptyCacheStats(), entriesStored, bytesSent };
  }
}

/** The points of an entry that depend on no row that has changed. */
function stillValid(
  query: CachedQuery,
  piece: Piece,
  { covered }: Entry,
  changed: readonly TimeRange[],
): PointRun[] {
  const first = firstLasting(query, piece);
  const bad = changed.map((range) => pointsOf(query, piece, range));
  return covered.flatMap(({ from, to }) =>
    from <= to
      ? runsWhere(
          { from: Math.max(from, first), to },
          (point) => !bad.some((run) => point >= run.from && point <= run.to),
        )
      : [],
  );
}

/** The points of a piece that depend on rows of a range. */
function pointsOf({ grid, look }: CachedQuery, { shift }: Piece, range: TimeRange): PointRun {
  const { startNs, stepNs } = grid;
  const originNs = startNs + stepNs * BigInt(shift);
  // A point t sees the times from t - beforeNs + 1 to t + afterNs.
  const from = ceilDiv(range.fromNs - look.afterNs - originNs, stepNs);
  const to = ceilDiv(range.toNs - 1n + look.beforeNs - originNs, stepNs) - 1n;
  return { from: Number(from), to: Number(to) };
}

/** The first point of a piece all of whose rows will stay. */
function firstLasting({ grid, look, oldestNs }: CachedQuery, { shift }: Piece): number {
  const originNs = grid.startNs + grid.stepNs * BigInt(shift);
  const first = ceilDiv(oldestNs + look.beforeNs - 1n - originNs, grid.stepNs);
  return first > 0n ? Number(first) : 0;
}

/** The points that no stretch has, in runs; of very many gaps one. */
function gapsOf(known: readonly Stretch[], count: number): PointRun[] {
  const gaps: PointRun[] = [];
  let next = 0;
  for (const { from, to } of known) {
    if (from > next) gaps.push({ from: next, to: from - 1 });
    next = to + 1;
  }
  if (next < count) gaps.push({ from: next, to: count - 1 });
  if (gaps.length <= maxGaps) return gaps;
  return [{ from: gaps[0]!.from, to: gaps.at(-1)!.to }];
}

/** Runs in order, those that touch as one. */
function uniteRuns(runs: readonly PointRun[]): PointRun[] {
  const united: { from: number; to: number }[] = [];
  for (const { from, to } of runs) {
    const last = united.at(-1);
    if (last !== undefined && from <= last.to + 1) last.to = Math.max(last.to, to);
    else united.push({ from, to });
  }
  return united;
}

/** What of a stretch is in none of some runs. */
function without(stretch: Stretch, runs: readonly PointRun[]): Stretch[] {
  const outside = runs.every(({ from, to }) => to < stretch.from || from > stretch.to);
  if (outside) return [stretch];
  return runsWhere(
    stretch,
    (point) => !runs.some(({ from, to }) => point >= from && point <= to),
  ).map((run) => ({ ...stretch, ...run }));
}

function ceilDiv(a: bigint, b: bigint): bigint {
  const quotient = a / b;
  return a % b > 0n ? quotient + 1n : quotient;
}
