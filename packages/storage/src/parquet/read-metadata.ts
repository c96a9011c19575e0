import { internal } from "@skald/model";
import { convertedType, pageType, physicalType } from "./format.js";
import { type Leaf, leavesOf, type SchemaNode } from "./schema.js";
import { readThrift, type ThriftStruct } from "./thrift-reader.js";

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
  return { offset, rawBytes: column.int(6), storedBytes: column.int(7) };
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
