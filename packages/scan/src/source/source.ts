import type { ScanKind, TaskOf, TaskSource } from "@skald/contracts";
import {
  type Block,
  type BlockFacts,
  type BytesColumn,
  detectedLevelName,
  type Labels,
  type LevelCounts,
  labelValue,
  type Matcher,
  type NeedleFormula,
  parseStreamText,
  type RunTable,
  type TimeSlices,
} from "@skald/model";
import {
  type BlockRange,
  type ColumnSelection,
  type HeadView,
  hashPair,
  hashText,
  hashValues,
  type LabelTable,
  type LocalRef,
  matchLabels,
  type OpenedCachedSegment,
  openHeadBlock,
  type PageMemory,
  type PageSet,
  type RunsWithin,
  readTexts,
  type Segment,
  type StreamColumn,
  type StreamDigests,
} from "@skald/storage";

/** Streams, block headers and blocks of one day of one tenant: a sealed segment or an unsealed head. */
export interface Source {
  readonly id: string;
  readonly kind: "segment" | "head";
  /** Start of the UTC day, ns since the epoch. */
  readonly baseNs: bigint;
  readonly blockCount: number;
  /** Tells a block of a head from the others, however many of these are open; absent where the block itself does. */
  readonly numberOf?: (block: number) => number;
  /** A head has only the streams that the ingester selected, under its own numbers. */
  readonly streams: LabelTable;
  /** Clears the flags of blocks that surely lack what the formula asks for; returns false when it can rule out nothing. */
  refuse(formula: NeedleFormula, wanted: Uint8Array): boolean;
  /** Digests of the rows of a stream; undefined when there are none. Absent where rows are still being added. */
  readonly digests?: (stream: number) => StreamDigests | undefined;
  /** A mark for each row of a block: rows with different marks differ. Undefined, or absent, when there are none. */
  readonly marks?: (block: number) => Uint32Array | undefined;
  /** Bytes of names and values of structured metadata, of each run of a block; undefined when they were not counted. */
  metadataBytes(block: number): Float64Array | undefined;
  /** The same of all rows before each row of a block; only a head knows. */
  readonly metadataOffsets?: (block: number) => Float64Array;
  /** Counts the rows of a run by `detected_level` without reading a page; undefined when the source does not know. */
  levels(block: number, run: number): LevelCounts | undefined;
  /** Counts the rows of a run by slices of time without reading a page; undefined when the source does not know. */
  slices(block: number, run: number): TimeSlices | undefined;
  /** What is known of the rows of a block without their lines; undefined when nothing is. */
  facts(block: number): BlockFacts | undefined;
  /** Names of the structured metadata in a block. */
  metadataNames(block: number): readonly string[];
  runs(block: number): RunTable;
  /** The blocks with runs of some streams; both ascend. Absent where runs are in no order, and blocks still get rows. */
  readonly blocksOf?: (streams: Uint32Array, within?: RunsWithin) => Uint32Array;
  /** With `memory`, columns are decompressed into it and are valid until it is used again. */
  block(block: number, pages?: PageSet, memory?: PageMemory): Block;
  /** Reads columns of a range of blocks ahead, in few reads; undefined when they are in memory anyway. */
  readPages(blocks: BlockRange, columns: ColumnSelection, memory?: PageMemory): PageSet | undefined;
  /** Set for a segment that may be only partly on this machine. */
  readonly cached?: CachedReads;
}

type CachedReads = Pick<OpenedCachedSegment, "missing" | "slotsRead">;

/** Opens the source that a reference names, on this thread. */
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
    metadataBytes: (block) => segment.metadataBytes(block),
    levels: (block, run) => segment.levels(block, run),
    slices: (block, run) => segment.slices(block, run),
    facts: (block) => segment.facts(block),
    metadataNames: (block) => segment.metadataNames(block),
    runs: (block) => segment.runs(block),
    blocksOf: (streams, within) => segment.blocksOf(streams, within),
    block: (block, pages, memory) => segment.block(block, pages, memory),
    readPages: (blocks, columns, memory) => segment.readPages(blocks, columns, memory),
    ...(cached === undefined ? {} : { cached }),
  };
}

interface Sources<Ref> {
  readonly sources: readonly TaskSource<Ref>[];
}

