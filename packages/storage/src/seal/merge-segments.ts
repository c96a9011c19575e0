import { lowerBound } from "@skald/model";
import { type NameSplit, splitMetadata } from "../segment/layout.js";
import type { Segment } from "../segment/segment.js";
import {
  type SealedSegment,
  SegmentWriter,
  type SegmentWriterOptions,
} from "../segment/write/writer.js";
import { chooseFields, type FieldChoice, noChoice } from "./choose-fields.js";
import { BlockCutter } from "./cut-blocks.js";
import { BlockWindow, type DroppedRows, InputCursor, type MergeInput } from "./input-cursor.js";
import { MoreNumbers } from "./open-heads.js";
import { RowRanges, StrandMerger } from "./order-rows.js";

export interface MergeOptions
  extends Pick<
    SegmentWriterOptions,
    "tenant" | "id" | "path" | "level" | "filters" | "sync" | "texts"
  > {
  /**
   * Segments of one tenant and day, opened for synchronous reads, in order of arrival: among equal times the rows of an
   * earlier one come first.
   */
  readonly inputs: readonly MergeInput[];
  /** Which fields of lines become columns; none if not given. */
  readonly fields?: FieldChoice | undefined;
}

/**
 * Level of zstd for segments that stay. It takes less than 6 times as long as level 1 with the tables of zstd-handle.ts, for
 * 5 % fewer bytes.
 */
const compactLevel = 9;

/**
 * Merges segments into one, as if all their rows were sealed at once: sorted by stream, then time, without doubled rows.
 * Each input costs the memory of a block and an index. Yields after about a block: the caller may go on, wait, or give up
 * with `return()`, and then there is no file. The result is undefined when no row is left. Blocks the thread in each step.
 * Figures: bench/compact.mjs.
 */
export function* mergeSegments({
  inputs,
  fields: choice = noChoice,
  ...output
}: MergeOptions): Generator<undefined, SealedSegment | undefined, undefined> {
  const streams = numberStreams(inputs);
  if (streams.texts.length === 0) return undefined;
  const metadata = metadataSplit(inputs);
  const fields = chooseFields(
    inputs.map(({ segment }) => segment),
    choice,
  );
  const window = new BlockWindow(metadata, new MoreNumbers(metadata.more));
  const writer = new SegmentWriter({
    ...{ ...output, fields, metadata },
    baseNs: inputs[0]!.segment.baseNs,
    streamTexts: streams.texts,
    level: output.level ?? compactLevel,
    replaces: inputs.map(({ segment }) => segment.id),
    digests: inputs.some(({ segment }) => hasDigests(segment)),
  });
  let isDone = false;
  try {
    let written = 0;
    const cutter = new BlockCutter(window, (block) => {
      writer.append(block);
      window.release();
      written++;
    });
    const merge = new StreamMerge(window, cutter);
    const cursors = inputs.map(
      ({ segment, dropped }, i) =>
        new InputCursor({ segment, dropped, window, numbers: streams.ofInput[i]! }),
    );
    let seen = 0;
    for (let { stream, some } = nextStream(cursors); some.length > 0; ) {
      // A stream whose rows are all dropped has no number in the result.
      while (merge.round(streams.kept[stream] ?? -1, stream, some)) {
        if (written > seen) yield;
        seen = written;
      }
      ({ stream, some } = nextStream(cursors));
    }
    cutter.finish();
    const sealed = writer.finish();
    isDone = true;
    return sealed;
  } finally {
    if (!isDone) writer.abort();
  }
}

/** Whether rows of the segment may have copies in others. */
function hasDigests(segment: Segment): boolean {
  for (let stream = 0; stream < segment.streamCount; stream++)
    if (segment.digests(stream) !== undefined) return true;
  return false;
}

/** The first stream that any cursor is at, and those that are at it, in order of arrival. */
function nextStream(cursors: readonly InputCursor[]): { stream: number; some: InputCursor[] } {
  let stream = Number.POSITIVE_INFINITY;
  for (const cursor of cursors) if (cursor.stream < stream) stream = cursor.stream;
  if (stream === Number.POSITIVE_INFINITY) return { stream, some: [] };
  return { stream, some: cursors.filter((cursor) => cursor.stream === stream) };
}

