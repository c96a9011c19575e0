import type { SealedChunk } from "./column-chunk.js";
import { codec, encoding, pageType, physicalType } from "./format.js";
import { type Leaf, leavesOf, type SchemaNode, writeSchema } from "./schema.js";
import { ThriftWriter } from "./thrift.js";

/** Everything that the footer says of a file. */
export interface FileSummary {
  readonly schema: readonly SchemaNode[];
  readonly rowCount: number;
  readonly rowGroups: readonly RowGroupSummary[];
  readonly keyValues: readonly (readonly [string, string])[];
  readonly createdBy: string;
}

export interface RowGroupSummary {
  readonly rowCount: number;
  /** In schema order. */
  readonly chunks: readonly ChunkSummary[];
}

/** A column chunk as the footer and the page indexes describe it. */
export interface ChunkSummary extends Omit<SealedChunk, "parts"> {
  /** Place of the first page in the file. */
  readonly offset: number;
  /** Least and greatest value as stored; absent where they are not kept, or all values are null. */
  readonly bounds?: Bounds;
  /** True where the column has a column index. */
  readonly indexed: boolean;
}

export interface Bounds {
  readonly min: Uint8Array;
  readonly max: Uint8Array;
  /** Per page, where the column has a column index; undefined for a page of nulls. */
  readonly pages: readonly ({ readonly min: Uint8Array; readonly max: Uint8Array } | undefined)[];
}

/** Places of the page indexes of one chunk. */
export interface IndexPlace {
  readonly columnOffset: number;
  readonly columnBytes: number;
  readonly offsetOffset: number;
  readonly offsetBytes: number;
}

/** Writes the column indexes, then the offset indexes of every chunk, as they stand at `at` in the file. */
export function encodePageIndexes(
  rowGroups: readonly RowGroupSummary[],
  at: number,
): { bytes: Uint8Array; places: IndexPlace[][] } {
  const thrift = new ThriftWriter();
  const chunks = rowGroups.map((group) => group.chunks);
  const columns = chunks.map((group) => group.map((chunk) => placeOf(() => columnIndex(chunk))));
  const offsets = chunks.map((group) => group.map((chunk) => placeOf(() => offsetIndex(chunk))));
  const places = chunks.map((group, g) =>
    group.map((_, c) => {
      const column = columns[g]![c]!;
      const offset = offsets[g]![c]!;
      return {
        columnOffset: column.offset,
        columnBytes: column.length,
        offsetOffset: offset.offset,
        offsetBytes: offset.length,
      };
    }),
  );
  return { bytes: thrift.out.view(), places };

  function placeOf(write: () => void): Place {
    const from = thrift.out.length;
    write();
    return { offset: at + from, length: thrift.out.length - from };
  }

  function columnIndex(chunk: ChunkSummary): void {
    if (!chunk.indexed) return;
    const empty = new Uint8Array(0);
    const bounds = chunk.pages.map((_, p) => chunk.bounds?.pages[p]);
    thrift.boolList(
      1,
      bounds.map((b) => b === undefined),
    );
    thrift.binaryList(
      2,
      bounds.map((b) => b?.min ?? empty),
    );
    thrift.binaryList(
      3,
      bounds.map((b) => b?.max ?? empty),
    );
    thrift.i32(4, 0);
    thrift.i64List(
      5,
      chunk.pages.map((page) => page.nullCount),
    );
    thrift.end();
  }

  function offsetIndex(chunk: ChunkSummary): void {
    let offset = chunk.offset + chunk.dictionaryBytes;
    let row = 0;
    thrift.structList(1, chunk.pages, (page) => {
      const size = page.headerBytes + page.levelBytes + page.storedBytes;
      thrift.i64(1, offset);
      thrift.i32(2, size);
      thrift.i64(3, row);
      offset += size;
      row += page.rowCount;
    });
    thrift.end();
  }
}