/** The references of a task's sources. */
export function refsOf<Ref>({ sources }: Sources<Ref>): Ref[] {
  return sources.map(({ ref }) => ref);
}

/** The sources of a task with these references. */
export function sourcesOf<Ref>(refs: readonly Ref[]): TaskSource<Ref>[] {
  return refs.map((ref) => ({ ref }));
}

/** The same task with other references to its sources, in the same order. */
export function withRefs<K extends ScanKind, Ref>(
  task: Sources<unknown>,
  refs: readonly Ref[],
): TaskOf<K, Ref> {
  const sources = task.sources.map((source, i) => ({ ...source, ref: refs[i] }));
  return { ...task, sources } as unknown as TaskOf<K, Ref>;
}

/** A head as a source. It knows only the streams that the ingester selected. */
export function openHead(ref: HeadView): Source {
  const streams = new HeadStreams(ref);
  const blocks = ref.blocks.map(openHeadBlock);
  return {
    id: ref.id,
    kind: "head",
    baseNs: blocks[0]?.baseNs ?? 0n,
    blockCount: blocks.length,
    numberOf: (block) => ref.blocks[block]!.number,
    streams,
    refuse: () => false,
    metadataBytes: (block) => {
      const offsets = blocks[block]!.metadataOffsets();
      const { count, rowStart } = blocks[block]!.runs;
      const bytes = new Float64Array(count);
      for (let run = 0; run < count; run++)
        bytes[run] = offsets[rowStart[run + 1]!]! - offsets[rowStart[run]!]!;
      return bytes;
    },
    metadataOffsets: (block) => blocks[block]!.metadataOffsets(),
    levels: (block, run) => countLevels(blocks[block]!, run),
    slices: () => undefined,
    facts: () => undefined,
    metadataNames: (block) => blocks[block]!.metadataNames(),
    runs: (block) => blocks[block]!.runs,
    block: (block) => blocks[block]!,
    readPages: () => undefined,
  };
}

/** Counts the rows of a run by level in memory; undefined where the levels are not in a dictionary. */
function countLevels(block: Block, run: number): LevelCounts | undefined {
  const column = block.metadata(detectedLevelName);
  if (column?.kind !== "dictionary") return undefined;
  const { codes, dictionary } = column;
  const { offsets } = block.lines();
  const { rowStart } = block.runs;
  const levels = textsOf(dictionary);
  const rows = levels.map(() => 0);
  const lineBytes = levels.map(() => 0);
  for (let row = rowStart[run]!; row < rowStart[run + 1]!; row++) {
    const level = codes[row]!;
    rows[level]! += 1;
    lineBytes[level]! += offsets[row + 1]! - offsets[row]!;
  }
  return { levels, rows, lineBytes };
}

/** The texts of the last dictionary: most blocks have the same one, of the usual levels. */
let known: { readonly dictionary: BytesColumn; readonly texts: readonly string[] } | undefined;

function textsOf(dictionary: BytesColumn): readonly string[] {
  if (known?.dictionary === dictionary) return known.texts;
  const { bytes, offsets } = dictionary;
  const texts = Array.from({ length: offsets.length - 1 }, (_, i) =>
    Buffer.from(bytes.subarray(offsets[i], offsets[i + 1])).toString(),
  );
  known = { dictionary, texts };
  return texts;
}

/** The selected streams of a head. Columns are made from the texts of the streams on first use. */
class HeadStreams implements LabelTable {
  readonly count: number;
  made = 0;
  readonly #ref: HeadView;
  readonly #columns = new Map<string, StreamColumn | undefined>();
  #texts: readonly string[] | undefined;
  #names: readonly string[] | undefined;
  #hashes: Uint32Array | undefined;
  /** Each stream's place in the selection plus one. */
  #places: Uint32Array | undefined;

  constructor(ref: HeadView) {
    this.#ref = ref;
    let count = 0;
    for (const stream of ref.streams) if (stream >= count) count = stream + 1;
    this.count = count;
  }

