import {
  type BytesColumn,
  detectedLevelName,
  internal,
  type Labels,
  parseStreamText,
  type RunTable,
  refuseNewerVersion,
} from "@skald/model";
import { type SectionWriter, section } from "./index-sections.js";

/** Most columns of labels and of structured metadata in one file; the other names go to a map column. */
const maxLabelColumns = 64;
const maxMetadataColumns = 32;

/** What the whole of a file shares: the labels of its streams, and which names are columns. */
export interface SegmentLayout {
  readonly baseNs: bigint;
  /** Level of zstd. */
  readonly level: number;
  readonly streamCount: number;
  /** All labels, sorted by name. */
  readonly labels: readonly LabelColumn[];
  /** Labels that are columns of the file, and those that share `labels_more`. */
  readonly labelColumns: readonly LabelColumn[];
  readonly labelsMore: readonly LabelColumn[];
  readonly metadataColumns: readonly string[];
  /** Names of structured metadata in `metadata_more`, by their numbers there. */
  readonly metadataMore: readonly string[];
}

/** A block to write: its rows ascend by stream, then time, and each stream has one run. */
export interface SortedBlock {
  readonly rowCount: number;
  /** Streams are numbered in the order of their texts. */
  readonly runs: RunTable;
  /** ns since the base */
  readonly timestamps: Float64Array;
  readonly lines: BytesColumn;
  /** Bytes before `lines.bytes` in its buffer that may be overwritten; saves a copy when enough. */
  readonly lineHeadroom: number;
  /** Metadata that has columns. */
  readonly metadata: ReadonlyMap<string, BytesColumn>;
  /** The other metadata: names by their numbers in `metadataMore`, ascending in each row, and so in `used`. */
  readonly more: MapRows;
}

/** The pairs of a block, row by row: those of row r are `pairStart[r] .. pairStart[r+1])`. */
export interface MapRows {
  readonly rowCount: number;
  readonly pairStart: Uint32Array;
  /** Number of the name of each pair, as the caller counts names. */
  readonly names: Uint32Array;
  readonly valueLengths: Uint32Array;
  /** The values one behind the other, in the order of the pairs. */
  readonly values: Uint8Array;
  /** The names that occur, each once, in the order in which new ones enter the dictionary. */
  readonly used: readonly number[];
}

/**
 * Decides which names of structured metadata get columns, given in how many rows each name has a value: the level, which
 * most rows have, then the names in most rows.
 */
export function splitMetadata(rows: ReadonlyMap<string, number>): NameSplit {
  const rowsOf = (name: string) =>
    name === detectedLevelName ? Number.POSITIVE_INFINITY : rows.get(name)!;
  const preferred = [...rows.keys()].sort().sort((a, b) => rowsOf(b) - rowsOf(a));
  return splitNames(preferred, maxMetadataColumns);
}

/** Decides the layout. Labels get columns by the number of streams that have them. */
export function segmentLayout(options: {
  readonly baseNs: bigint;
  readonly level: number;
  readonly streamTexts: readonly string[];
  readonly metadata: NameSplit;
}): SegmentLayout {
  const labels = labelColumns(options.streamTexts.map(parseStreamText));
  const byName = new Map(labels.map((column) => [column.name, column]));
  const preferred = [...labels].sort((a, b) => b.codes.length - a.codes.length);
  const labelSplit = splitNames(
    preferred.map((column) => column.name),
    maxLabelColumns,
  );
  const columnOf = (name: string) => byName.get(name)!;
  return {
    baseNs: options.baseNs,
    level: options.level,
    streamCount: options.streamTexts.length,
    labels,
    labelColumns: labelSplit.columns.map(columnOf),
    labelsMore: labelSplit.more.map(columnOf),
    metadataColumns: options.metadata.columns,
    metadataMore: options.metadata.more,
  };
}

/** Names of a kind: those that are columns, and the others. */
export interface NameSplit {
  /** Names with a column of their own, sorted. */
  readonly columns: readonly string[];
  /** The other names, in the order given. */
  readonly more: readonly string[];
}

/**
 * Splits names, given in order of preference, into those that get a column and the rest. Of names that differ only
 * by case the first gets it, because several readers do not tell columns apart by case.
 */
