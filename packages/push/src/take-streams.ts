import type { Batch, BatchStream } from "@skald/model";

/**
 * Returns the rows of some streams of a batch as a batch of their own; streams are given by index, ascending. Lines and
 * values are shared. The body as received is left out.
 */
export function takeStreams(batch: Batch, indexes: Uint32Array): Batch {
  const streams = Array.from(indexes, (index) => batch.streams[index] as BatchStream);
  // The rows of a stream are contiguous, and so are those of neighbours.
  const rows = join(streams.map(({ rowStart, rowEnd }) => ({ from: rowStart, to: rowEnd })));
  const { metaStart } = batch;
  const pairs = rows.map(({ from, to }) => ({ from: metaStart[from]!, to: metaStart[to]! }));
  const rowCount = lengthOf(rows);
  const pairCount = lengthOf(pairs);
  const lineLength = gather(batch.lineLength, rows, new Uint32Array(rowCount));
  return {
    rowCount,
    streams: place(streams),
    seconds: gather(batch.seconds, rows, new Float64Array(rowCount)),
    nanos: gather(batch.nanos, rows, new Uint32Array(rowCount)),
    bytes: batch.bytes,
    lineStart: gather(batch.lineStart, rows, new Uint32Array(rowCount)),
    lineLength,
    metaStart: startsOf(metaStart, rows, rowCount),
    metaName: gather(batch.metaName, pairs, new Uint32Array(pairCount)),
    metaValueStart: gather(batch.metaValueStart, pairs, new Uint32Array(pairCount)),
    metaValueLength: gather(batch.metaValueLength, pairs, new Uint32Array(pairCount)),
    metaNames: batch.metaNames,
    levels: gather(batch.levels, rows, new Uint8Array(rowCount)),
    lineBytes: sumOf(lineLength),
  };
}

/** A half-open range of a column. */
interface Stretch {
  readonly from: number;
  readonly to: number;
}

type Column = Float64Array | Uint32Array | Uint8Array;

/** Gives streams contiguous rows. */
function place(streams: readonly BatchStream[]): BatchStream[] {
  let end = 0;
  return streams.map((stream) => {
    const rowStart = end;
    end += stream.rowEnd - stream.rowStart;
    return { ...stream, rowStart, rowEnd: end };
  });
}

/** Joins stretches that touch, and drops empty ones. */
function join(stretches: readonly Stretch[]): Stretch[] {
  const joined: { from: number; to: number }[] = [];
  for (const { from, to } of stretches) {
    const last = joined.at(-1);
    if (last?.to === from) last.to = to;
    else if (to > from) joined.push({ from, to });
  }
  return joined;
}

/** Copies stretches of a column next to each other. */
function gather<T extends Column>(column: T, stretches: readonly Stretch[], into: T): T {
  let at = 0;
  for (const { from, to } of stretches) {
    into.set(column.subarray(from, to), at);
    at += to - from;
  }
  return into;
}

/** The start of the metadata pairs of each row, and the end of the last. */
function startsOf(metaStart: Uint32Array, rows: readonly Stretch[], rowCount: number): Uint32Array {
  const starts = new Uint32Array(rowCount + 1);
  let row = 0;
  let pair = 0;
  for (const { from, to } of rows) {
    const moved = pair - metaStart[from]!;
    for (let i = from; i < to; i++) starts[row++] = metaStart[i]! + moved;
    pair = metaStart[to]! + moved;
  }
  starts[row] = pair;
  return starts;
}

function lengthOf(stretches: readonly Stretch[]): number {
  let total = 0;
  for (const { from, to } of stretches) total += to - from;
  return total;
}

function sumOf(numbers: Uint32Array): number {
  let total = 0;
  for (let i = 0; i < numbers.length; i++) total += numbers[i]!;
  return total;
}
