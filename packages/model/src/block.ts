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

/** A column with few values: row i has `dictionary[codes[i]]`. */
export interface DictionaryColumn {
  readonly dictionary: readonly string[];
  readonly codes: Uint8Array;
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
}
