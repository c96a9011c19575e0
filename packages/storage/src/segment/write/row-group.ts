import type { BytesColumn, RunTable } from "@skald/model";
import type { ColumnChunk, SealedChunk } from "../../parquet/column-chunk.js";
import {
  type Bounds,
  type ChunkSummary,
  type RowGroupSummary,
  sumOf,
} from "../../parquet/footer.js";
import type { SchemaNode } from "../../parquet/format.js";
import { areSorted } from "../../parquet/statistics.js";
import type { LabelColumn, MapRows, SegmentLayout, SortedBlock } from "../layout.js";
import {
  BytesColumnWriter,
  LabelColumnWriter,
  MapColumnWriter,
  type StreamRun,
  TimestampColumnWriter,
} from "./columns.js";
import { TextColumnWriter } from "./text-column.js";

/** Level of zstd for fields that are in no dictionary: 9 takes twice as long for such short pages, and 2 % fewer bytes. */
const maxFieldLevel = 6;

/**
 * The row group being collected: a chunk of pages per column, a page per block; only the labels have a single page,
 * made when the group ends. Used again for the next group.
 */
export class RowGroup {
  blockCount = 0;
  rowCount = 0;
  readonly #layout: SegmentLayout;
  readonly #timestamps: TimestampColumnWriter;
  readonly #lines: BytesColumnWriter;
  readonly #labels: readonly LabelColumnWriter[];
  readonly #moreLabels: MoreLabels;
  readonly #labelsMore: MapColumnWriter;
  readonly #metadata: readonly TextColumnWriter[];
  readonly #metadataMore: MapColumnWriter;
  readonly #fields: readonly TextColumnWriter[];
  readonly #fieldNames: readonly string[];
  readonly #runs: StreamRun[] = [];
  readonly #times: { min: number; max: number }[] = [];

