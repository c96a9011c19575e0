import { internal } from "@skald/model";
import type { SealedChunk } from "./column-chunk.js";
import {
  codec,
  convertedType,
  encoding,
  type Leaf,
  leavesOf,
  pageType,
  physicalType,
  type SchemaNode,
  writeSchema,
} from "./format.js";
import { readThrift, type ThriftStruct, ThriftWriter } from "./thrift.js";

/** Everything that the footer says about a file. */
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
  /** Places of the columns that the rows ascend by, nulls last; none when they are in another order. */
  readonly sortedBy: readonly number[];
}

/** A column chunk as the footer and the page indexes describe it. */
export interface ChunkSummary extends Omit<SealedChunk, "parts"> {
  /** Place of the first page in the file. */
  readonly offset: number;
  /** Least and greatest value as stored; absent where they are not kept or long, or all values are null. */
  readonly bounds?: Bounds;
  /** True where the column has a column index. */
  readonly indexed: boolean;
  /** The Bloom filter of its values, with its header, if it has one. */
  readonly bloom?: Place | undefined;
}

export interface Bounds {
  readonly min: Uint8Array;
  readonly max: Uint8Array;
  /** Per page, where the column has a column index; undefined for a page of nulls. */
  readonly pages: readonly ({ readonly min: Uint8Array; readonly max: Uint8Array } | undefined)[];
}

/** Places of the page indexes of one chunk. */
interface IndexPlace {
  readonly column: Place;
  readonly offset: Place;
}

