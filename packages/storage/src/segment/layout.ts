import { type BytesColumn, parseStreamText, type RunTable } from "@skald/model";
import type { LabelColumn } from "./streams.js";
import { labelColumns } from "./streams.js";

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

/** Which names of structured metadata get columns: the first ones in the order given. */
export function splitMetadata(names: readonly string[]): NameSplit {
  return splitNames(names, maxMetadataColumns);
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
