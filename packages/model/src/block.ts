/** Nanoseconds of one UTC day; a block never spans two. */
export const dayNs = 86_400_000_000_000n;

/** Bytes that may be read behind the last byte of a column by SIMD loops: every byte column has them. */
export const paddingBytes = 64;

/** A column of byte strings: value i is `bytes[offsets[i] .. offsets[i+1])`, with padding behind the last. */
export interface BytesColumn {
  readonly bytes: Uint8Array;
  /** length: rows + 1 */
  readonly offsets: Uint32Array;
}

/** A column whose rows share values: row i has value `codes[i]` of the dictionary, which may be that of many blocks. */
export interface DictionaryColumn {
  readonly dictionary: BytesColumn;
  readonly codes: Uint8Array | Uint16Array;
}

/** One structured metadata name over the rows of a block; an empty value means that the row has none. */
export type MetadataColumn =
  | ({ readonly kind: "bytes" } & BytesColumn)
  | ({ readonly kind: "dictionary" } & DictionaryColumn);

/**
 * The runs of a block, in row order: run r holds the rows `rowStart[r] .. rowStart[r+1])` of stream `stream[r]`.
 * A stream may have several runs. In sealed blocks the rows of a run ascend in time; in a head block they may not.
 */
export interface RunTable {
  readonly count: number;
  /** Index into the stream table of the source. */
  readonly stream: Uint32Array;
  /** length: count + 1 */
  readonly rowStart: Uint32Array;
  /** ns since the base of the block; both ends inclusive */
  readonly minTime: Float64Array;
  readonly maxTime: Float64Array;
  /** Bytes of the lines, without metadata. */
  readonly lineBytes: Float64Array;
}

/**
 * Rows of one tenant and one UTC day in columns, about 256 KiB of lines: the unit of compression, skipping and
 * scanning, and the same for the ingester's head and for sealed segments. The header (runs, base) is there at
 * once; each column is read and decoded when it is first asked for.
 */
export interface Block {
  /** Start of the UTC day: ns since the epoch. */
  readonly baseNs: bigint;
  readonly rowCount: number;
  readonly runs: RunTable;
  /** ns since baseNs, exact (a day is less than 2^53 ns) */
  timestamps(): Float64Array;
  lines(): BytesColumn;
  metadataNames(): readonly string[];
  /** undefined when no row of the block has the name */
  metadata(name: string): MetadataColumn | undefined;
  /** Absent where nothing is known. */
  readonly facts?: BlockFacts | undefined;
  /** The column of a field that `facts.fields` names; undefined when no regular row has it. */
  field?(name: string): MetadataColumn | undefined;
}

/** What is known about the rows of an immutable block without its lines. Nobody's rows are left out: callers mask them. */
export interface BlockFacts {
  /** Texts (UTF-8) of which it is known which lines contain them: one list for all blocks of a source. */
  readonly texts: readonly Uint8Array[];
  /** The rows whose lines contain a text of the list, by its place. */
  rowsWith(text: number): RowSet;
  /** Fields of lines that the block has as columns; undefined when it has none. */
  readonly fields?: FieldFacts | undefined;
}

/**
 * Columns with what a parser stage without arguments finds in the lines of a block. A regular row has the value of the column
 * under each name, and nothing where the column has nothing, and its line is well formed.
 */
export interface FieldFacts {
  /** Names of labels that have a column. */
  readonly names: readonly string[];
  /**
   * Whether each regular row has a value under a name, and it is also what the parser finds when it is asked for the key that is
   * spelled like the name. (A key that is not found makes an empty label, which a comparison of numbers cannot read.)
   */
  isKeyed(name: string): boolean;
  /** How the lines of a stream are parsed: one of `fieldFamily`. The columns say nothing of another parser. */
  familyOf(stream: number): number;
  /** Rows that only the parser may judge. */
  readonly irregular: RowSet;
}

/** How the lines of a stream are parsed. */
export const fieldFamily = { none: 0, json: 1, logfmt: 2 } as const;

/** Some rows of a block: row r is one of them when bit r % 32 of word r >> 5 is set. Bits behind the last row are 0. */
export interface RowSet {
  readonly count: number;
  readonly words: Uint32Array;
}

/**
 * The log levels that discovery writes into the structured metadata `detected_level`.
 * In memory a level is its index here; 0 means that none was discovered.
 */
export const levelNames = [
  "",
  "unknown",
  "trace",
  "debug",
  "info",
  "warn",
  "error",
  "critical",
  "fatal",
] as const;

/** Level code of a row whose `detected_level` is not in the table and stands among its metadata. */
export const levelInMetadata = 255;

export const detectedLevelName = "detected_level";

/** The rows of a run by their `detected_level`. */
export interface LevelCounts {
  /** The empty text stands for rows without one. */
  readonly levels: readonly string[];
  readonly rows: readonly number[];
  /** Bytes of the lines. */
  readonly lineBytes: readonly number[];
}

/**
 * Steps that the times of a day may be cut into, ns: windows of queries begin and end at multiples of the small one most often. A slice of a
 * step holds the times behind its begin up to its end, as windows do.
 */
export const sliceStepsNs = [5_000_000_000, 60_000_000_000] as const;

/** The rows of a run by slices of time: those of slice `first + i`, of times `> (first + i) * stepNs`, stand at `from + i`. */
export interface TimeSlices {
  readonly stepNs: number;
  readonly first: number;
  /** Rows of many runs; this one has those at [from, to). */
  readonly rows: Uint32Array;
  /** Bytes of the lines. */
  readonly lineBytes: Uint32Array;
  readonly from: number;
  readonly to: number;
}

/** The slice of a time, ns since the begin of the day. */
export function sliceOf(time: number, stepNs: number): number {
  return Math.ceil(time / stepNs) - 1;
}

/** Whether every window of a query, `[startNs, startNs + rangeNs)` and each step later, is made of whole slices. */
export function areSliced(startNs: bigint, stepNs: bigint, rangeNs: bigint): boolean {
  const slice = BigInt(sliceStepsNs[0]);
  return [startNs - 1n, stepNs, rangeNs].every((ns) => ns % slice === 0n);
}

/** A sealed segment and where its bytes are. */
export interface SegmentRef {
  readonly kind: "segment";
  /** Unique; the same segment has one id on the ingester's disk and in the object store. */
  readonly id: string;
  readonly tenant: string;
  /** ns since the epoch, inclusive */
  readonly minNs: bigint;
  readonly maxNs: bigint;
  readonly location: SegmentLocation;
  readonly sizeBytes: number;
  /** Ids, of those that the asker has, of segments whose rows are in this one. */
  readonly replaces?: readonly string[];
  /** Whether it surely shares no row with any other segment of its listing that is so. */
  readonly isApart?: boolean;
}

/** Where the bytes are: a file of this machine, or of the instance that is named, or an object of the store. */
export type SegmentLocation =
  | { readonly kind: "file"; readonly path: string; readonly instance?: string }
  | { readonly kind: "object"; readonly key: string };
