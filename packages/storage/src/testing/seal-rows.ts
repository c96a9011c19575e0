import {
  type Block,
  type BytesColumn,
  dayNs,
  detectedLevelName,
  formatLabels,
  labelsFromObject,
  type MetadataColumn,
  paddingBytes,
} from "@skald/model";
import type { SealHead } from "../seal/open-heads.js";
import type { Segment } from "../segment/segment.js";

/** One row as tests write it. */
export interface Row {
  readonly labels: Readonly<Record<string, string>>;
  /** ns since the base */
  readonly time: number;
  readonly line: string | Uint8Array;
  readonly metadata?: Readonly<Record<string, string>>;
}

/** One row as tests compare it: the line in latin1, so that any bytes are seen. */
export interface PlainRow {
  readonly text: string;
  readonly time: number;
  readonly line: string;
  readonly metadata: Readonly<Record<string, string>>;
}

export const fixtureBaseNs = 20_777n * dayNs;

/** A head with one block per list of rows; a run per stretch of rows of one stream. */
export function headOf(blocks: readonly (readonly Row[])[], baseNs = fixtureBaseNs): SealHead {
  const streamTexts: string[] = [];
  const streamOf = (row: Row) => {
    const text = formatLabels(labelsFromObject(row.labels));
    const known = streamTexts.indexOf(text);
    return known >= 0 ? known : streamTexts.push(text) - 1;
  };
  return { blocks: blocks.map((rows) => blockOf(rows, streamOf, baseNs)), streamTexts };
}

/** What a segment of the rows must hold: sorted, without duplicates. */
export function sealedRows(rows: readonly Row[]): PlainRow[] {
  const plain = rows.map(plainRow);
  const seen = new Set<string>();
  return plain
    .map((row, arrival) => ({ row, arrival }))
    .sort(
      (a, b) =>
        (a.row.text < b.row.text ? -1 : a.row.text > b.row.text ? 1 : 0) ||
        a.row.time - b.row.time ||
        a.arrival - b.arrival,
    )
    .map(({ row }) => row)
    .filter((row) => {
      const key = JSON.stringify(row);
      return seen.has(key) ? false : seen.add(key) !== undefined;
    });
}

/** Every row of a segment, column by column through its blocks. */
export function rowsOf(segment: Segment): PlainRow[] {
  return Array.from({ length: segment.blockCount }, (_, b) => segment.block(b)).flatMap((block) =>
    rowsOfBlock(block, (stream) => segment.text(stream)),
  );
}

/** Every row of a block, with the text that `textOf` has for its stream. */
export function rowsOfBlock(block: Block, textOf: (stream: number) => string): PlainRow[] {
  const { runs } = block;
  const rows: PlainRow[] = [];
  const metadata = metadataOf(block);
  for (let run = 0; run < runs.count; run++) {
    const text = textOf(runs.stream[run]!);
    for (let row = runs.rowStart[run]!; row < runs.rowStart[run + 1]!; row++) {
      rows.push({
        text,
        time: block.timestamps()[row]!,
        line: valueAt(block.lines(), row).toString("latin1"),
        metadata: metadata[row]!,
      });
    }
  }
  return rows;
}

/** A row as tests compare it. */
export function plainRow(row: Row): PlainRow {
  const metadata: Record<string, string> = {};
  for (const name of Object.keys(row.metadata ?? {}).sort()) {
    const value = row.metadata?.[name] ?? "";
    if (value !== "") metadata[name] = value;
  }
  return {
    text: formatLabels(labelsFromObject(row.labels)),
    time: row.time,
    line: Buffer.from(row.line as string).toString("latin1"),
    metadata,
  };
}

