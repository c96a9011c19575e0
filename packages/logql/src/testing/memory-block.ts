import {
  fieldColumns,
  fieldKind,
  scanJsonFields,
  scanJsonKeys,
  scanLogfmtFields,
} from "@skald/kernels";
import {
  type Block,
  type BlockFacts,
  type BytesColumn,
  dayNs,
  fieldFamily,
  formatLabels,
  type Labels,
  labelsFromObject,
  type MetadataColumn,
  paddingBytes,
  type RunTable,
} from "@skald/model";

/** One row as tests write it; time in ns since the epoch. */
export interface PlainRow {
  readonly labels: Readonly<Record<string, string>>;
  readonly ts: bigint;
  readonly line: string | Uint8Array;
  readonly metadata?: Readonly<Record<string, string>>;
}

/** A block in memory and the stream table that its runs refer to. */
export interface MemoryBlock {
  readonly block: Block;
  readonly streams: readonly Labels[];
  readonly streamLabels: (stream: number) => Labels;
}

/**
 * Builds a block from rows of one UTC day, kept in the given order: neighbours with equal labels share a run.
 * With `texts` the block knows which of its rows contain them. Metadata names with at most `dictionaryMax` values become dictionary columns (default 16, 0 = all are bytes).
 */
export function makeBlock(
  rows: readonly PlainRow[],
  options: {
    dictionaryMax?: number;
    texts?: readonly Uint8Array[] | undefined;
    fields?: KnownFields | undefined;
  } = {},
): MemoryBlock {
  const baseNs = ((rows[0]?.ts ?? 0n) / dayNs) * dayNs;
  const streams: Labels[] = [];
  const streamOf = new Map<string, number>();
  const streamIds = rows.map((row) => {
    const labels = labelsFromObject(row.labels);
    const text = formatLabels(labels);
    const known = streamOf.get(text);
    if (known !== undefined) return known;
    streamOf.set(text, streams.length);
    return streams.push(labels) - 1;
  });
  const times = Float64Array.from(rows, (row) => Number(row.ts - baseNs));
  const lines = bytesColumn(rows.map((row) => row.line));
  const metadata = metadataColumns(rows, options.dictionaryMax ?? 16);
  const block: Block = {
    baseNs,
    rowCount: rows.length,
    runs: runTable(streamIds, times, lines),
    timestamps: () => times,
    lines: () => lines,
    metadataNames: () => [...metadata.keys()],
    metadata: (name) => metadata.get(name),
  };
  const { texts = [], fields } = options;
  if (options.texts === undefined && fields === undefined)
    return { block, streams, streamLabels: (stream) => streams[stream] as Labels };
  const found = fields && fieldsOf(lines, fields, options.dictionaryMax ?? 16);
  const known = {
    ...block,
    facts: { ...factsOf(lines, texts), fields: found?.facts },
    field: (name: string) => found?.columns.get(name),
  };
  return { block: known, streams, streamLabels: (stream) => streams[stream] as Labels };
}

/** Fields that a block has as columns, and the parser that they are of, whatever the lines are. */
export interface KnownFields {
  readonly names: readonly string[];
  readonly parser: "json" | "logfmt";
}

/** What a merge finds in lines (see FieldWriter of storage). */
function fieldsOf(
  { bytes, offsets }: BytesColumn,
  { names, parser }: KnownFields,
  dictionaryMax: number,
) {
  const rows = offsets.length - 1;
  const selection = { rows: Uint32Array.from({ length: rows }, (_, row) => row), count: rows };
  const found = fieldColumns(names.length, rows);
  const rest = { keepEmpty: false, lastWins: false, enough: 0 };
  if (parser === "json") {
    scanJsonFields(bytes, offsets, selection, names, found, { complete: true, enough: 0 });
  } else scanLogfmtFields(bytes, offsets, selection, names, found, { strict: false, ...rest });
  const isOdd = (row: number) =>
    found.isRead[row] !== 1 ||
    names.some((_, f) => {
      const place = f * found.capacity + row;
      const kind = found.kind[place]!;
      return kind === fieldKind.coded || (kind === fieldKind.plain && found.length[place] === 0);
    });
  const words = new Uint32Array((rows + 31) >>> 5);
  let count = 0;
  for (let row = 0; row < rows; row++) {
    if (!isOdd(row)) continue;
    words[row >> 5]! |= 1 << (row & 31);
    count++;
  }
  const columns = new Map<string, MetadataColumn>();
  for (const [f, name] of names.entries()) {
    const values = Array.from({ length: rows }, (_, row) => {
      const place = f * found.capacity + row;
      const start = found.start[place]!;
      const has = found.kind[place] !== fieldKind.absent && !isOdd(row);
      // Values beyond ASCII are irregular.
      return has ? Buffer.from(bytes.slice(start, start + found.length[place]!)).toString() : "";
    });
    if (values.some((value) => value !== "")) columns.set(name, columnOf(values, dictionaryMax));
  }
  const keys = fieldColumns(names.length, rows);
  if (parser === "json") scanJsonKeys(bytes, offsets, selection, names, keys, { enough: 0 });
  else {
    const options = { strict: false, keepEmpty: true, lastWins: true, enough: 0 };
    scanLogfmtFields(bytes, offsets, selection, names, keys, options);
  }
  const textAt = ({ kind, start, length }: typeof keys, place: number) =>
    kind[place] === fieldKind.absent || length[place] === 0
      ? ""
      : `${start[place]} ${length[place]}`;
  const keyed = names.filter((_, f) =>
    Array.from(selection.rows).every((row) => {
      const place = f * rows + row;
      const own = textAt(found, place);
      return isOdd(row) || (keys.isRead[row] === 1 && own !== "" && textAt(keys, place) === own);
    }),
  );
  const family = fieldFamily[parser];
  const isKeyed = (name: string) => keyed.includes(name);
  const facts = { names, isKeyed, familyOf: () => family, irregular: { count, words } };
  return { facts, columns };
}