/** Hands on the rows of one stream of several inputs, in rounds of what overlaps. */
class StreamMerge {
  readonly #window: BlockWindow;
  readonly #cutter: BlockCutter;
  readonly #merger: StrandMerger;
  readonly #strands = new RowRanges();

  constructor(window: BlockWindow, cutter: BlockCutter) {
    this.#window = window;
    this.#cutter = cutter;
    this.#merger = new StrandMerger(window, cutter);
  }

  /** Hands on the next rows under the number of the stream to write; false when there are none. */
  round(number: number, stream: number, inputs: readonly InputCursor[]): boolean {
    const some = inputs.filter((input) => input.stream === stream);
    if (some.length === 0) return false;
    const until = roundEnd(some);
    const strands = this.#strands;
    strands.clear();
    let from = 0;
    for (const input of some)
      if (input.min <= until) {
        input.takeUpTo(until, strands);
        from++;
      }
    // One input has no doubled rows.
    if (from === 1) strands.emit(number, this.#cutter);
    else this.#merger.emit(number, strands, false);
    this.#window.endRound();
    return true;
  }
}

/**
 * The time, inclusive, up to which every input can be taken with one of its runs read: the end of the run that begins first,
 * or of another run that begins before that and ends earlier while more rows follow it.
 */
function roundEnd(inputs: readonly InputCursor[]): number {
  let first = inputs[0]!;
  for (const input of inputs) if (input.min < first.min) first = input;
  let until = first.max;
  for (const input of inputs) {
    if (input.min <= until && input.max < until && input.minAfter !== undefined) until = input.max;
  }
  return until;
}

/** Splits the metadata names of all inputs by the rows that have them. */
function metadataSplit(inputs: readonly MergeInput[]): NameSplit {
  const rows = new Map<string, number>();
  for (const { segment } of inputs)
    for (const [name, count] of segment.metadataRows())
      rows.set(name, (rows.get(name) ?? 0) + count);
  return splitMetadata(rows);
}

/** The streams of all inputs, numbered through in the order of their texts. */
interface MergedStreams {
  /** Texts of those that keep rows, ascending. */
  readonly texts: readonly string[];
  /** Place in `texts` of each stream; -1 for one that keeps no row. */
  readonly kept: Int32Array;
  /** By input, the numbers of its streams, ascending. */
  readonly ofInput: readonly Uint32Array[];
}

function numberStreams(inputs: readonly MergeInput[]): MergedStreams {
  const textsOf = inputs.map(({ segment }) =>
    Array.from({ length: segment.streamCount }, (_, stream) => segment.text(stream)),
  );
  const all = [...new Set(textsOf.flat())].sort();
  const numbers = new Map(all.map((text, number) => [text, number]));
  const ofInput = textsOf.map((texts) => Uint32Array.from(texts, (text) => numbers.get(text)!));
  const hasRows = new Uint8Array(all.length);
  inputs.forEach(({ segment, dropped }, i) => {
    for (let block = 0; block < segment.blockCount; block++) {
      const { count, stream, rowStart } = segment.runs(block);
      const rows = rowsDropped(dropped, block);
      for (let run = 0; run < count; run++) {
        const from = rowStart[run]!;
        const to = rowStart[run + 1]!;
        const gone = rows === undefined ? 0 : lowerBound(rows, to) - lowerBound(rows, from);
        if (gone < to - from) hasRows[ofInput[i]![stream[run]!]!] = 1;
      }
    }
  });
  let next = 0;
  const kept = Int32Array.from(hasRows, (has) => (has === 1 ? next++ : -1));
  return { texts: all.filter((_, number) => hasRows[number] === 1), kept, ofInput };
}

function rowsDropped(dropped: DroppedRows | undefined, block: number): Uint32Array | undefined {
  if (dropped === undefined) return undefined;
  const at = lowerBound(dropped.blocks, block);
  return dropped.blocks[at] === block ? dropped.rows[at] : undefined;
}
