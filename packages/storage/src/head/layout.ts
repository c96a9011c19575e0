import { paddingBytes } from "@skald/model";

/** How many of each a head block has room for; fixed when the block is made. */
export interface HeadBlockCapacity {
  readonly rows: number;
  readonly runs: number;
  readonly pairs: number;
  readonly lineBytes: number;
  readonly valueBytes: number;
}

/**
 * Rows of a block times its distinct metadata names at most: columns of all names of a block take that many offsets, so
 * a block of many names has few rows.
 */
export const maxMetadataCells = 1024 * 1024;

/** The columns of a head block as views of its shared memory, see docs/formats/head.md. */
export interface HeadBlockColumns {
  readonly capacity: HeadBlockCapacity;
  /** ns since the start of the day */
  readonly timestamps: Float64Array;
  readonly runMin: Float64Array;
  readonly runMax: Float64Array;
  /** Line of row r: `lines[lineOffset[r] .. lineOffset[r+1])` */
  readonly lineOffset: Uint32Array;
  /** Metadata of row r: the pairs `metaStart[r] .. metaStart[r+1]` */
  readonly metaStart: Uint32Array;
  readonly pairName: Uint32Array;
  /** Value of pair p: `values[valueOffset[p] .. valueOffset[p+1])` */
  readonly valueOffset: Uint32Array;
  readonly runStream: Uint32Array;
  readonly runStart: Uint32Array;
  readonly levels: Uint8Array;
  readonly lines: Uint8Array;
  readonly values: Uint8Array;
}

/** Bytes of shared memory that a block of this capacity needs. */
export function headBlockBytes(capacity: HeadBlockCapacity): number {
  return placesOf(capacity).end;
}

/** Writes the header of a new block and returns its columns. The memory may hold anything before. */
export function createHeadColumns(
  memory: SharedArrayBuffer,
  capacity: HeadBlockCapacity,
): HeadBlockColumns {
  const { rows, runs, pairs, lineBytes, valueBytes } = capacity;
  new Uint32Array(memory, 0, 6).set([layoutVersion, rows, runs, pairs, lineBytes, valueBytes]);
  const columns = viewColumns(memory, capacity);
  columns.lineOffset[0] = 0;
  columns.metaStart[0] = 0;
  columns.valueOffset[0] = 0;
  return columns;
}

/** The columns of a block that was made in this or another thread. Throws when the memory holds no head block. */
export function openHeadColumns(memory: SharedArrayBuffer): HeadBlockColumns {
  const header = new Uint32Array(memory, 0, 6);
  if (header[0] !== layoutVersion) {
    throw new Error(`head block layout ${header[0]} is not known; expected ${layoutVersion}`);
  }
  const [, rows, runs, pairs, lineBytes, valueBytes] = header as unknown as SixNumbers;
  return viewColumns(memory, { rows, runs, pairs, lineBytes, valueBytes });
}

type SixNumbers = [number, number, number, number, number, number];

const layoutVersion = 1;
const headerBytes = 64;

function viewColumns(memory: SharedArrayBuffer, capacity: HeadBlockCapacity): HeadBlockColumns {
  const at = placesOf(capacity);
  const { rows, runs, pairs, lineBytes, valueBytes } = capacity;
  return {
    capacity,
    timestamps: new Float64Array(memory, at.timestamps, rows),
    runMin: new Float64Array(memory, at.runMin, runs),
    runMax: new Float64Array(memory, at.runMax, runs),
    lineOffset: new Uint32Array(memory, at.lineOffset, rows + 1),
    metaStart: new Uint32Array(memory, at.metaStart, rows + 1),
    pairName: new Uint32Array(memory, at.pairName, pairs),
    valueOffset: new Uint32Array(memory, at.valueOffset, pairs + 1),
    runStream: new Uint32Array(memory, at.runStream, runs),
    runStart: new Uint32Array(memory, at.runStart, runs),
    levels: new Uint8Array(memory, at.levels, rows),
    lines: new Uint8Array(memory, at.lines, lineBytes + paddingBytes),
    values: new Uint8Array(memory, at.values, valueBytes + paddingBytes),
  };
}

/** Wide columns first, so that each is aligned without gaps. */
function placesOf({ rows, runs, pairs, lineBytes, valueBytes }: HeadBlockCapacity) {
  const timestamps = headerBytes;
  const runMin = timestamps + 8 * rows;
  const runMax = runMin + 8 * runs;
  const lineOffset = runMax + 8 * runs;
  const metaStart = lineOffset + 4 * (rows + 1);
  const pairName = metaStart + 4 * (rows + 1);
  const valueOffset = pairName + 4 * pairs;
  const runStream = valueOffset + 4 * (pairs + 1);
  const runStart = runStream + 4 * runs;
  const levels = runStart + 4 * runs;
  const lines = levels + rows;
  const values = lines + lineBytes + paddingBytes;
  const end = values + valueBytes + paddingBytes;
  return {
    timestamps,
    runMin,
    runMax,
    lineOffset,
    metaStart,
    pairName,
    valueOffset,
    runStream,
    runStart,
    levels,
    lines,
    values,
    end,
  };
}