export interface Place {
  readonly offset: number;
  readonly length: number;
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
    group.map((_, c) => ({ column: columns[g]![c]!, offset: offsets[g]![c]! })),
  );
  return { bytes: thrift.out.view(), places };

  function placeOf(write: () => void): Place {
    const from = thrift.out.length;
    write();
    return { offset: at + from, length: thrift.out.length - from };
  }

  function columnIndex(chunk: ChunkSummary): void {
    if (!chunk.indexed) return;
    const bounds = chunk.pages.map((_, p) => chunk.bounds?.pages[p]);
    const isNull = bounds.map((bound) => bound === undefined);
    const least = bounds.map((bound) => bound?.min ?? noBytes);
    const most = bounds.map((bound) => bound?.max ?? noBytes);
    const nullCounts = chunk.pages.map((page) => page.nullCount);
    thrift.boolList(1, isNull);
    thrift.binaryList(2, least);
    thrift.binaryList(3, most);
    thrift.i32(4, 0);
    thrift.i64List(5, nullCounts);
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
    const rawBytes = sumOf(group.chunks, (chunk) => chunk.rawBytes);
    const storedBytes = sumOf(group.chunks, (chunk) => chunk.storedBytes);
    thrift.structList(1, [...group.chunks.entries()], ([c, chunk]) =>
      writeChunk(thrift, leaves[c]!, chunk, places[ordinal]![c]!),
    );
    thrift.i64(2, rawBytes);
    thrift.i64(3, group.rowCount);
    if (group.sortedBy.length > 0)
      thrift.structList(4, group.sortedBy, (column) => {
        thrift.i32(1, column);
        thrift.bool(2, false);
        thrift.bool(3, false);
      });
    thrift.i64(5, group.chunks[0]?.offset ?? 0);
    thrift.i64(6, storedBytes);
    // The ordinal has 16 bits; readers count by themselves where it is absent.
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

const noBytes = new Uint8Array(0);

/** The sum of a number of each item. */
export function sumOf<T>(items: readonly T[], of: (item: T) => number): number {
  return items.reduce((sum, item) => sum + of(item), 0);
}

function writeChunk(
  thrift: ThriftWriter,
  leaf: Leaf,
  chunk: ChunkSummary,
  place: IndexPlace,
): void {
  // The offset of a copy of the metadata beside the chunk, which writers have given up.
  thrift.i64(2, 0);
  thrift.struct(3, () => writeColumn(thrift, leaf, chunk));
  thrift.i64(4, place.offset.offset);
  thrift.i32(5, place.offset.length);
  if (place.column.length === 0) return;
  thrift.i64(6, place.column.offset);
  thrift.i32(7, place.column.length);
}

function writeColumn(thrift: ThriftWriter, leaf: Leaf, chunk: ChunkSummary): void {
  const hasDictionary = chunk.dictionaryBytes > 0;
  const nullCount = sumOf(chunk.pages, (page) => page.nullCount);
  const valueCount = sumOf(chunk.pages, (page) => page.valueCount);
  const path = leaf.path.map((part) => Buffer.from(part, "utf8"));
  thrift.i32(1, leaf.type);
  thrift.i32List(2, encodingsOf(leaf, chunk));
  thrift.binaryList(3, path);
  thrift.i32(4, chunk.codec === codec.zstd ? codec.zstd : codec.uncompressed);
  thrift.i64(5, nullCount + valueCount);
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
  if (chunk.bloom === undefined) return;
  thrift.i64(14, chunk.bloom.offset);
  thrift.i32(15, chunk.bloom.length);
}

function encodingsOf(leaf: Leaf, chunk: ChunkSummary): number[] {
  const levels = leaf.type === physicalType.int64 || leaf.path.length === 1 ? [] : [encoding.rle];
  const dictionary = chunk.dictionaryBytes > 0 ? [encoding.plain] : [];
  return [...dictionary, ...levels, chunk.dataEncoding];
}

/** What a reader needs of a footer to find all pages; the rest follows from the pages. */
export interface ReadFooter {
  readonly schema: readonly SchemaNode[];
  readonly leaves: readonly Leaf[];
  readonly rowGroups: readonly {
    /** In schema order. */
    readonly chunks: readonly ReadChunk[];
  }[];
  readonly createdBy: string;
}

export interface ReadChunk {
  /** Place of the first page in the file. */
  readonly offset: number;
  readonly storedBytes: number;
  /** Of all pages once decompressed. */
  readonly rawBytes: number;
  readonly bloom: Place | undefined;
}

/** Reads the FileMetaData struct of a file that this store wrote. Throws `internal` for any other. */
export function readFooter(bytes: Uint8Array): ReadFooter {
  const { struct, end } = readThrift(bytes);
  if (end !== bytes.byteLength) throw internal("parquet footer is of another length");
  const schema = readSchema(struct.structs(2));
  const leaves = leavesOf(schema);
  const rowGroups = struct.structs(4).map((group) => {
    const chunks = group.structs(1).map((chunk) => readChunk(chunk.struct(3)));
    if (chunks.length !== leaves.length) throw internal("parquet footer lacks columns");
    return { chunks };
  });
  return { schema, leaves, rowGroups, createdBy: struct.text(6) };
}

function readChunk(column: ThriftStruct): ReadChunk {
  const offset = column.int(column.has(11) ? 11 : 9);
  const bloom = column.has(14) ? { offset: column.int(14), length: column.int(15) } : undefined;
  return { offset, rawBytes: column.int(6), storedBytes: column.int(7), bloom };
}

/** Columns of a struct may be null, others may not. */
function readSchema(elements: readonly ThriftStruct[]): SchemaNode[] {
  let at = 0;
  const next = () => {
    const element = elements[at++];
    if (element === undefined) throw internal("parquet schema is cut short");
    return element;
  };
  const isUtf8 = (element: ThriftStruct) => element.has(6) && element.int(6) === convertedType.utf8;
  const readNode = (optional: boolean): SchemaNode => {
    const element = next();
    const name = element.text(4);
    if (!element.has(5)) {
      if (element.int(1) === physicalType.int64) return { kind: "timestamp", name };
      return { kind: "text", name, optional, utf8: isUtf8(element) };
    }
    if (!element.has(6)) {
      const children = Array.from({ length: countOf(element) }, () => readNode(true));
      return { kind: "struct", name, children };
    }
    next();
    next();
    return { kind: "map", name, utf8: isUtf8(next()) };
  };
  const countOf = (element: ThriftStruct) => {
    const count = element.int(5);
    if (count < 0 || count > elements.length) throw internal("parquet schema is cut short");
    return count;
  };
  const nodes = Array.from({ length: countOf(next()) }, () => readNode(false));
  if (at !== elements.length) throw internal("parquet schema has elements too many");
  return nodes;
}

/** What the header of a page says; sizes are those of levels and body together. */
export interface PageHeader {
  readonly kind: "data" | "dictionary";
  readonly headerBytes: number;
  readonly rawBytes: number;
  readonly storedBytes: number;
  /** Of all stored bytes behind the header. */
  readonly crc: number;
  /** Values and nulls. */
  readonly valueCount: number;
  readonly nullCount: number;
  readonly rowCount: number;
  readonly encoding: number;
  readonly levelBytes: number;
  /** The part of the levels that stands first. */
  readonly repetitionBytes: number;
  readonly compressed: boolean;
}

/** Bytes that hold any header of a page. */
export const maxPageHeaderBytes = 128;

/** Reads the header at the start of the bytes. Throws `internal` for what this store does not write. */
export function readPageHeader(bytes: Uint8Array): PageHeader {
  const { struct, end } = readThrift(bytes);
  const isData = struct.i32(1) === pageType.dataV2;
  if (!isData && struct.i32(1) !== pageType.dictionary) {
    throw internal(`page has the unknown type ${struct.i32(1)}`);
  }
  const own = struct.struct(isData ? 8 : 7);
  const known = isData ? [1, 2, 3, 4, 5, 6, 7] : [1, 2, 3];
  if (struct.ids.join() !== `1,2,3,4,${isData ? 8 : 7}` || own.ids.join() !== known.join()) {
    throw internal("page header has other fields");
  }
  return {
    kind: isData ? "data" : "dictionary",
    headerBytes: end,
    rawBytes: struct.i32(2),
    storedBytes: struct.i32(3),
    crc: struct.i32(4) >>> 0,
    valueCount: own.i32(1),
    nullCount: isData ? own.i32(2) : 0,
    rowCount: isData ? own.i32(3) : 0,
    encoding: own.i32(isData ? 4 : 2),
    levelBytes: isData ? own.i32(5) + own.i32(6) : 0,
    repetitionBytes: isData ? own.i32(6) : 0,
    // Of a dictionary it follows from the chunk; it says instead whether it is sorted.
    compressed: own.bool(isData ? 7 : 3),
  };
}