/** What a merged segment knows of lines. */
function factsOf({ bytes, offsets }: BytesColumn, texts: readonly Uint8Array[]): BlockFacts {
  return {
    texts,
    rowsWith: (text) => {
      const words = new Uint32Array((offsets.length + 30) >>> 5);
      let count = 0;
      for (let row = 0; row + 1 < offsets.length; row++) {
        const line = Buffer.from(bytes.subarray(offsets[row], offsets[row + 1]));
        if (!line.includes(Buffer.from(texts[text]!))) continue;
        words[row >> 5]! |= 1 << (row & 31);
        count++;
      }
      return { count, words };
    },
  };
}

/** A padded column of the given values. */
function bytesColumn(values: readonly (string | Uint8Array)[]): BytesColumn {
  const encoded = values.map((value) =>
    typeof value === "string" ? new TextEncoder().encode(value) : value,
  );
  const offsets = new Uint32Array(encoded.length + 1);
  for (let i = 0; i < encoded.length; i++) {
    offsets[i + 1] = (offsets[i] as number) + (encoded[i] as Uint8Array).length;
  }
  const bytes = new Uint8Array((offsets[encoded.length] as number) + paddingBytes);
  for (let i = 0; i < encoded.length; i++) bytes.set(encoded[i] as Uint8Array, offsets[i]);
  return { bytes, offsets };
}

function metadataColumns(
  rows: readonly PlainRow[],
  dictionaryMax: number,
): ReadonlyMap<string, MetadataColumn> {
  const columns = new Map<string, MetadataColumn>();
  const names = new Set(rows.flatMap((row) => Object.keys(row.metadata ?? {})));
  for (const name of [...names].sort()) {
    const values = rows.map((row) => row.metadata?.[name] ?? "");
    columns.set(name, columnOf(values, dictionaryMax));
  }
  return columns;
}

/** A column with a dictionary, unless that had too many values. */
function columnOf(values: readonly string[], dictionaryMax: number): MetadataColumn {
  const dictionary = [...new Set(values)];
  if (dictionary.length > dictionaryMax) return { kind: "bytes", ...bytesColumn(values) };
  const codes = Uint8Array.from(values, (value) => dictionary.indexOf(value));
  return { kind: "dictionary", dictionary: bytesColumn(dictionary), codes };
}

function runTable(streamIds: readonly number[], times: Float64Array, lines: BytesColumn): RunTable {
  const starts: number[] = [];
  streamIds.forEach((id, row) => {
    if (row === 0 || id !== streamIds[row - 1]) starts.push(row);
  });
  const count = starts.length;
  const rowStart = Uint32Array.from([...starts, streamIds.length]);
  const slices = starts.map((from, i) => [from, rowStart[i + 1] as number] as const);
  return {
    count,
    stream: Uint32Array.from(starts, (row) => streamIds[row] as number),
    rowStart,
    minTime: Float64Array.from(slices, ([from, to]) => Math.min(...times.subarray(from, to))),
    maxTime: Float64Array.from(slices, ([from, to]) => Math.max(...times.subarray(from, to))),
    lineBytes: Float64Array.from(
      slices,
      ([from, to]) => (lines.offsets[to] as number) - (lines.offsets[from] as number),
    ),
  };
}

/** The selection of every row of a block. */
export function allRows(block: Block): { rows: Uint32Array; count: number } {
  return {
    rows: Uint32Array.from({ length: block.rowCount }, (_, row) => row),
    count: block.rowCount,
  };
}