  constructor(layout: SegmentLayout, fieldNames: readonly string[], hasBlooms: boolean) {
    const { baseNs, level } = layout;
    const textsOf = (level: number) => new TextColumnWriter({ level, hasBloom: hasBlooms });
    this.#fieldNames = fieldNames;
    this.#fields = fieldNames.map(() => textsOf(Math.min(level, maxFieldLevel)));
    this.#layout = layout;
    this.#timestamps = new TimestampColumnWriter(baseNs);
    this.#lines = new BytesColumnWriter({ level, optional: false });
    this.#labels = layout.labelColumns.map((column) => new LabelColumnWriter(column));
    this.#moreLabels = new MoreLabels(layout.labelsMore, layout.streamCount);
    this.#labelsMore = new MapColumnWriter({
      level,
      nameOf: (name) => layout.labelsMore[name]!.name,
    });
    this.#metadata = layout.metadataColumns.map(() => textsOf(level));
    this.#metadataMore = new MapColumnWriter({
      level,
      nameOf: (name) => layout.metadataMore[name]!,
    });
  }

  /** Encodes the pages of a block; returns the numbers of the names that it has in `metadata_more`. */
  add(
    block: SortedBlock,
    fields: readonly (BytesColumn | undefined)[] | undefined,
  ): readonly number[] {
    const { rowCount, runs, metadata } = block;
    this.#fields.forEach((column, i) => void column.addBlock(fields?.[i], rowCount));
    this.#timestamps.addBlock(block.timestamps, rowCount);
    this.#lines.addBlock(block.lines, rowCount, block.lineHeadroom);
    this.#layout.metadataColumns.forEach((name, i) => {
      this.#metadata[i]!.addBlock(metadata.get(name), rowCount);
    });
    this.#metadataMore.addBlock(block.more);
    if (this.#hasLabelsMore()) this.#labelsMore.addBlock(this.#moreLabels.rows(runs, rowCount));
    let min = Number.POSITIVE_INFINITY;
    let max = Number.NEGATIVE_INFINITY;
    for (let r = 0; r < runs.count; r++) {
      const rows = runs.rowStart[r + 1]! - runs.rowStart[r]!;
      this.#runs.push({ stream: runs.stream[r]!, rows });
      min = Math.min(min, runs.minTime[r]!);
      max = Math.max(max, runs.maxTime[r]!);
    }
    this.#times.push({ min, max });
    this.rowCount += rowCount;
    this.blockCount++;
    return block.more.used;
  }

  /** About what the fields take in the file. */
  get fieldBytes(): number {
    return sumOf(this.#fields, ({ storedBytes }) => storedBytes);
  }

  /** Ends the group, whose first byte is at `offset` of the file. The parts are valid until `clear`. */
  seal(offset: number): SealedGroup {
    const chunks: ChunkSummary[] = [];
    const paged: ChunkSummary[] = [];
    const parts: Uint8Array[] = [];
    let at = offset;
    const put = (sealed: SealedChunk, indexed: boolean, bounds?: Bounds): ChunkSummary => {
      const chunk = { ...sealed, offset: at, indexed, ...(bounds === undefined ? {} : { bounds }) };
      parts.push(...sealed.parts);
      at += sealed.storedBytes;
      chunks.push(chunk);
      return chunk;
    };
    const blooms: { readonly column: number; readonly bytes: Uint8Array }[] = [];
    const putTexts = (column: TextColumnWriter): ChunkSummary => {
      const { chunk, bounds, bloom } = column.seal();
      if (bloom !== undefined) blooms.push({ column: chunks.length, bytes: bloom });
      return put(chunk, false, bounds);
    };
    const putPaged = (chunk: ColumnChunk) => paged.push(put(chunk.seal(), false));
    paged.push(
      put(this.#timestamps.chunk.seal(), true, timeBounds(this.#layout.baseNs, this.#times)),
    );
    putPaged(this.#lines.chunk);
    const ranks = this.#labels.map((column) => {
      const { chunk, bounds, ranks } = column.seal(this.#runs, this.rowCount);
      put(chunk, true, bounds);
      return ranks;
    });
    if (this.#hasLabelsMore()) {
      this.#labelsMore.endGroup();
      put(this.#labelsMore.key.seal(), false);
      put(this.#labelsMore.value.seal(), false);
    }
    paged.push(...this.#metadata.map(putTexts));
    this.#metadataMore.endGroup();
    putPaged(this.#metadataMore.key);
    putPaged(this.#metadataMore.value);
    const fields = this.#fields.map(putTexts);
    for (const { column, bytes } of blooms) {
      chunks[column] = { ...chunks[column]!, bloom: { offset: at, length: bytes.length } };
      parts.push(bytes);
      at += bytes.length;
    }
    const isSorted = !this.#hasLabelsMore() && areSorted(ranks, this.#runs.length);
    const sortedBy = isSorted ? sortingColumns(ranks.length) : [];
    return { group: { rowCount: this.rowCount, chunks, sortedBy }, paged, fields, parts };
  }

  clear(): void {
    this.#timestamps.chunk.clear();
    this.#lines.chunk.clear();
    for (const column of this.#metadata) column.clear();
    for (const column of this.#fields) column.clear();
    this.#metadataMore.clear();
    this.#labelsMore.clear();
    this.#runs.length = 0;
    this.#times.length = 0;
    this.rowCount = 0;
    this.blockCount = 0;
  }

  /** The schema, as far as the values seen so far allow it: a column with a value that is not UTF-8 is no String. */
  schema(): SchemaNode[] {
    const struct = (name: string, children: SchemaNode[]): SchemaNode[] =>
      children.length === 0 ? [] : [{ kind: "struct", name, children }];
    const labels = this.#labels.map(
      ({ name }): SchemaNode => ({ kind: "text", name, optional: true, utf8: true }),
    );
    const metadata = this.#layout.metadataColumns.map(
      (name, i): SchemaNode => ({
        kind: "text",
        name,
        optional: true,
        utf8: this.#metadata[i]!.utf8,
      }),
    );
    // Values beyond ASCII are in no column.
    const fields = this.#fieldNames.map(
      (name): SchemaNode => ({ kind: "text", name, optional: true, utf8: true }),
    );
    const labelsMore: SchemaNode[] = this.#hasLabelsMore()
      ? [{ kind: "map", name: "labels_more", utf8: true }]
      : [];
    return [
      { kind: "timestamp", name: "timestamp" },
      { kind: "text", name: "line", optional: false, utf8: this.#lines.utf8 },
      ...struct("labels", labels),
      ...labelsMore,
      ...struct("metadata", metadata),
      { kind: "map", name: "metadata_more", utf8: this.#metadataMore.utf8 },
      ...struct("fields", fields),
    ];
  }

  #hasLabelsMore(): boolean {
    return this.#layout.labelsMore.length > 0;
  }
}

/** The columns that rows are sorted by where they ascend by labels: those of the labels, then `timestamp`. */
export function sortingColumns(labels: number): number[] {
  return [...Array.from({ length: labels }, (_, label) => firstLabelColumn + label), 0];
}

/** Behind `timestamp` and `line`. */
const firstLabelColumn = 2;

/** The bounds of a column of timestamps, given the first and last time of each page in ns since the base. */
export function timeBounds(
  baseNs: bigint,
  pages: readonly { readonly min: number; readonly max: number }[],
): Bounds {
  const bytesOf = (time: number): Uint8Array => {
    const bytes = Buffer.alloc(8);
    bytes.writeBigInt64LE(baseNs + BigInt(time));
    return bytes;
  };
  return {
    min: bytesOf(Math.min(...pages.map(({ min }) => min))),
    max: bytesOf(Math.max(...pages.map(({ max }) => max))),
    pages: pages.map(({ min, max }) => ({ min: bytesOf(min), max: bytesOf(max) })),
  };
}

interface SealedGroup {
  readonly group: RowGroupSummary;
  /** The chunks that have a page per block, in the order in which the own index counts them. */
  readonly paged: readonly ChunkSummary[];
  /** The chunks of the fields, which have a page per block too. */
  readonly fields: readonly ChunkSummary[];
  readonly parts: readonly Uint8Array[];
}

/** Labels without a column of their own, by stream; what `labels_more` repeats for each row. */
class MoreLabels {
  readonly #ofStream = new Map<number, { name: number; value: Buffer }[]>();

  constructor(columns: readonly LabelColumn[], streamCount: number) {
    columns.forEach((column, name) => {
      const values = column.values.map((value) => Buffer.from(value, "utf8"));
      const streams = column.streams ?? Uint32Array.from({ length: streamCount }, (_, s) => s);
      streams.forEach((stream, i) => {
        const pair = { name, value: values[column.codes[i]!]! };
        const known = this.#ofStream.get(stream);
        if (known === undefined) this.#ofStream.set(stream, [pair]);
        else known.push(pair);
      });
    });
  }

  rows(runs: RunTable, rowCount: number): MapRows {
    const pairStart = new Uint32Array(rowCount + 1);
    const names: number[] = [];
    const lengths: number[] = [];
    const parts: Buffer[] = [];
    const used = new Set<number>();
    for (let r = 0; r < runs.count; r++) {
      const pairs = this.#ofStream.get(runs.stream[r]!) ?? [];
      for (const { name } of pairs) used.add(name);
      for (let row = runs.rowStart[r]!; row < runs.rowStart[r + 1]!; row++) {
        for (const { name, value } of pairs) {
          names.push(name);
          lengths.push(value.byteLength);
          parts.push(value);
        }
        pairStart[row + 1] = names.length;
      }
    }
    return {
      rowCount,
      pairStart,
      names: Uint32Array.from(names),
      valueLengths: Uint32Array.from(lengths),
      values: Buffer.concat(parts),
      used: [...used],
    };
  }
}