  get names(): readonly string[] {
    if (this.#names === undefined) {
      const names = new Set<string>();
      for (const text of this.#all()) forEachLabel(text, (name) => names.add(name));
      this.#names = [...names].sort();
    }
    return this.#names;
  }

  get hashes(): Uint32Array {
    this.#hashes ??= this.#hash();
    return this.#hashes;
  }

  match(matchers: readonly Matcher[]): Uint32Array {
    const { streams, matchers: asked } = this.#ref;
    // Most often a scan asks for what the ingester has selected.
    if (matchers.length === 0 || JSON.stringify(matchers) === JSON.stringify(asked)) {
      return streams.slice().sort();
    }
    const matched = matchLabels(this.count, (name) => this.column(name), matchers);
    return matched.filter((stream) => this.#place(stream) >= 0);
  }

  labels(stream: number): Labels {
    this.made++;
    return parseStreamText(this.text(stream));
  }

  text(stream: number): string {
    return this.#all()[this.#place(stream)] ?? "{}";
  }

  column(name: string): StreamColumn | undefined {
    if (!this.#columns.has(name)) this.#columns.set(name, this.#makeColumn(name));
    return this.#columns.get(name);
  }

  #makeColumn(wanted: string): StreamColumn | undefined {
    const codeOfValue = new Map<string, number>();
    const values: string[] = [];
    const codes = new Uint32Array(this.count);
    this.#all().forEach((text, place) => {
      forEachLabel(text, (name, value) => {
        if (name !== wanted) return name < wanted;
        const code = codeOfValue.get(value) ?? values.push(value);
        codeOfValue.set(value, code);
        codes[this.#ref.streams[place]!] = code;
        return false;
      });
    });
    if (values.length === 0) return undefined;
    const encoded = bytesOf(values);
    return {
      name: wanted,
      valueCount: values.length,
      value: (code) => values[code]!,
      ...encoded,
      find: (value) => codeOfValue.get(value) ?? 0,
      codes,
      streams: undefined,
      hashes: hashValues(encoded.bytes, encoded.offsets),
    };
  }

  #all(): readonly string[] {
    this.#texts ??= readTexts(this.#ref.texts);
    return this.#texts;
  }

  #hash(): Uint32Array {
    const hashes = new Uint32Array(2 * this.count);
    for (const name of this.names) {
      const { codes, hashes: ofValues } = this.column(name)!;
      for (const lane of [0, 1] as const) {
        const ofName = hashText(name, lane);
        for (const stream of this.#ref.streams) {
          const code = codes[stream]!;
          if (code === 0) continue;
          hashes[2 * stream + lane]! += hashPair(ofName, ofValues[2 * code - 2 + lane]!);
        }
      }
    }
    return hashes;
  }

  /** Place of a stream in the selection, or -1. */
  #place(stream: number): number {
    if (this.#places === undefined) {
      this.#places = new Uint32Array(this.count);
      for (let place = 0; place < this.#ref.streams.length; place++) {
        this.#places[this.#ref.streams[place]!] = place + 1;
      }
    }
    return (this.#places[stream] ?? 0) - 1;
  }
}

const encoder = new TextEncoder();

/** The texts as UTF-8, without gaps. */
function bytesOf(texts: readonly string[]) {
  // A code unit takes three bytes at most.
  const room = texts.reduce((sum, { length }) => sum + 3 * length, 0);
  const bytes = new Uint8Array(room);
  const offsets = new Uint32Array(texts.length + 1);
  let end = 0;
  texts.forEach((text, i) => {
    end += encoder.encodeInto(text, bytes.subarray(end)).written;
    offsets[i + 1] = end;
  });
  return { bytes: bytes.slice(0, end), offsets };
}

/** Calls back for each label of a canonical label text, in order, without making a label set. Stops when the callback returns false. */
export function forEachLabel(text: string, visit: (name: string, value: string) => unknown): void {
  // The parser knows all escapes.
  if (text.includes("\\")) {
    const labels = parseStreamText(text);
    for (const name of labels.names) if (visit(name, labelValue(labels, name)) === false) return;
    return;
  }
  for (let at = 1; at < text.length - 1; ) {
    const equals = text.indexOf('="', at);
    if (equals < 0) return;
    const end = text.indexOf('"', equals + 2);
    if (visit(text.slice(at, equals), text.slice(equals + 2, end)) === false) return;
    at = end + '", '.length;
  }
}
