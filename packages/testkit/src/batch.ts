import {
  type Batch,
  type BatchStream,
  formatLabels,
  type Labels,
  labelsFromObject,
} from "@skald/model";

/** A row for tests; the time is ns since the epoch. */
export interface TestRow {
  readonly ns: bigint;
  readonly line: string;
  readonly metadata?: Readonly<Record<string, string>>;
  /** Level code, see levels.ts; 0 when not given. */
  readonly level?: number;
}

export interface TestStream {
  readonly labels: Readonly<Record<string, string>>;
  readonly rows: readonly TestRow[];
}

/** Builds the batch that a push of these streams decodes to; lines and metadata values have junk between them. */
export function makeBatch(streams: readonly TestStream[]): Batch {
  const arena = new Arena();
  const rows = streams.flatMap((stream) => stream.rows);
  const metaNames: string[] = [];
  const metaName: number[] = [];
  const values: Range[] = [];
  const metaStart = [0];
  const lines = rows.map((row) => {
    for (const [name, value] of Object.entries(row.metadata ?? {})) {
      if (!metaNames.includes(name)) metaNames.push(name);
      metaName.push(metaNames.indexOf(name));
      values.push(arena.add(value));
    }
    metaStart.push(values.length);
    return arena.add(row.line);
  });
  return {
    rowCount: rows.length,
    streams: placeStreams(streams),
    seconds: Float64Array.from(rows, (row) => Number(row.ns / 1_000_000_000n)),
    nanos: Uint32Array.from(rows, (row) => Number(row.ns % 1_000_000_000n)),
    bytes: arena.bytes(),
    lineStart: Uint32Array.from(lines, (line) => line.start),
    lineLength: Uint32Array.from(lines, (line) => line.length),
    metaStart: Uint32Array.from(metaStart),
    metaName: Uint32Array.from(metaName),
    metaValueStart: Uint32Array.from(values, (value) => value.start),
    metaValueLength: Uint32Array.from(values, (value) => value.length),
    metaNames,
    levels: Uint8Array.from(rows, (row) => row.level ?? 0),
    lineBytes: lines.reduce((sum, line) => sum + line.length, 0),
  };
}

interface Range {
  readonly start: number;
  readonly length: number;
}

class Arena {
  readonly #parts: Buffer[] = [];
  #size = 0;

  add(text: string): Range {
    const part = Buffer.from(text);
    const start = this.#size + 1;
    this.#parts.push(Buffer.from("#"), part);
    this.#size += 1 + part.length;
    return { start, length: part.length };
  }

  bytes(): Uint8Array {
    return new Uint8Array(Buffer.concat([...this.#parts, Buffer.alloc(64)]));
  }
}

function placeStreams(streams: readonly TestStream[]): BatchStream[] {
  let rowEnd = 0;
  return streams.map(({ labels: object, rows }, ordinal) => {
    const labels: Labels = labelsFromObject(object);
    const rowStart = rowEnd;
    rowEnd += rows.length;
    return { text: formatLabels(labels), ordinal, rowStart, rowEnd };
  });
}
