import {
  type Block,
  type BytesColumn,
  type MetadataColumn,
  paddingBytes,
  type RunTable,
} from "@skald/model";

/** The rows `rowFrom .. rowTo - 1` of a block as a block of their own: stages look at no others. */
export function blockPart(block: Block, rowFrom: number, rowTo: number): Block {
  if (rowFrom === 0 && rowTo === block.rowCount) return block;
  let lines: BytesColumn | undefined;
  return {
    baseNs: block.baseNs,
    rowCount: rowTo - rowFrom,
    runs: cutRuns(block, rowFrom, rowTo),
    timestamps: () => block.timestamps().subarray(rowFrom, rowTo),
    lines: () => {
      lines ??= cutBytes(block.lines(), rowFrom, rowTo);
      return lines;
    },
    metadataNames: () => block.metadataNames(),
    metadata: (name) => cutMetadata(block.metadata(name), rowFrom, rowTo),
  };
}

function cutRuns({ runs, timestamps }: Block, rowFrom: number, rowTo: number): RunTable {
  const first = runOf(runs, rowFrom);
  let end = first;
  while (end < runs.count && runs.rowStart[end]! < rowTo) end++;
  const count = end - first;
  const rowStart = new Uint32Array(count + 1);
  for (let run = 0; run < count; run++) {
    rowStart[run] = Math.max(runs.rowStart[first + run]!, rowFrom) - rowFrom;
  }
  rowStart[count] = rowTo - rowFrom;
  const times = timestamps().subarray(rowFrom, rowTo);
  const minTime = new Float64Array(count).fill(Number.POSITIVE_INFINITY);
  const maxTime = new Float64Array(count).fill(Number.NEGATIVE_INFINITY);
  for (let run = 0; run < count; run++) {
    for (let row = rowStart[run]!; row < rowStart[run + 1]!; row++) {
      if (times[row]! < minTime[run]!) minTime[run] = times[row]!;
      if (times[row]! > maxTime[run]!) maxTime[run] = times[row]!;
    }
  }
  const stream = runs.stream.subarray(first, end);
  return { count, stream, rowStart, minTime, maxTime, lineBytes: runs.lineBytes.slice(first, end) };
}

/** The run that a row is in. */
function runOf({ rowStart, count }: RunTable, row: number): number {
  let low = 0;
  let high = count;
  while (low + 1 < high) {
    const middle = (low + high) >> 1;
    if (rowStart[middle]! <= row) low = middle;
    else high = middle;
  }
  return low;
}

/** Begins with offset 0, as loops over whole columns expect it. */
function cutBytes({ bytes, offsets }: BytesColumn, rowFrom: number, rowTo: number): BytesColumn {
  const start = offsets[rowFrom]!;
  const cut = offsets.slice(rowFrom, rowTo + 1);
  for (let i = 0; i < cut.length; i++) cut[i] = cut[i]! - start;
  return { bytes: bytes.subarray(start, offsets[rowTo]! + paddingBytes), offsets: cut };
}

function cutMetadata(
  column: MetadataColumn | undefined,
  rowFrom: number,
  rowTo: number,
): MetadataColumn | undefined {
  if (column === undefined) return undefined;
  if (column.kind === "bytes") return { kind: "bytes", ...cutBytes(column, rowFrom, rowTo) };
  return { ...column, codes: column.codes.subarray(rowFrom, rowTo) };
}