/** The metadata of each row; column by column, as a block may have thousands. */
function metadataOf(block: Block): Record<string, string>[] {
  const rows = Array.from({ length: block.rowCount }, (): Record<string, string> => ({}));
  for (const name of [...block.metadataNames()].sort()) {
    const column = block.metadata(name);
    if (column === undefined) throw new Error(`no column for ${name}`);
    for (let row = 0; row < block.rowCount; row++) {
      const value = metadataValue(column, row);
      if (value !== "") rows[row]![name] = value;
    }
  }
  return rows;
}

function metadataValue(column: MetadataColumn, row: number): string {
  if (column.kind === "dictionary")
    return valueAt(column.dictionary, column.codes[row]!).toString("utf8");
  return column.offsets[row] === column.offsets[row + 1]
    ? ""
    : valueAt(column, row).toString("utf8");
}

function valueAt({ bytes, offsets }: BytesColumn, row: number): Buffer {
  return Buffer.from(bytes.subarray(offsets[row], offsets[row + 1]));
}

function blockOf(rows: readonly Row[], streamOf: (row: Row) => number, baseNs: bigint): Block {
  const lines = bytesColumn(rows.map((row) => Buffer.from(row.line as string)));
  const metadata = metadataColumns(rows);
  const names = [...metadata.keys()];
  const timestamps = Float64Array.from(rows, (row) => row.time);
  return {
    baseNs,
    rowCount: rows.length,
    runs: runsOf(rows, streamOf, timestamps, lines),
    timestamps: () => timestamps,
    lines: () => lines,
    metadataNames: () => names,
    metadata: (name) => metadata.get(name),
  };
}

const noBytes = new Uint8Array(0);

function metadataColumns(rows: readonly Row[]): Map<string, MetadataColumn> {
  const byName = new Map<string, string[]>();
  for (const [i, { metadata = {} }] of rows.entries())
    for (const [name, value] of Object.entries(metadata)) {
      const values = byName.get(name) ?? new Array<string>(rows.length).fill("");
      byName.set(name, values);
      values[i] = value;
    }
  return new Map([...byName].map(([name, values]) => [name, metadataColumn(name, values)]));
}

function metadataColumn(name: string, values: readonly string[]): MetadataColumn {
  if (name !== detectedLevelName) {
    const bytes = values.map((value) => (value === "" ? noBytes : Buffer.from(value)));
    return { kind: "bytes", ...bytesColumn(bytes) };
  }
  const dictionary = [...new Set(["", ...values])];
  return {
    kind: "dictionary",
    dictionary: bytesColumn(dictionary.map((text) => Buffer.from(text))),
    codes: Uint8Array.from(values, (value) => dictionary.indexOf(value)),
  };
}

function bytesColumn(values: readonly Uint8Array[]): BytesColumn {
  const offsets = new Uint32Array(values.length + 1);
  values.forEach((value, i) => {
    offsets[i + 1] = offsets[i]! + value.byteLength;
  });
  const parts = values.filter((value) => value.byteLength > 0);
  return { bytes: Buffer.concat([...parts, Buffer.alloc(paddingBytes)]), offsets };
}

function runsOf(
  rows: readonly Row[],
  streamOf: (row: Row) => number,
  timestamps: Float64Array,
  lines: BytesColumn,
): Block["runs"] {
  const streams = rows.map(streamOf);
  const starts = streams.flatMap((stream, row) => (stream === streams[row - 1] ? [] : [row]));
  const ends = [...starts.slice(1), rows.length];
  const byRun = (of: (from: number, to: number) => number) =>
    Float64Array.from(starts, (from, run) => of(from, ends[run]!));
  return {
    count: starts.length,
    stream: Uint32Array.from(starts, (row) => streams[row]!),
    rowStart: Uint32Array.from([...starts, rows.length]),
    minTime: byRun((from, to) => Math.min(...timestamps.subarray(from, to))),
    maxTime: byRun((from, to) => Math.max(...timestamps.subarray(from, to))),
    lineBytes: byRun((from, to) => lines.offsets[to]! - lines.offsets[from]!),
  };
}
