import type { Block, Labels, LevelCounts, TimeSlices } from "@skald/model";

/**
 * Labels of the streams of one source by stream number. Its identity stands for the source: give the same function
 * for all blocks of a source, and another for another source.
 */
export interface StreamLabels {
  (stream: number): Labels;
  /** Only the labels of some names; streams that are equal in them share one object. */
  readonly only?: (names: readonly string[]) => (stream: number) => Labels;
}

/** Which rows of a block a scan may use: the rows of some runs, without a few. */
export interface RunSelection {
  /** Numbers of the runs, ascending. */
  readonly runs: Uint32Array;
  /** Rows to leave out (copies in another source, deleted rows), ascending. */
  readonly excluded?: Uint32Array;
}

/** One run of a block's header: what `addRun` may count without a column. */
export interface RunHeader {
  readonly stream: number;
  readonly rows: number;
  /** ns since baseNs, both inclusive */
  readonly minTime: number;
  readonly maxTime: number;
  readonly lineBytes: number;
  /** Its rows by `detected_level`; absent, or undefined, when that is not known. */
  readonly levels?: () => LevelCounts | undefined;
  /** Its rows by slices of time, in the same way. */
  readonly slices?: () => TimeSlices | undefined;
}

/** What is known of a block before any column is read. */
export interface BlockSummary {
  /** ns since the epoch */
  readonly baseNs: bigint;
  readonly metadataNames: readonly string[];
}

/** The columns that `addBlock` may ask for, so that a reader can fetch them before. */
export interface ColumnNeeds {
  readonly lines: boolean;
  /** true: all; else the names of interest, which a block may lack. */
  readonly metadata: true | readonly string[];
  readonly timestamps: boolean;
}

/** Calls back for the stretches of rows of each selected run that have no excluded row in them. */
export function forEachStretch(
  block: Pick<Block, "runs">,
  selection: RunSelection,
  visit: (run: number, from: number, to: number) => void,
): void {
  const { rowStart } = block.runs;
  const { runs, excluded } = selection;
  let next = 0;
  for (const run of runs) {
    let from = rowStart[run]!;
    const to = rowStart[run + 1]!;
    if (excluded !== undefined) {
      while (next < excluded.length && excluded[next]! < from) next++;
      for (; next < excluded.length && excluded[next]! < to; next++) {
        const row = excluded[next]!;
        if (row > from) visit(run, from, row);
        from = row + 1;
      }
    }
    if (from < to) visit(run, from, to);
  }
}
