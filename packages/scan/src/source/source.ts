import type { Block, Labels, LevelCounts, NeedleFormula, RunTable, TimeSlices } from "@skald/model";
import type {
  BlockRange,
  ColumnSelection,
  LabelTable,
  LocalRef,
  OpenedCachedSegment,
  PageMemory,
  PageSet,
  Segment,
  StreamDigests,
} from "@skald/storage";

/** Streams, block headers and blocks of one day of one tenant: a sealed segment or an unsealed head. */
export interface Source {
  readonly id: string;
  readonly kind: "segment" | "head";
  /** Start of the UTC day, ns since the epoch. */
  readonly baseNs: bigint;
  readonly blockCount: number;
  /** A head has only those streams that the ingester selected, under its own numbers. */
  readonly streams: LabelTable;
  /** Clears the flags of blocks that surely lack what the formula asks for; false when there is nothing to ask. */
  refuse(formula: NeedleFormula, wanted: Uint8Array): boolean;
  /** Digests of the rows of a stream; undefined when there are none. Absent where rows are still being added. */
  readonly digests?: (stream: number) => StreamDigests | undefined;
  /** A mark of each row of a block: rows of different marks differ. Undefined, or absent, when there are none. */
  readonly marks?: (block: number) => Uint32Array | undefined;
  /** The rows of a run by `detected_level`, without a look at a page; undefined when that is not known. */
  levels(block: number, run: number): LevelCounts | undefined;
  /** The rows of a run by slices of time, without a look at a page; undefined when that is not known. */
  slices(block: number, run: number): TimeSlices | undefined;
  /** Names of the structured metadata that a block has. */
  metadataNames(block: number): readonly string[];
  runs(block: number): RunTable;
  /** Calls back for each run of a stream, in order, without a look at the others; absent where runs are in no order. */
  readonly forEachRun?: (stream: number, visit: (block: number, run: number) => void) => void;
  /** Columns are decompressed into `memory` when it is given, and gone when that is used again. */
  block(block: number, pages?: PageSet, memory?: PageMemory): Block;
  /** Reads columns of a range of blocks ahead, in few reads; undefined when they are in memory anyway. */
  readPages(blocks: BlockRange, columns: ColumnSelection, memory?: PageMemory): PageSet | undefined;
  /** Stored bytes of a block; 0 when it is in memory. */
  storedBytes(block: number): number;
  /** Of a segment of which only a part may be on this machine. */
  readonly cached?: CachedReads;
}

export type CachedReads = Pick<OpenedCachedSegment, "missing" | "slotsRead">;

/** Opens what a reference names; of this thread. */
export type OpenSource = (ref: LocalRef) => Source;

/** A segment as a source. Its reader must be synchronous. */
export function segmentSource(segment: Segment, cached?: CachedReads): Source {
  return {
    id: segment.id,
    kind: "segment",
    baseNs: segment.baseNs,
    blockCount: segment.blockCount,
    streams: segment.streams,
    refuse: (formula, wanted) => segment.refuse(formula, wanted),
    digests: (stream) => segment.digests(stream),
    marks: (block) => segment.marks(block),
    levels: (block, run) => segment.levels(block, run),
    slices: (block, run) => segment.slices(block, run),
    metadataNames: (block) => segment.metadataNames(block),
    runs: (block) => segment.runs(block),
    forEachRun: (stream, visit) => segment.forEachRun(stream, visit),
    block: (block, pages, memory) => segment.block(block, pages, memory),
    readPages: (blocks, columns, memory) => segment.readPages(blocks, columns, memory),
    storedBytes: (block) => segment.header(block).storedBytes,
    ...(cached === undefined ? {} : { cached }),
  };
}

/** Label sets of a source by stream, each made once. */
export function labelsOnce(streams: LabelTable): (stream: number) => Labels {
  const known = new Map<number, Labels>();
  return (stream) => {
    let labels = known.get(stream);
    if (labels === undefined) {
      labels = streams.labels(stream);
      known.set(stream, labels);
    }
    return labels;
  };
}
