import { type BytesColumn, parseStreamText, type RunTable } from "@skald/model";
import type { LabelColumn } from "../match-labels.js";
import { labelColumns } from "../streams.js";

/** Most columns of labels and of structured metadata in one file; the other names go to a map column. */
export const maxLabelColumns = 64;
export const maxMetadataColumns = 32;

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
  readonly metadata: ReadonlyMap<string, BytesColumn>;
}

/** Decides the layout. Labels get columns by the number of streams that have them, metadata in the order given. */
export function segmentLayout(options: {
  readonly baseNs: bigint;
  readonly level: number;
  readonly streamTexts: readonly string[];
  readonly metadataNames: readonly string[];
}): SegmentLayout {
  const labels = labelColumns(options.streamTexts.map(parseStreamText));
  const byName = new Map(labels.map((column) => [column.name, column]));
  const preferred = [...labels].sort((a, b) => b.codes.length - a.codes.length);
  const labelSplit = splitNames(
    preferred.map((column) => column.name),
    maxLabelColumns,
  );
  const metadataSplit = splitNames(options.metadataNames, maxMetadataColumns);
  const columnOf = (name: string) => byName.get(name)!;
  return {
    baseNs: options.baseNs,
    level: options.level,
    streamCount: options.streamTexts.length,
    labels,
    labelColumns: labelSplit.columns.map(columnOf),
    labelsMore: labelSplit.more.map(columnOf),
    metadataColumns: metadataSplit.columns,
    metadataMore: metadataSplit.more,
  };
}

interface NameSplit {
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
