import type { Block, Matcher, SegmentRef } from "@skald/model";

/** What a thread of this process can read: a file or object, or blocks in shared memory. */
export type LocalRef = SegmentRef | HeadView;

/** The matching streams of one unsealed head, and its blocks in shared memory; a thread of this process can read it. */
export interface HeadView {
  readonly kind: "head";
  readonly id: string;
  readonly tenant: string;
  /** ns since the epoch, inclusive */
  readonly minNs: bigint;
  readonly maxNs: bigint;
  /** Streams of the selection: numbers as the runs of the blocks use them, and their canonical label texts. */
  readonly streams: Uint32Array;
  readonly texts: SharedTexts;
  /** What the selection asked of the streams. */
  readonly matchers: readonly Matcher[];
  readonly blocks: readonly HeadBlockRef[];
  /** Bytes of the rows of these streams, roughly. */
  readonly sizeBytes: number;
}

/**
 * A head block up to a row count: all columns in one SharedArrayBuffer that only grows, laid out by
 * `head-block.ts`.
 */
export interface HeadBlockRef {
  /** Its place among all blocks of its head, of which a view may have some only. */
  readonly number: number;
  readonly memory: SharedArrayBuffer;
  /** Rows, runs, metadata pairs and bytes that are valid in this view. */
  readonly rowCount: number;
  readonly runCount: number;
  readonly pairCount: number;
  readonly baseNs: bigint;
  readonly metaNames: readonly string[];
}

/** A head block as it is opened for reading: its metadata comes in columns, or row by row as it lies in memory. */
export interface OpenHeadBlock extends Block {
  metadataPairs(): MetadataPairs;
  /** Bytes of names and values of the structured metadata of all rows before each row; one more than rows. */
  metadataOffsets(): Float64Array;
}

/**
 * Metadata row by row: row r has the pairs `start[r] .. start[r+1])`. A name may come twice in a row, and the last value
 * holds; an empty value is none. Levels that the table names are in none of the pairs.
 */
export interface MetadataPairs {
  readonly names: readonly string[];
  readonly start: Uint32Array;
  /** Index into `names` of each pair. */
  readonly name: Uint32Array;
  /** Value of pair p: `bytes[offsets[p] .. offsets[p+1])`. */
  readonly offsets: Uint32Array;
  readonly bytes: Uint8Array;
}

/** Texts in shared memory, which cross to a thread without a copy. */
interface SharedTexts {
  /** One behind the other, as UTF-8. */
  readonly bytes: Uint8Array;
  /** Where each text ends in all of them together, in UTF-16 code units. */
  readonly ends: Uint32Array;
}

export function shareTexts(texts: readonly string[]): SharedTexts {
  const all = Buffer.from(texts.join(""));
  const bytes = new Uint8Array(new SharedArrayBuffer(all.length));
  bytes.set(all);
  const ends = new Uint32Array(new SharedArrayBuffer(4 * texts.length));
  let end = 0;
  texts.forEach((text, i) => {
    end += text.length;
    ends[i] = end;
  });
  return { bytes, ends };
}

/** Streams by number, with their canonical label texts, for another thread. */
export interface SharedStreams {
  readonly streams: Uint32Array;
  readonly texts: SharedTexts;
}

/** The texts of streams by number; empty for numbers that are not among them. */
export function textsByNumber({ streams, texts }: SharedStreams): string[] {
  const byNumber: string[] = [];
  for (const stream of streams) while (byNumber.length <= stream) byNumber.push("");
  readTexts(texts).forEach((text, i) => {
    byNumber[streams[i]!] = text;
  });
  return byNumber;
}

export function readTexts({ bytes, ends }: SharedTexts): string[] {
  const all = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString();
  return Array.from(ends, (end, i) => all.slice(ends[i - 1] ?? 0, end));
}