function splitNames(preferred: readonly string[], maxColumns: number): NameSplit {
  const columns: string[] = [];
  const more: string[] = [];
  const taken = new Set<string>();
  for (const name of preferred) {
    const folded = name.toLowerCase();
    if (name === "" || columns.length === maxColumns || taken.has(folded)) {
      more.push(name);
      continue;
    }
    taken.add(folded);
    columns.push(name);
  }
  return { columns: columns.sort(), more };
}

/** One label name over the streams of a segment: value `codes[i]` belongs to stream `streams[i]`. */
export interface LabelColumn {
  readonly name: string;
  /** Sorted, no value twice. */
  readonly values: readonly string[];
  /** Streams that have the name, ascending; undefined when all have it. */
  readonly streams: Uint32Array | undefined;
  readonly codes: Uint32Array;
}

/** Turns the label sets of the streams into one column per name, sorted by name. */
export function labelColumns(streams: readonly Labels[]): LabelColumn[] {
  const byName = new Map<string, { streams: number[]; values: string[] }>();
  streams.forEach((labels, stream) => {
    for (let i = 0; i < labels.names.length; i++) {
      const name = labels.names[i]!;
      let column = byName.get(name);
      if (column === undefined) {
        column = { streams: [], values: [] };
        byName.set(name, column);
      }
      column.streams.push(stream);
      column.values.push(labels.values[i]!);
    }
  });
  return [...byName.keys()].sort().map((name) => {
    const column = byName.get(name)!;
    const values = [...new Set(column.values)].sort();
    const codeOf = new Map(values.map((value, code) => [value, code]));
    return {
      name,
      values,
      streams:
        column.streams.length === streams.length ? undefined : Uint32Array.from(column.streams),
      codes: Uint32Array.from(column.values, (value) => codeOf.get(value)!),
    };
  });
}

export function writeStreams(sections: SectionWriter, columns: readonly LabelColumn[]): void {
  sections.texts(
    section.labelNames,
    columns.map((column) => column.name),
  );
  columns.forEach((column, ordinal) => {
    sections.texts(section.labelValues, column.values, ordinal);
    if (column.streams !== undefined) {
      sections.numbers(section.labelStreams, column.streams, ordinal);
    }
    sections.codes(section.labelCodes, column.codes, ordinal);
  });
}

/**
 * The 24 bytes before the Parquet footer that lead to the own index:
 *
 *     u64 index offset | u32 index bytes | u32 crc32 of the index as stored | "SKALDIX1"
 */
export interface SegmentTrailer {
  readonly indexOffset: number;
  readonly indexBytes: number;
  readonly indexCrc: number;
  readonly footerBytes: number;
}

export const trailerBytes = 24;
export const trailerMagic = "SKALDIX1";
const version = 1;
/** u32 length of the footer | "PAR1" */
export const endBytes = 8;

/** Bytes behind the index: where the trailer begins, counted from the end of the file. */
export function trailerFromEnd(end: Uint8Array, name: string): number {
  const bytes = Buffer.from(end.buffer, end.byteOffset, end.byteLength);
  if (bytes.byteLength < endBytes || bytes.toString("latin1", bytes.length - 4) !== "PAR1") {
    throw internal(`segment ${name} does not end like a parquet file`);
  }
  return bytes.readUInt32LE(bytes.length - endBytes) + endBytes + trailerBytes;
}

/**
 * Parses the trailer. Throws `internal` when there is none: the file is foreign, or its end is damaged; `newer_version` when a
 * later program wrote it.
 */
export function parseTrailer(
  trailer: Uint8Array,
  footerBytes: number,
  name: string,
): SegmentTrailer {
  const bytes = Buffer.from(trailer.buffer, trailer.byteOffset, trailerBytes);
  const magic = bytes.toString("latin1", 16, 24);
  if (magic !== trailerMagic) {
    const found = /^SKALDIX(\d)$/.exec(magic)?.[1];
    refuseNewerVersion(`segment ${name}`, { found: Number(found), known: version });
    throw internal(`segment ${name} has no index: it was not written by this store, or is damaged`);
  }
  return {
    indexOffset: Number(bytes.readBigUInt64LE(0)),
    indexBytes: bytes.readUInt32LE(8),
    indexCrc: bytes.readUInt32LE(12),
    footerBytes,
  };
}
