import { type Batch, paddingBytes } from "@skald/model";
import type { BatchRange, HeadBlock } from "@skald/storage";

/** Copies the rows of blocks into a batch, in order of arrival, with a range per run. */
export function batchOfBlocks(
  blocks: readonly HeadBlock[],
  baseNs: bigint,
): { batch: Batch; ranges: BatchRange[] } {
  const batch = emptyBatch(blocks);
  const ranges: BatchRange[] = [];
  const names = new Map<string, number>();
  const place = { row: 0, pair: 0, byte: 0 };
  for (const block of blocks) {
    const { runStream, runStart } = block.columns;
    for (let run = 0; run < block.runCount; run++) {
      const end = run + 1 < block.runCount ? runStart[run + 1]! : block.rowCount;
      const [rowFrom, rowTo] = [place.row + runStart[run]!, place.row + end];
      ranges.push({ stream: runStream[run]!, rowFrom, rowTo });
    }
    copyBlock(block, Number(baseNs / 1_000_000_000n), { batch, names, place });
  }
  return { batch: { ...batch, metaNames: [...names.keys()] }, ranges };
}

function emptyBatch(blocks: readonly HeadBlock[]) {
  const sum = (of: (block: HeadBlock) => number) => blocks.reduce((all, b) => all + of(b), 0);
  const rows = sum((block) => block.rowCount);
  const pairs = sum(pairsOf);
  const lineBytes = sum((block) => block.lineBytes);
  const valueBytes = sum((block) => block.columns.valueOffset[pairsOf(block)]!);
  return {
    rowCount: rows,
    streams: [],
    seconds: new Float64Array(rows),
    nanos: new Uint32Array(rows),
    bytes: new Uint8Array(lineBytes + valueBytes + paddingBytes),
    lineStart: new Uint32Array(rows),
    lineLength: new Uint32Array(rows),
    metaStart: new Uint32Array(rows + 1),
    metaName: new Uint32Array(pairs),
    metaValueStart: new Uint32Array(pairs),
    metaValueLength: new Uint32Array(pairs),
    levels: new Uint8Array(rows),
    lineBytes,
  };
}

interface Target {
  readonly batch: ReturnType<typeof emptyBatch>;
  /** Numbers of the names so far. */
  readonly names: Map<string, number>;
  /** Where the next of each goes. */
  readonly place: { row: number; pair: number; byte: number };
}

function copyBlock(block: HeadBlock, baseSeconds: number, { batch, names, place }: Target): void {
  const { timestamps, lineOffset, metaStart, levels, lines } = block.columns;
  const rows = block.rowCount;
  batch.levels.set(levels.subarray(0, rows), place.row);
  batch.bytes.set(lines.subarray(0, lineOffset[rows]), place.byte);
  for (let row = 0; row < rows; row++) {
    const at = place.row + row;
    const seconds = Math.floor(timestamps[row]! / 1e9);
    batch.seconds[at] = baseSeconds + seconds;
    batch.nanos[at] = timestamps[row]! - seconds * 1e9;
    batch.lineStart[at] = place.byte + lineOffset[row]!;
    batch.lineLength[at] = lineOffset[row + 1]! - lineOffset[row]!;
    batch.metaStart[at + 1] = place.pair + metaStart[row + 1]!;
  }
  place.row += rows;
  place.byte += lineOffset[rows]!;
  copyPairs(block, { batch, names, place });
}

function copyPairs(block: HeadBlock, { batch, names, place }: Target): void {
  const { pairName, valueOffset, values } = block.columns;
  const pairs = pairsOf(block);
  batch.bytes.set(values.subarray(0, valueOffset[pairs]), place.byte);
  for (let pair = 0; pair < pairs; pair++) {
    const name = block.metaName(pairName[pair]!);
    const number = names.get(name) ?? names.size;
    names.set(name, number);
    batch.metaName[place.pair + pair] = number;
    batch.metaValueStart[place.pair + pair] = place.byte + valueOffset[pair]!;
    batch.metaValueLength[place.pair + pair] = valueOffset[pair + 1]! - valueOffset[pair]!;
  }
  place.pair += pairs;
  place.byte += valueOffset[pairs]!;
}

function pairsOf(block: HeadBlock): number {
  return block.columns.metaStart[block.rowCount]!;
}
