import type { Batch, BatchStream } from "@skald/model";

/**
 * The rows of some streams of a batch, as a batch of their own; streams are given by index, ascending. Lines and values
 * stay where they are. What was received for all streams is no part of it.
 */
export function takeStreams(batch: Batch, indexes: Uint32Array): Batch {
  const taken = Array.from(indexes, (index) => batch.streams[index] as BatchStream);
  const rows = rowsOf(taken);
  const { starts: metaStart, pairs } = pairsOf(batch, rows);
  const lineLength = rows.map((row) => batch.lineLength[row]!);
  let end = 0;
  return {
    rowCount: rows.length,
    streams: taken.map((stream) => {
      const rowStart = end;
      end += stream.rowEnd - stream.rowStart;
      return { ...stream, rowStart, rowEnd: end };
    }),
    seconds: Float64Array.from(rows, (row) => batch.seconds[row]!),
    nanos: rows.map((row) => batch.nanos[row]!),
    bytes: batch.bytes,
    lineStart: rows.map((row) => batch.lineStart[row]!),
    lineLength,
    metaStart,
    metaName: pairs.map((pair) => batch.metaName[pair]!),
    metaValueStart: pairs.map((pair) => batch.metaValueStart[pair]!),
    metaValueLength: pairs.map((pair) => batch.metaValueLength[pair]!),
    metaNames: batch.metaNames,
    levels: Uint8Array.from(rows, (row) => batch.levels[row]!),
    lineBytes: lineLength.reduce((sum, length) => sum + length, 0),
  };
}

/** Row numbers of streams, in order. */
function rowsOf(streams: readonly BatchStream[]): Uint32Array {
  const rows = new Uint32Array(
    streams.reduce((sum, { rowStart, rowEnd }) => sum + rowEnd - rowStart, 0),
  );
  let at = 0;
  for (const { rowStart, rowEnd } of streams)
    for (let row = rowStart; row < rowEnd; row++) rows[at++] = row;
  return rows;
}

/** The metadata of rows: for each row where its pairs start, and the numbers of the pairs. */
function pairsOf({ metaStart }: Batch, rows: Uint32Array) {
  const starts = new Uint32Array(rows.length + 1);
  for (const [i, row] of rows.entries())
    starts[i + 1] = starts[i]! + metaStart[row + 1]! - metaStart[row]!;
  const pairs = new Uint32Array(starts[rows.length]!);
  let at = 0;
  for (const row of rows)
    for (let pair = metaStart[row]!; pair < metaStart[row + 1]!; pair++) pairs[at++] = pair;
  return { starts, pairs };
}
