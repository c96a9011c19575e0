import {
  type BytesColumn,
  detectedLevelName,
  type MetadataColumn,
  paddingBytes,
} from "@skald/model";
import { type NameSplit, splitMetadata } from "../segment/layout.js";
import { countValues, MoreNumbers, type MoreRows, type PairedBlock } from "./more-rows.js";

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
export interface SealRuns {
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
  const names = splitMetadata(metadataNames(all));
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

function asBytes(column: MetadataColumn): BytesColumn {
  if (column.kind === "bytes") return column;
  const { codes } = column;
  const values = column.dictionary.map((text) => Buffer.from(text, "utf8"));
  const lengths = Uint32Array.from(values, (value) => value.byteLength);
  const starts = new Uint32Array(values.length);
  for (let v = 1; v < values.length; v++) {
    starts[v] = starts[v - 1]! + lengths[v - 1]!;
  }
  const all = new Uint8Array(Buffer.concat(values));
  const offsets = new Uint32Array(codes.length + 1);
  let total = 0;
  for (let row = 0; row < codes.length; row++) {
    total += lengths[codes[row]!]!;
    offsets[row + 1] = total;
  }
  const bytes = new Uint8Array(total + paddingBytes);
  let at = 0;
  for (let row = 0; row < codes.length; row++) {
    const code = codes[row]!;
    const from = starts[code]!;
    const to = from + lengths[code]!;
    for (let i = from; i < to; i++) bytes[at++] = all[i]!;
  }
  return { bytes, offsets };
}

/** Those in most rows first, but the level before all others: it is in most rows, and does not lie among the pairs. */
function metadataNames(blocks: readonly PairedBlock[]): string[] {
  const rows = countValues(blocks);
  if (blocks.some((block) => block.metadata(detectedLevelName) !== undefined)) {
    rows.set(detectedLevelName, Number.POSITIVE_INFINITY);
  }
  const rowsOf = (name: string) => rows.get(name)!;
  return [...rows.keys()].sort().sort((a, b) => rowsOf(b) - rowsOf(a));
}
