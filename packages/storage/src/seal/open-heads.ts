import { type Block, type BytesColumn, detectedLevelName } from "@skald/model";
import type { MetadataPairs } from "../head/head-view.js";
import { type NameSplit, splitMetadata } from "../segment/layout.js";
import { asBytes } from "../segment/spread.js";

/** Blocks of one UTC day in order of arrival, with the texts of the streams that their runs number. */
export interface SealHead {
  readonly blocks: readonly PairedBlock[];
  readonly streamTexts: readonly string[];
}

/** The columns of one block to seal; metadata of rare names stays row by row. */
export interface SealBlock {
  readonly timestamps: Float64Array;
  readonly lines: BytesColumn;
  /** `lines.bytes` for comparisons. */
  readonly lineBuffer: Buffer;
  /** By name, the metadata that gets columns. */
  readonly metadata: ReadonlyMap<string, BytesColumn>;
  readonly more: MoreRows;
}

/** Blocks that row ranges number, and every metadata name of theirs. */
export interface RowBlocks {
  readonly blocks: readonly SealBlock[];
  readonly metadataNames: NameSplit;
}

/** The runs of all blocks, sorted by stream and within a stream by arrival. */
interface SealRuns {
  readonly count: number;
  /** Index into the sorted stream texts. */
  readonly stream: Uint32Array;
  readonly block: Uint32Array;
  /** Rows `from .. to)` of the block. */
  readonly from: Uint32Array;
  readonly to: Uint32Array;
}

/** The columns of all blocks of some heads, ready to be sorted. */
export interface OpenedHeads extends RowBlocks {
  readonly baseNs: bigint;
  /** Of the streams that have rows, ascending by code unit. */
  readonly streamTexts: readonly string[];
  readonly runs: SealRuns;
}

/** Reads the columns of the blocks and numbers the streams of all heads together. */
export function openHeads(heads: readonly SealHead[]): OpenedHeads {
  const all = heads.flatMap((head) => head.blocks).filter((block) => block.rowCount > 0);
  const baseNs = all[0]?.baseNs;
  if (baseNs === undefined) throw new Error("no rows to seal");
  if (all.some((block) => block.baseNs !== baseNs)) throw new Error("blocks of several days");
  const streams = numberStreams(heads);
  const rows = countValues(all);
  // Levels are not among the pairs that are counted.
  if (all.some((block) => block.metadata(detectedLevelName) !== undefined))
    rows.set(detectedLevelName, 1);
  const names = splitMetadata(rows);
  const more = new MoreNumbers(names.more);
  const blocks = all.map((block) => sealBlock(block, names, more));
  return {
    baseNs,
    streamTexts: streams.texts,
    blocks,
    runs: sortRuns(heads, streams),
    metadataNames: names,
  };
}

interface StreamNumbers {
  readonly texts: readonly string[];
  /** Per head, the number of each of its streams; streams without rows have none that matters. */
  readonly ofHead: readonly Uint32Array[];
}

function numberStreams(heads: readonly SealHead[]): StreamNumbers {
  const used = new Set<string>();
  for (const { blocks, streamTexts } of heads) {
    const seen = new Uint8Array(streamTexts.length);
    for (const { runs } of blocks) {
      for (let r = 0; r < runs.count; r++) seen[runs.stream[r]!] = 1;
    }
    for (let s = 0; s < seen.length; s++) if (seen[s] === 1) used.add(streamTexts[s]!);
  }
  const texts = [...used].sort();
  const numbers = new Map(texts.map((text, number) => [text, number]));
  const ofHead = heads.map(({ streamTexts }) =>
    Uint32Array.from(streamTexts, (text) => numbers.get(text) ?? 0),
  );
  return { texts, ofHead };
}

/** Counting sort: stable, so the runs of a stream stay in order of arrival. */
function sortRuns(heads: readonly SealHead[], streams: StreamNumbers): SealRuns {
  const next = new Uint32Array(streams.texts.length + 1);
  let count = 0;
  const forEachRun = (visit: (stream: number, block: number, from: number, to: number) => void) => {
    let block = 0;
    heads.forEach((head, h) => {
      const numbers = streams.ofHead[h]!;
      for (const { runs, rowCount } of head.blocks) {
        if (rowCount === 0) continue;
        for (let r = 0; r < runs.count; r++) {
          const from = runs.rowStart[r]!;
          const to = runs.rowStart[r + 1]!;
          visit(numbers[runs.stream[r]!]!, block, from, to);
        }
        block++;
      }
    });
  };
  forEachRun((stream) => {
    next[stream + 1]!++;
    count++;
  });
  for (let s = 1; s < next.length; s++) next[s]! += next[s - 1]!;
  const sorted = {
    count,
    stream: new Uint32Array(count),
    block: new Uint32Array(count),
    from: new Uint32Array(count),
    to: new Uint32Array(count),
  };
  forEachRun((stream, block, from, to) => {
    const at = next[stream]!;
    next[stream] = at + 1;
    sorted.stream[at] = stream;
    sorted.block[at] = block;
    sorted.from[at] = from;
    sorted.to[at] = to;
  });
  return sorted;
}

/** Reads the columns of a block. */
export function sealBlock(block: PairedBlock, names: NameSplit, more: MoreNumbers): SealBlock {
  const lines = block.lines();
  const metadata = new Map<string, BytesColumn>();
  for (const name of names.columns) {
    const column = block.metadata(name);
    if (column !== undefined) metadata.set(name, asBytes(column));
  }
  const { buffer, byteOffset, byteLength } = lines.bytes;
  return {
    timestamps: block.timestamps(),
    lines,
    lineBuffer: Buffer.from(buffer, byteOffset, byteLength),
    metadata,
    more: more.rowsOf(block),
  };
}

