import type { Block, BytesColumn, MetadataColumn } from "@skald/model";
import type { Source } from "./source.js";

/** Rows of a source that a scan must leave out, because an older source has them too. */
export interface Exclusions {
  /** Block numbers, ascending, and for each the ascending row numbers. */
  readonly blocks: Uint32Array;
  readonly rows: readonly Uint32Array[];
}

export const noExclusions: Exclusions = { blocks: new Uint32Array(0), rows: [] };

interface RowPlace {
  readonly block: number;
  readonly row: number;
}

interface StreamRun {
  readonly block: number;
  readonly from: number;
  readonly to: number;
  readonly minTime: number;
  readonly maxTime: number;
}

/**
 * Finds the rows of `newer` that equal a row of `older` in stream, time, line and metadata: what an agent sent
 * twice, or replicas stored twice. Reads headers first, then timestamps of runs that overlap in time within one
 * stream, and lines only of rows with equal times.
 */
export function findDuplicates(older: Source, newer: Source): Exclusions {
  if (older.baseNs !== newer.baseNs) return noExclusions;
  const olderRuns = runsByStream(older);
  const newerRuns = runsByStream(newer);
  const byText = new Map<string, number>();
  for (const stream of olderRuns.keys()) byText.set(older.text(stream), stream);
  const found = new Map<number, number[]>();
  for (const [stream, runs] of newerRuns) {
    const twin = byText.get(newer.text(stream));
    if (twin === undefined) continue;
    for (const place of duplicatesOfStream(
      older,
      olderRuns.get(twin) as StreamRun[],
      newer,
      runs,
    )) {
      const rows = found.get(place.block);
      if (rows === undefined) found.set(place.block, [place.row]);
      else rows.push(place.row);
    }
  }
  const blocks = Uint32Array.from([...found.keys()].sort((a, b) => a - b));
  const rows = [...blocks].map((block) => Uint32Array.from(found.get(block) as number[]).sort());
  return { blocks, rows };
}

function runsByStream(source: Source): Map<number, StreamRun[]> {
  const byStream = new Map<number, StreamRun[]>();
  for (let block = 0; block < source.blockCount; block++) {
    const { count, stream, rowStart, minTime, maxTime } = source.runs(block);
    for (let r = 0; r < count; r++) {
      const run = {
        block,
        from: rowStart[r] as number,
        to: rowStart[r + 1] as number,
        minTime: minTime[r] as number,
        maxTime: maxTime[r] as number,
      };
      const runs = byStream.get(stream[r] as number);
      if (runs === undefined) byStream.set(stream[r] as number, [run]);
      else runs.push(run);
    }
  }
  return byStream;
}

function* duplicatesOfStream(
  older: Source,
  olderRuns: readonly StreamRun[],
  newer: Source,
  newerRuns: readonly StreamRun[],
): Generator<RowPlace> {
  const from = Math.max(earliest(olderRuns), earliest(newerRuns));
  const to = Math.min(latest(olderRuns), latest(newerRuns));
  if (from > to) return;
  const byTime = new Map<number, RowPlace[]>();
  for (const { time, place } of rowsBetween(older, olderRuns, from, to)) {
    const places = byTime.get(time);
    if (places === undefined) byTime.set(time, [place]);
    else places.push(place);
  }
  if (byTime.size === 0) return;
  for (const { time, place } of rowsBetween(newer, newerRuns, from, to)) {
    const block = newer.block(place.block);
    const twins = byTime.get(time) ?? [];
    if (twins.some((twin) => equalRows(older.block(twin.block), twin.row, block, place.row)))
      yield place;
  }
}

function earliest(runs: readonly StreamRun[]): number {
  return runs.reduce((least, run) => Math.min(least, run.minTime), Number.POSITIVE_INFINITY);
}

function latest(runs: readonly StreamRun[]): number {
  return runs.reduce((most, run) => Math.max(most, run.maxTime), Number.NEGATIVE_INFINITY);
}

function* rowsBetween(
  source: Source,
  runs: readonly StreamRun[],
  from: number,
  to: number,
): Generator<{ time: number; place: RowPlace }> {
  for (const run of runs) {
    if (run.maxTime < from || run.minTime > to) continue;
    const timestamps = source.block(run.block).timestamps();
    for (let row = run.from; row < run.to; row++) {
      const time = timestamps[row] as number;
      if (time >= from && time <= to) yield { time, place: { block: run.block, row } };
    }
  }
}

function equalRows(a: Block, rowA: number, b: Block, rowB: number): boolean {
  if (!equalBytes(a.lines(), rowA, b.lines(), rowB)) return false;
  for (const name of new Set([...a.metadataNames(), ...b.metadataNames()])) {
    if (metadataText(a.metadata(name), rowA) !== metadataText(b.metadata(name), rowB)) return false;
  }
  return true;
}

function equalBytes(a: BytesColumn, rowA: number, b: BytesColumn, rowB: number): boolean {
  const left = a.bytes.subarray(a.offsets[rowA], a.offsets[rowA + 1]);
  const right = b.bytes.subarray(b.offsets[rowB], b.offsets[rowB + 1]);
  return Buffer.compare(left, right) === 0;
}

function metadataText(column: MetadataColumn | undefined, row: number): string {
  if (column === undefined) return "";
  if (column.kind === "dictionary") return column.dictionary[column.codes[row] as number] ?? "";
  const value = column.bytes.subarray(column.offsets[row], column.offsets[row + 1]);
  return Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString("latin1");
}
