import type { Block, Labels, Matcher, RunTable } from "@skald/model";
import { compileMatchers, parseStreamText } from "@skald/model";
import type { BlockRange, ColumnSelection, PageMemory, PageSet, Segment } from "@skald/storage";
import { type HeadView, type LocalRef, openHeadBlock } from "@skald/storage";

/** Streams, block headers and blocks of one day of one tenant: a sealed segment or an unsealed head. */
export interface Source {
  readonly id: string;
  readonly kind: "segment" | "head";
  /** Start of the UTC day, ns since the epoch. */
  readonly baseNs: bigint;
  readonly blockCount: number;
  /** One flag per stream number: 1 for the streams that satisfy every matcher. */
  select(matchers: readonly Matcher[]): Uint8Array;
  labels(stream: number): Labels;
  /** Canonical label text. */
  text(stream: number): string;
  /** The stream with a canonical label text. */
  streamOf(text: string): number | undefined;
  runs(block: number): RunTable;
  /** Columns are decompressed into `memory` when it is given, and gone when that is used again. */
  block(block: number, pages?: PageSet, memory?: PageMemory): Block;
  /** Reads columns of a range of blocks ahead, in few reads; undefined when they are in memory anyway. */
  readPages(blocks: BlockRange, columns: ColumnSelection, memory?: PageMemory): PageSet | undefined;
  /** Stored bytes of a block; 0 when it is in memory. */
  storedBytes(block: number): number;
}

/** Opens what a reference names; of this thread. */
export type OpenSource = (ref: LocalRef) => Source;

/** A segment as a source. Its reader must be synchronous. */
export function segmentSource(segment: Segment): Source {
  let byText: Map<string, number> | undefined;
  return {
    id: segment.id,
    kind: "segment",
    baseNs: segment.baseNs,
    blockCount: segment.blockCount,
    select: (matchers) => {
      const flags = new Uint8Array(segment.streamCount);
      for (const stream of segment.matchStreams(matchers)) flags[stream] = 1;
      return flags;
    },
    labels: (stream) => segment.labels(stream),
    text: (stream) => segment.text(stream),
    streamOf: (text) => {
      byText ??= new Map(streamsOf(segment).map((stream) => [segment.text(stream), stream]));
      return byText.get(text);
    },
    runs: (block) => segment.header(block).runs,
    block: (block, pages, memory) => segment.block(block, pages, memory),
    readPages: (blocks, columns, memory) => segment.readPages(blocks, columns, memory),
    storedBytes: (block) => segment.header(block).storedBytes,
  };
}

/** A head as a source; it knows only the streams that the ingester selected. */
export function openHead(ref: HeadView): Source {
  const texts = new Map<number, string>();
  let streamLimit = 0;
  for (let i = 0; i < ref.streams.length; i++) {
    const stream = ref.streams[i] as number;
    texts.set(stream, ref.texts[i] as string);
    streamLimit = Math.max(streamLimit, stream + 1);
  }
  let byText: Map<string, number> | undefined;
  const blocks = ref.blocks.map(openHeadBlock);
  const text = (stream: number) => texts.get(stream) ?? "{}";
  return {
    id: ref.id,
    kind: "head",
    baseNs: blocks[0]?.baseNs ?? 0n,
    blockCount: blocks.length,
    select: (matchers) => {
      const matches = compileMatchers(matchers);
      const flags = new Uint8Array(streamLimit);
      for (const [stream, streamText] of texts) {
        if (matchers.length === 0 || matches(parseStreamText(streamText))) flags[stream] = 1;
      }
      return flags;
    },
    labels: (stream) => parseStreamText(text(stream)),
    text,
    streamOf: (wanted) => {
      byText ??= new Map([...texts].map(([stream, streamText]) => [streamText, stream]));
      return byText.get(wanted);
    },
    runs: (block) => (blocks[block] as Block).runs,
    block: (block) => blocks[block] as Block,
    readPages: () => undefined,
    storedBytes: () => 0,
  };
}

function streamsOf(segment: Segment): number[] {
  return Array.from({ length: segment.streamCount }, (_, stream) => stream);
}