/** A block to seal. One that has its metadata row by row gives it so, because columns of many names take much memory. */
export type PairedBlock = Block & { metadataPairs?(): MetadataPairs };

/**
 * The metadata of a block that has no columns, row by row: row r has the pairs `start[r] .. start[r+1])`, none empty, with
 * ascending numbers of names.
 */
export interface MoreRows {
  readonly start: Uint32Array;
  readonly names: Uint32Array;
  /** Value of pair p: `bytes[offsets[p] .. offsets[p+1])`. */
  readonly offsets: Uint32Array;
  readonly bytes: Uint8Array;
}

/** In how many rows each name has a value; a name that a row has twice may count twice. */
function countValues(blocks: readonly PairedBlock[]): Map<string, number> {
  const rows = new Map<string, number>();
  for (const block of blocks) {
    const { names, name, offsets } = pairsOf(block);
    const counts = new Uint32Array(names.length);
    for (let pair = 0; pair < name.length; pair++) {
      if (offsets[pair + 1]! > offsets[pair]!) counts[name[pair]!]!++;
    }
    for (const [i, count] of counts.entries()) {
      const known = rows.get(names[i]!) ?? 0;
      if (count > 0) rows.set(names[i]!, known + count);
    }
  }
  return rows;
}

/** Picks the pairs of names without columns out of blocks, and numbers them all alike. */
export class MoreNumbers {
  readonly #numbers: ReadonlyMap<string, number>;

  constructor(names: readonly string[]) {
    this.#numbers = new Map(names.map((name, number) => [name, number]));
  }

  rowsOf(block: PairedBlock): MoreRows {
    if (!this.#hasAny(block)) return noPairs(block.rowCount);
    const pairs = pairsOf(block);
    const numberOf = Int32Array.from(pairs.names, (name) => this.#numbers.get(name) ?? -1);
    return pick(pairs, numberOf, block.rowCount);
  }

  #hasAny(block: PairedBlock): boolean {
    return (
      this.#numbers.size > 0 &&
      (block.metadataPairs !== undefined ||
        block.metadataNames().some((name) => this.#numbers.has(name)))
    );
  }
}

function noPairs(rowCount: number): MoreRows {
  const none = new Uint32Array(0);
  const bytes = new Uint8Array(0);
  return { start: new Uint32Array(rowCount + 1), names: none, offsets: new Uint32Array(1), bytes };
}

/** The pairs whose names have numbers. */
function pick(pairs: MetadataPairs, numberOf: Int32Array, rowCount: number): MoreRows {
  let count = 0;
  let byteCount = 0;
  for (let pair = 0; pair < pairs.name.length; pair++) {
    if (numberOf[pairs.name[pair]!]! < 0) continue;
    count++;
    byteCount += pairs.offsets[pair + 1]! - pairs.offsets[pair]!;
  }
  const start = new Uint32Array(rowCount + 1);
  const names = new Uint32Array(count);
  const offsets = new Uint32Array(count + 1);
  const bytes = new Uint8Array(byteCount);
  let at = 0;
  for (let row = 0; row < rowCount; row++) {
    for (const pair of rowPairs(pairs, numberOf, row)) {
      const from = pairs.offsets[pair]!;
      const to = pairs.offsets[pair + 1]!;
      if (from === to) continue;
      bytes.set(pairs.bytes.subarray(from, to), offsets[at]!);
      names[at] = numberOf[pairs.name[pair]!]!;
      at++;
      offsets[at] = offsets[at - 1]! + to - from;
    }
    start[row + 1] = at;
  }
  return { start, names: names.subarray(0, at), offsets: offsets.subarray(0, at + 1), bytes };
}

/** The pairs of a row that have numbers, ascending by them; of a name that it has twice, the last. */
function rowPairs({ start, name }: MetadataPairs, numberOf: Int32Array, row: number): number[] {
  const found: number[] = [];
  for (let pair = start[row]!; pair < start[row + 1]!; pair++) {
    if (numberOf[name[pair]!]! >= 0) found.push(pair);
  }
  if (found.length < 2) return found;
  const number = (pair: number) => numberOf[name[pair]!]!;
  found.sort((a, b) => number(a) - number(b) || a - b);
  return found.filter((pair, i) => {
    const next = found[i + 1];
    return next === undefined || number(next) !== number(pair);
  });
}

function pairsOf(block: PairedBlock): MetadataPairs {
  return block.metadataPairs?.() ?? pairsOfColumns(block);
}

/** For a block that has columns only. */
function pairsOfColumns(block: PairedBlock): MetadataPairs {
  const names = block.metadataNames().filter((name) => name !== detectedLevelName);
  const columns = names.map((name) => asBytes(block.metadata(name)!));
  const start = new Uint32Array(block.rowCount + 1);
  const name: number[] = [];
  const offsets: number[] = [0];
  const parts: Uint8Array[] = [];
  for (let row = 0; row < block.rowCount; row++) {
    for (const [i, { offsets: ends, bytes }] of columns.entries()) {
      const value = bytes.subarray(ends[row], ends[row + 1]);
      if (value.length === 0) continue;
      name.push(i);
      parts.push(value);
      offsets.push(offsets[offsets.length - 1]! + value.length);
    }
    start[row + 1] = name.length;
  }
  const bytes = new Uint8Array(Buffer.concat(parts));
  return { names, start, name: Uint32Array.from(name), offsets: Uint32Array.from(offsets), bytes };
}