/** Writes the FileMetaData struct. */
export function encodeFooter(file: FileSummary, places: readonly IndexPlace[][]): Uint8Array {
  const thrift = new ThriftWriter();
  const leaves = leavesOf(file.schema);
  thrift.i32(1, 2);
  writeSchema(thrift, 2, file.schema);
  thrift.i64(3, file.rowCount);
  thrift.structList(4, [...file.rowGroups.entries()], ([ordinal, group]) => {
    const sum = (of: (chunk: ChunkSummary) => number) =>
      group.chunks.reduce((total, chunk) => total + of(chunk), 0);
    thrift.structList(1, [...group.chunks.entries()], ([c, chunk]) =>
      writeChunk(thrift, leaves[c]!, chunk, places[ordinal]![c]!),
    );
    thrift.i64(
      2,
      sum((chunk) => chunk.rawBytes),
    );
    thrift.i64(3, group.rowCount);
    thrift.i64(5, group.chunks[0]?.offset ?? 0);
    thrift.i64(
      6,
      sum((chunk) => chunk.storedBytes),
    );
    // The ordinal has 16 bits; readers count for themselves where it is absent.
    if (ordinal < 2 ** 15) thrift.i16(7, ordinal);
  });
  thrift.structList(5, file.keyValues, ([key, value]) => {
    thrift.text(1, key);
    thrift.text(2, value);
  });
  thrift.text(6, file.createdBy);
  thrift.structList(7, leaves, () => thrift.struct(1, () => {}));
  thrift.end();
  return thrift.out.view();
}

interface Place {
  readonly offset: number;
  readonly length: number;
}

function writeChunk(
  thrift: ThriftWriter,
  leaf: Leaf,
  chunk: ChunkSummary,
  place: IndexPlace,
): void {
  // The offset of a copy of the metadata beside the chunk, which nobody writes any more.
  thrift.i64(2, 0);
  thrift.struct(3, () => writeColumn(thrift, leaf, chunk));
  thrift.i64(4, place.offsetOffset);
  thrift.i32(5, place.offsetBytes);
  if (place.columnBytes === 0) return;
  thrift.i64(6, place.columnOffset);
  thrift.i32(7, place.columnBytes);
}

function writeColumn(thrift: ThriftWriter, leaf: Leaf, chunk: ChunkSummary): void {
  const hasDictionary = chunk.dictionaryBytes > 0;
  const sum = (of: (page: ChunkSummary["pages"][number]) => number) =>
    chunk.pages.reduce((total, page) => total + of(page), 0);
  const nullCount = sum((page) => page.nullCount);
  thrift.i32(1, leaf.type);
  thrift.i32List(2, encodingsOf(leaf, chunk));
  thrift.binaryList(
    3,
    leaf.path.map((part) => Buffer.from(part, "utf8")),
  );
  thrift.i32(4, chunk.codec === codec.zstd ? codec.zstd : codec.uncompressed);
  thrift.i64(5, nullCount + sum((page) => page.valueCount));
  thrift.i64(6, chunk.rawBytes);
  thrift.i64(7, chunk.storedBytes);
  thrift.i64(9, chunk.offset + chunk.dictionaryBytes);
  if (hasDictionary) thrift.i64(11, chunk.offset);
  thrift.struct(12, () => {
    thrift.i64(3, nullCount);
    if (chunk.bounds === undefined) return;
    thrift.binary(5, chunk.bounds.max);
    thrift.binary(6, chunk.bounds.min);
    thrift.bool(7, true);
    thrift.bool(8, true);
  });
  const stats = [
    { page: pageType.dataV2, encoding: chunk.dataEncoding, count: chunk.pages.length },
  ];
  const dictionary = { page: pageType.dictionary, encoding: encoding.plain, count: 1 };
  thrift.structList(13, hasDictionary ? [dictionary, ...stats] : stats, (stat) => {
    thrift.i32(1, stat.page);
    thrift.i32(2, stat.encoding);
    thrift.i32(3, stat.count);
  });
}

function encodingsOf(leaf: Leaf, chunk: ChunkSummary): number[] {
  const levels = leaf.type === physicalType.int64 || leaf.path.length === 1 ? [] : [encoding.rle];
  const dictionary = chunk.dictionaryBytes > 0 ? [encoding.plain] : [];
  return [...dictionary, ...levels, chunk.dataEncoding];
}
